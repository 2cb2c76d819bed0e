"""The models of the package: small, recorded, right, and honest about what they do not know."""

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest

import dhn
from dhn.cli import main
from dhn.estimator.asking import check_data
from dhn.estimator.pretrained import FOLDER, PREFIX, draw, facts, names
from dhn.estimator.storage import FILE
from dhn.reconstruct.posterior import Result
from dhn.systems.library import BUILT_IN

ROOT = Path(__file__).parent.parent.parent
NAME = "single_pendulum"


@pytest.fixture(scope="module")
def model():
    return dhn.pretrained(NAME)


def test_there_is_one_for_each_built_in_system():
    assert set(names()) == {system.name for system in BUILT_IN}


@pytest.mark.parametrize("name", names())
def test_each_is_small_and_records_how_it_was_made(name):
    assert (FOLDER / name / FILE).stat().st_size < 120_000
    known = facts(name)
    assert known["command"].startswith(f"python benchmarks/pretrained.py train {name} --budget ")
    # Twelve numbers a state take longer to learn.
    assert known["seconds"] > 60
    assert known["errors"]["median"] < (1e-2 if name == "three_body" else 1e-3)
    # Starts and parameters vary, within ranges that are written down.
    for part in ("params", "initial"):
        assert known[part] and all(low < high for low, high in known[part].values())
    system = dhn.get_system(name)
    assert known["time_step"] == system.time_step and set(known["params"]) <= set(system.params)


def test_the_table_in_the_documentation_is_that_of_the_models():
    source = ROOT / "benchmarks" / "pretrained.py"
    spec = importlib.util.spec_from_file_location("benchmarks_pretrained", source)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    page = (ROOT / "docs" / "pretrained.md").read_text()
    shown = re.search(r"<!-- table -->\n(.*)\n<!-- end of table -->", page, re.DOTALL)
    assert shown is not None and shown[1] == script.table()


def test_sixteen_states_give_forecast_bands_and_the_parameter(model):
    new = draw(NAME, 8, seed=11)
    found = model.forecast(new[:, :16], new.states - 16)
    off = (found.q - new.q)[:, 16:] / (np.pi / 2)
    assert np.median(np.mean(off**2, axis=(1, 2))) < 1e-5
    inside = (new.q >= found.q_quantiles[0.05]) & (new.q <= found.q_quantiles[0.95])
    assert inside[:, 16:].mean() > 0.6
    answer = model.reconstruct(new[:, :16])
    assert set(answer.result) == {Result.OK}
    lengths, errors = answer.parameters["l"]
    off = np.abs(lengths - new.params["l"])
    assert np.median(off) < 0.005
    assert (off > 4 * errors).sum() <= 1


@pytest.mark.parametrize("length", [0.35, 1.3])
def test_a_parameter_outside_the_ranges_is_reported(model, length):
    low, high = facts(NAME)["params"]["l"]
    assert not low <= length <= high
    other = dhn.simulate(NAME, 8, seed=2, params={"l": length}, initial={"theta": (-2.0, 2.0)})
    answer = model.reconstruct(other[:, :16])
    assert sum(x != Result.OK for x in answer.result) >= 7
    assert answer.warning() is not None


def test_a_start_outside_the_ranges_is_reported(model):
    turning = dhn.simulate(NAME, 8, seed=2, initial={"theta": 0.0, "v_theta": (6.0, 7.0)})
    assert all(x != Result.OK for x in model.reconstruct(turning[:, :16]).result)


def test_data_of_another_system_are_noticed(model):
    t = model.time_step * np.arange(16)
    other = dhn.Trajectories(q=np.cos(t)[None, :, None], t=t, system="mass_spring")
    with pytest.warns(
        UserWarning, match="trained on 'single_pendulum', but these data are of 'mas"
    ):
        check_data(model.trained, other)


def test_a_name_stands_wherever_a_folder_does(tmp_path, capsys):
    new = draw(NAME, 3, seed=1)
    dhn.write(new, tmp_path / "new.npz")
    command = ["forecast", PREFIX + NAME, tmp_path / "new.npz", "-o", tmp_path / "out.npz"]
    assert main([*map(str, command), "--steps", "20", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed["results"].values()) == {"OK"}
    assert dhn.read(tmp_path / "out.npz").states == 36


def test_an_unknown_name_is_one_line(capsys):
    with pytest.raises(dhn.UserError, match=r"no pretrained model 'single_pendulun'; .* Did you"):
        dhn.load("pretrained:single_pendulun")
    assert main(["pretrained", "list"]) == 0
    assert all(name in capsys.readouterr().out for name in [NAME])


def test_a_warm_start_keeps_what_was_learned(model):
    train, test = draw(NAME, 10, seed=21), draw(NAME, 6, seed=22)
    options = {"width": model.config.network.width, "warmup": 0, "steps": 20}
    fresh = dhn.DHN(model.config, **options).fit(train)
    warm = dhn.DHN(model.config, **options).fit(train, start=model)
    assert warm.score(test) > 0.999 > fresh.score(test)
    # The weights moved, and units are the starting model's.
    assert warm.trained.scaler.to_dict() == model.trained.scaler.to_dict()
    assert warm.record["trajectories"] == 10 and "pretrained" not in warm.record


def test_a_start_that_does_not_fit_is_refused(model):
    train = draw(NAME, 4, seed=1)
    with pytest.raises(dhn.UserError, match="only begin with a model of the same configuration"):
        dhn.DHN(width=8).fit(train, start=model)
    with pytest.raises(dhn.UserError, match=r"the starting model has time step 0\.078125, but"):
        dhn.DHN(model.config).fit(train[:, ::2], start=model)
