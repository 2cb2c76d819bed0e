"""A sweep over local processes: its cells, their states, its table and figure."""

import json
import threading
import time

import pytest

from dhn.cli import main
from dhn.files import write
from dhn.jobs.cells import CELL, RESULT, computed_now, computing, finished, results
from dhn.jobs.sweep import Axis, cell_name, combinations, status
from dhn.jobs.worker import compute
from dhn.systems import simulate


@pytest.mark.parametrize(
    "text, values",
    {
        "width=32,64": (32, 64),
        "optimiser=adam,muon": ("adam", "muon"),
        "seed=0..9/4": (0, 3, 6, 9),
        "seed=0..2/9": (0, 1, 2),
        "clip=0.5..1.5/3": (0.5, 1.0, 1.5),
        "learning_rate=log:1e-3..1e-1/3": (0.001, 0.01, 0.1),
    }.items(),
)
def test_lists_and_ranges(text, values):
    assert Axis.parse(text).values == values


def test_a_random_sweep_draws_inside_its_ranges_and_follows_its_seed():
    axes = [Axis.parse("learning_rate=log:1e-3..1e-1"), Axis.parse("width=8,16")]
    drawn = combinations(axes, 40, seed=3)
    assert drawn == combinations(axes, 40, seed=3) != combinations(axes, 40, seed=4)
    rates = [cell["learning_rate"] for cell in drawn]
    assert len(drawn) == 40 and 1e-3 <= min(rates) < 1e-2 < max(rates) <= 1e-1
    assert {cell["width"] for cell in drawn} == {8, 16}


def test_cells_that_differ_in_an_option_that_is_not_swept_have_other_names():
    values = {"seed": 0, "options": {"width": 8}, "steps": 10}
    assert cell_name(values, ["width"]).startswith("width-8.")
    assert cell_name(values, ["width"]) != cell_name(values | {"steps": 20}, ["width"])


@pytest.fixture
def cell(tmp_path):
    place = tmp_path / "cells" / "one"
    place.mkdir(parents=True)
    (place / CELL).write_text("{}")
    return place


@pytest.mark.parametrize("left", [b"", b'{"a": ', b"[1]", b"\xff", 100_000 * b"["])
def test_a_damaged_result_is_none_and_computed_again(cell, left):
    (cell / RESULT).write_bytes(left)
    assert not finished(cell) and results([cell]) == []
    compute(lambda values, folder: {"a": 1}, cell)
    assert finished(cell) and results([cell]) == [{"a": 1}]


def test_the_status_of_a_cell(cell):
    def state():
        (row,) = status(cell.parents[1])
        return row["state"], row["reason"]

    def fails(values, folder):
        assert state() == ("running", "")
        raise ValueError("no luck")

    assert state() == ("waiting", "")
    compute(fails, cell)
    assert state() == ("failed", "ValueError: no luck")
    compute(lambda values, folder: {"score": 1.0}, cell)
    assert state() == ("done", "")


def test_a_cell_is_computed_by_one_process_at_a_time(cell):
    computations = []

    def slow(values, folder):
        computations.append(folder)
        return {}

    with computing(cell):
        other = threading.Thread(target=compute, args=(slow, cell))
        other.start()
        time.sleep(0.2)
        assert computed_now(cell) and not computations
    other.join(60)
    compute(slow, cell)
    assert computations == [cell] and finished(cell) and not computed_now(cell)


@pytest.mark.slow
def test_a_sweep_is_resumed_and_compared(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, seed in (("train", 0), ("test", 1)):
        write(simulate("single_pendulum", trajectories=24, steps=32, seed=seed), f"{name}.npz")
    words = ["sweep", "train.npz", "-o", "s", "--over", "width=8,16", "--steps", "20"]
    words += ["--set", "batch_size=32", "--validation", "test.npz", "--json"]
    assert main(words) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["run"] == said["cells"] == 2 and said["failed"] == {}
    scores = [row["median"] for row in said["results"]]
    assert scores == sorted(scores) and (tmp_path / "s" / "sweep.png").is_file()
    next((tmp_path / "s" / "cells").glob("width-8.*/result.json")).unlink()
    assert main(words) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["run"], again["finished_before"]) == (1, 1)
    assert again["results"] == said["results"]
