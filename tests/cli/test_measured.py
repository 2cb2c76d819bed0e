"""From a measured file to a forecast with error bars and a report, command by command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dhn
from dhn.cli import main
from dhn.cli.sources import sibling

ROOT = Path(__file__).parents[2]
SMALL = ("width=8", "depth=1", "latent_size=1", "batch_size=32", "warmup=5")
SETTINGS = [word for name in SMALL for word in ("--set", name)]


def call(capsys, *argv, code=0):
    assert main([str(word) for word in argv]) == code
    out, err = capsys.readouterr()
    return err if code else json.loads(out) if "--json" in argv else out


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A noisy damped oscillator, imported in three parts."""
    folder = tmp_path_factory.mktemp("measured")
    rng = np.random.default_rng(0)
    t = np.arange(400) * 0.1
    x = np.exp(-0.02 * t) * np.cos(1.5 * t) + 0.01 * rng.normal(size=400)
    np.savetxt(folder / "x.csv", np.c_[t, x], delimiter=",", header="t,x", comments="")
    argv = [
        "import",
        folder / "x.csv",
        "--q",
        "x",
        "--split",
        "0.6,0.2,0.2",
        "-o",
        folder / "x.npz",
    ]
    assert main([str(word) for word in argv]) == 0
    return folder


@pytest.fixture(scope="module")
def run(place):
    argv = ["train", place / "x-train.npz", "-o", place / "run", "--steps", 60, *SETTINGS, "--json"]
    assert main([str(word) for word in argv]) == 0
    return place / "run"


def test_measured_data_are_taken_to_be_damped_unless_told_otherwise(run, place):
    model = dhn.load(run)
    assert model.config.damping == "learned" and model.config.path > 8
    assert model.trained.summary["chosen"] in ("classical", "paths")
    train = dhn.read(place / "x-train.npz")
    assert "damping is learned" in str(dhn.DHN().adapt(train))
    free = dhn.DHN(damping="none")
    assert "damping" not in str(free.adapt(train)) and free.config.damping == "none"


def test_a_run_remembers_its_data(run, place, capsys):
    kept = dhn.load(run).trained.summary["data"]
    train = dhn.read(place / "x-train.npz")
    assert kept["train"]["path"] == str(place / "x-train.npz")
    assert kept["train"]["fingerprint"] == train.fingerprint()
    assert kept["train"]["from_run"] == "../x-train.npz"
    assert kept["validation"]["states"] == dhn.read(place / "x-validation.npz").states


def test_the_report_finds_test_and_training_data_by_itself(run, place, capsys):
    found = call(capsys, "report", run, "--samples", 3, "--json")
    text = (run / "report.html").read_text()
    assert "No data were given" not in text and "fitted to the training data" in text
    assert found["mse"] > 0


def test_data_that_changed_are_not_taken_for_the_old_ones(run, place, capsys, tmp_path):
    copy = tmp_path / "moved"
    copy.mkdir()
    for name in ("model.safetensors", "metrics.jsonl"):
        (copy / name).write_bytes((run / name).read_bytes())
    from dhn.cli.sources import recall

    model = dhn.load(copy)
    assert recall(model, copy, "train") is not None
    changed = dhn.read(place / "x-train.npz")
    made = model.trained.summary["data"]["train"]
    other = tmp_path / "x-train.npz"
    dhn.write(changed[:, :100], other)
    made["path"], made["from_run"] = str(other), "../x-train.npz"
    assert recall(model, copy, "train") is None
    other.unlink()
    assert recall(model, copy, "train") is None


def test_evaluate_counts_coverage_from_many_starting_points(run, place, capsys):
    argv = ("evaluate", run, place / "x-validation.npz", "--samples", 8, "--json")
    found = call(capsys, *argv)
    assert found["forecasts"] > 50
    assert found["period"] == pytest.approx(2 * np.pi / 1.5, rel=0.03)
    assert [row["ahead"] for row in found["periods"]][:2] == ["one state", "0.1 period"]
    assert {"persistence", "linear", "kernel ridge", "nearest window", "forecast"} <= set(
        found["periods"][0]
    )
    # Calibrated on these very data, from as many observed states.
    assert abs(found["coverage"]["50 %"] - 0.5) < 0.05
    assert abs(found["coverage"]["90 %"] - 0.9) < 0.05
    assert "0.5 period" in call(capsys, *argv[:-1])


@pytest.mark.slow
def test_an_ensemble_forecasts_the_mean_of_its_models(place, capsys):
    train = ("train", place / "x-train.npz", "-o", place / "three", "--steps", 30, *SETTINGS)
    train = (*train, "--preset", "linked")
    found = call(capsys, *train, "--ensemble", 3, "--json")
    assert found["ensemble"] == 3
    model = dhn.load(place / "three")
    alone = [dhn.load(place / "three" / f"member{k}") for k in (1, 2)]
    assert len(model.members) == 2
    assert {one.training.seed for one in (model, *alone)} == {0, 1, 2}
    seen = dhn.read(place / "x-test.npz")[:, 10:26]
    first = type(model)(model.trained)
    each = [one.forecast(seen, 5).q for one in (first, *alone)]
    assert np.ptp(each, axis=0)[:, 16:].max() > 0
    np.testing.assert_allclose(model.forecast(seen, 5).q, np.mean(each, axis=0), rtol=1e-5)
    wide = model.forecast(seen, 5, samples=6)
    assert (wide.q_quantiles[0.05] <= wide.q_quantiles[0.95]).all()
    model.save(place / "copy")
    np.testing.assert_array_equal(
        dhn.load(place / "copy").forecast(seen, 5).q, model.forecast(seen, 5).q
    )
    # Two models that are there already are not trained again.
    again = call(capsys, *train, "--ensemble", 3, "--resume", "--json")
    assert again["steps"] == 30


def test_siblings(place):
    train = place / "x-train.npz"
    assert sibling(train, "test") == place / "x-test.npz"
    assert sibling(place / "x-test.npz", "validation") is None
    assert sibling(train, "nothing") is None


@pytest.mark.slow
def test_the_example_runs_from_end_to_end(tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", str(ROOT / "examples" / "measured.sh"), str(tmp_path / "out")],
        env={**os.environ, "PATH": path, "BUDGET": "15s"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for name in ("forecast.csv", "smooth.csv", "report.html", "model/model.safetensors"):
        assert (tmp_path / "out" / name).stat().st_size > 0
    assert "coverage: 50 % band" in done.stdout and "It beats persistence" in done.stdout
