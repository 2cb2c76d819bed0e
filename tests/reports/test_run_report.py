"""`dhn report` on a small trained model and on a folder of results."""

import json

import numpy as np
import pytest
from tests.reproduction import synthetic

import dhn
from dhn.cli import main


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    train = dhn.simulate("single_pendulum", 12, seed=0, steps=40)
    test = dhn.simulate("single_pendulum", 4, seed=1, steps=40)
    model = dhn.DHN(width=8, depth=1, latent_size=2, batch_size=32, warmup=5)
    model.fit(train, steps=40, directory=folder / "run")
    dhn.write(train, folder / "train.npz")
    dhn.write(test, folder / "test.npz")
    dhn.write(test.replace(system=None, params={}, units={}), folder / "unnamed.npz")
    return folder


def report(place, *words, code=0):
    assert main(["report", *map(str, words)]) == code


def test_a_run_with_data(place, capsys):
    page = place / "full.html"
    words = (place / "run", place / "test.npz", "-o", page, "--train", place / "train.npz")
    report(place, *words, "--json")
    values = json.loads(capsys.readouterr().out)
    text = page.read_text()
    assert values["report"] == str(page) and len(values["verdict"]) >= 4
    assert all("persistence" not in s or s in text for s in values["verdict"])
    for alt in (
        "the data",
        "forecasts over the truth",
        "error by time ahead",
        "energy over time",
        "phase space",
        "inferred l",
        "training curve",
    ):
        assert f'alt="{alt}"' in text
    assert values["phase_space"]["separatrix_true"] > 0
    assert "<canvas" in text and "band holds" in text and "CRPS" in text
    assert "block map (b=1, s=1): one application changes the summed energy" in text
    assert "http:" not in text and "https:" not in text


@pytest.mark.slow
def test_data_of_an_unnamed_system_have_a_stand_in_for_the_energy(place):
    page = place / "unnamed.html"
    report(place, place / "run", place / "unnamed.npz", "-o", page)
    text = page.read_text()
    assert "No system is named" in text and "<canvas" not in text


def test_a_run_alone_tells_about_the_training(place):
    report(place, place / "run")
    text = (place / "run" / "report.html").read_text()
    assert 'alt="training curve"' in text and "No data were given" in text
    assert 'alt="forecasts over the truth"' not in text


@pytest.mark.slow
def test_a_trajectory_that_cannot_be_started_is_left_out_and_counted(place, capsys):
    data = dhn.read(place / "test.npz")
    known = np.asarray(data.known).copy()
    known[1, 1:] = False
    hole = known[..., None]
    broken = data.replace(
        known=known, q=np.where(hole, data.q, np.nan), p=np.where(hole, data.p, np.nan)
    )
    dhn.write(broken, place / "broken.npz")
    report(place, place / "run", place / "broken.npz", "-o", place / "b.html")
    assert "1 trajectories are left out" in capsys.readouterr().out


@pytest.mark.parametrize("observe", [0, 41, 99])
def test_nothing_to_observe_or_to_predict(place, observe, capsys):
    report(place, place / "run", place / "test.npz", "--observe", observe, code=2)
    assert "the observed states must number" in capsys.readouterr().err or observe == 0


def test_results_are_redrawn(tmp_path, capsys):
    made = synthetic.results("representation", seeds=1)
    (tmp_path / "results.json").write_text(json.dumps(made))
    report(tmp_path, tmp_path)
    assert "C2 Default: does not hold" in capsys.readouterr().out
    first = (tmp_path / "report.html").read_bytes()
    report(tmp_path, tmp_path, "-o", tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == first
    report(tmp_path, tmp_path, "test.npz", code=2)
    assert "which take no data" in capsys.readouterr().err


def test_other_folders_are_refused(tmp_path, capsys):
    report(tmp_path, tmp_path / "nowhere", code=2)
    assert "is not a folder; expected one of `dhn train` or `reproduce`" in capsys.readouterr().err
    report(tmp_path, tmp_path, code=2)
    assert "has no model.safetensors" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
