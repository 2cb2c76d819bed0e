"""From a measured file to a forecast with error bars and a report, command by command."""

import html
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
    argv = ["train", place / "x-train.npz", "-o", place / "run", "--json"]
    assert main([str(word) for word in argv]) == 0
    return place / "run"


def test_a_run_remembers_its_data(run, place, capsys):
    kept = dhn.load(run).record["data"]
    train = dhn.read(place / "x-train.npz")
    assert kept["train"]["path"] == str(place / "x-train.npz")
    assert kept["train"]["fingerprint"] == train.fingerprint()
    assert kept["train"]["from_run"] == "../x-train.npz"
    assert kept["validation"]["states"] == dhn.read(place / "x-validation.npz").states


def test_the_report_finds_test_and_training_data_by_itself(run, place, capsys):
    found = call(capsys, "report", run, "--json")
    text = (run / "report.html").read_text()
    assert "No data were given" not in text and "fitted to the training data" in text
    assert found["mse"] > 0 and html.escape(found["valid_until"]["sentence"])[1:] in text
    assert "(on the validation part)" in text


def test_data_that_changed_are_not_taken_for_the_old_ones(run, place, capsys, tmp_path):
    copy = tmp_path / "moved"
    copy.mkdir()
    for name in ("mechanics.safetensors",):
        (copy / name).write_bytes((run / name).read_bytes())
    from dhn.cli.sources import recall

    model = dhn.load(copy)
    assert recall(model, copy, "train") is not None
    changed = dhn.read(place / "x-train.npz")
    made = model.record["data"]["train"]
    other = tmp_path / "x-train.npz"
    dhn.write(changed[:, :100], other)
    made["path"], made["from_run"] = str(other), "../x-train.npz"
    assert recall(model, copy, "train") is None
    other.unlink()
    assert recall(model, copy, "train") is None


def test_evaluate_counts_coverage_from_many_starting_points(run, place, capsys):
    argv = ("evaluate", run, place / "x-validation.npz", "--json")
    found = call(capsys, *argv)
    assert found["forecasts"] > 50
    assert found["period"] == pytest.approx(2 * np.pi / 1.5, rel=0.03)
    assert [row["ahead"] for row in found["periods"]][:2] == ["one state", "0.1 period"]
    assert {"persistence", "linear", "kernel ridge", "nearest window", "forecast"} <= set(
        found["periods"][0]
    )
    # Widened where validation is short, so that bands may hold more than they claim.
    assert 0.45 < found["coverage"]["50 %"] < 0.8
    assert found["coverage"]["90 %"] > 0.85
    valid = found["valid_until"]
    assert 0 < valid["median"] <= found["periods"][-1]["time"] + 1e-9 and valid["measured"] > 0
    said = call(capsys, *argv[:-1])
    assert "0.5 period" in said and valid["sentence"] in said


def test_a_forecast_says_how_long_it_is_valid(run, place, capsys, tmp_path):
    argv = ("forecast", run, place / "x-test.npz", "--observe", "32", "--steps", "40")
    found = call(capsys, *argv, "-o", tmp_path / "a.npz", "--json")
    step = dhn.load(run).time_step
    assert 0 <= found["valid_until"]["median"] <= 40 * step + 1e-9
    assert "valid until: " in call(capsys, *argv, "-o", tmp_path / "b.npz")


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
    for name in ("forecast.csv", "smooth.csv", "report.html", "model/mechanics.safetensors"):
        assert (tmp_path / "out" / name).stat().st_size > 0
    assert "coverage: 50 % band" in done.stdout and "It beats persistence" in done.stdout
    assert done.stdout.count("valid until: ") >= 3  # training, forecast, evaluation
