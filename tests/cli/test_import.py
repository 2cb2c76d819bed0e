"""`dhn import` on the command line: the files it writes, the summary it prints, its mistakes."""

import json

import numpy as np
import pytest

import dhn
from dhn.cli import main


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    """Run dhn in an empty folder; exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*argv):
        code = main([str(word) for word in argv])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def runs(tmp_path):
    """Two runs of an oscillator in degrees with a lost stretch, no velocities."""
    rng = np.random.default_rng(0)
    for k in range(2):
        t = np.delete(np.arange(600) * 0.02, np.s_[200:230])
        x = 30 * np.cos((2 + k) * t) + 0.1 * rng.normal(size=len(t))
        np.savetxt(
            tmp_path / f"run{k}.csv", np.stack([t, x], -1), delimiter=",", header="time,angle"
        )
    return ("run0.csv", "run1.csv")


def test_files_are_written_and_the_summary_counts(call, runs):
    code, out, err = call("import", *runs, "--q", "theta=angle", "--degrees", "-o", "data.npz")
    assert (code, err) == (0, "")
    data = dhn.read("data.npz")
    assert (len(data), data.states, data.names, data.angles) == (2, 600, ("theta",), (True,))
    for word in ("1140 rows, 2 runs", "every 0.02 s, chosen from the data", "60 missing"):
        assert word in out
    assert "measured  positions" in out and "written: data.npz" in out
    assert data.momenta is None and data.known.sum() == 1140
    assert data.noise[0, 0] == pytest.approx(np.radians(0.1), rel=0.2)
    assert data.meta["source"] == "run0.csv, run1.csv"


def test_parts_have_files_of_their_own(call, runs):
    argv = (
        "--q",
        "angle",
        "--segment",
        64,
        "--hop",
        32,
        "--split",
        "0.6,0.2,0.2",
        "--codes",
        "all",
    )
    code, out, _ = call("import", *runs, *argv, "-o", "data.npz", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["written"] == {x: f"data-{x}.npz" for x in ("train", "validation", "test")}
    spans = {}
    for part, file in found["written"].items():
        data = dhn.read(file)
        assert found["parts"][part] == [len(data), 64]
        assert all("/seg" in x for x in data.ids) and set(data.code_group) == {"all"}
        for run in ("run0", "run1"):
            times = data.times[[x.startswith(f"{run}/") for x in data.ids]]
            spans.setdefault(run, []).append((times.min(), times.max()))
    for (_, train), (start, validation), (test, _) in spans.values():
        assert train < start and validation < test


def test_velocities_and_negative_numbers(call, tmp_path):
    t = np.arange(100) * 0.1
    x, v = np.sin(t), np.cos(t)
    x[40] = -9999
    np.savetxt(tmp_path / "a.txt", np.stack([t, x, v], -1))
    argv = ("--time", 1, "--q", "x=2", "--v", 3, "--missing=-9999")
    code, _, err = call("import", "a.txt", *argv, "-o", "a.csv")
    assert (code, err) == (0, "")
    data = dhn.read("a.csv")
    np.testing.assert_allclose(data.v[0, :, 0], v)
    assert np.isfinite(data.q).sum() == 99 and np.isnan(data.q[0, 40, 0])


@pytest.mark.parametrize(
    "argv, message",
    [
        ((), "there is nothing to import; name at least one file"),
        (("none.csv", "--q", "x"), "there is no file none.csv"),
        (("run0.csv",), "which columns are the coordinates? Name them"),
        (("run0.csv", "--q", "x,"), "q needs items separated by commas; got 'x,'"),
        (("run0.csv", "--q", "angle", "--dt", "0"), "dt should be greater than 0"),
        (
            ("run0.csv", "--q", "angle", "--gaps", "3"),
            "has no option --gaps (did you mean '--gap'?)",
        ),
        (("run0.csv", "--q", "angle", "--segment", "5000"), "has no trajectory of 5000 states"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing_behind(call, runs, tmp_path, argv, message):
    before = sorted(x.name for x in tmp_path.iterdir())
    code, out, err = call("import", *argv, "-o", "data.npz")
    assert code == 2 and out == ""
    assert message in err and err.count("\n") == 1
    assert sorted(x.name for x in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "argv, message",
    [
        (("run0.csv", "-o", "run0.csv"), "run0.csv is an input and would be replaced"),
        (("run0.csv", "-o", "./run0.csv"), "run0.csv is an input and would be replaced"),
        (("link.csv", "-o", "run0.csv"), "run0.csv is an input and would be replaced"),
        (("run-train.csv", "-o", "run.csv", "--split", "0.5,0.5"), "run-train.csv is an input"),
        (("run0.csv", "-o", "out.xlsx"), "the ending '.xlsx' is not one of .npz, .csv"),
        (("run0.csv", "-o", "out"), "the ending '' is not one of .npz, .csv"),
        (("none.csv", "-o", "out.xlsx"), "the ending '.xlsx' is not one of"),
        (("run0.csv", "-o", "nowhere/out.npz"), "the folder nowhere does not exist"),
        (("run0.csv", "-o", "out.npz", "--from", "nan"), "from should be a finite number, got nan"),
        (("run0.csv", "-o", "out.npz", "--from", "99"), "no row lies between 99 and inf s"),
        (("run0.csv", "-o", "out.npz", "--pivot", "1"), "a pivot belongs to markers"),
        (("run0.csv", "-o", "out.npz", "--pivot", "x,y"), "should be a valid number"),
    ],
)
def test_outputs_and_options_are_checked_before_any_work(call, runs, tmp_path, argv, message):
    (tmp_path / "link.csv").symlink_to(tmp_path / "run0.csv")
    (tmp_path / "run-train.csv").write_bytes((tmp_path / "run0.csv").read_bytes())
    before = {x.name: x.read_bytes() for x in tmp_path.iterdir()}
    code, out, err = call("import", *argv, "--q", "angle")
    assert code == 2 and out == ""
    assert message in err and err.count("\n") == 1
    assert {x.name: x.read_bytes() for x in tmp_path.iterdir()} == before


def test_positions_at_their_own_times(call, tmp_path):
    t = np.arange(200) * 0.05 + np.random.default_rng(0).uniform(0, 0.02, 200)
    x, y = 3 + np.sin(0.5 * np.cos(t)), 4 - np.cos(0.5 * np.cos(t))
    np.savetxt(tmp_path / "bob.txt", np.stack([t, x, y], -1), header="t x y")
    argv = ("--markers", "x,y", "--pivot", "fit", "--to", 8)
    code, out, err = call("import", "bob.txt", *argv, "-o", "bob.npz")
    assert (code, err) == (0, "")
    data = dhn.read("bob.npz")
    np.testing.assert_allclose(data.t, t[t <= 8])
    np.testing.assert_allclose(data.q[0, :, 0], 0.5 * np.cos(data.t), atol=1e-8)
    assert data.v is None and data.p is None and data.known.all()
    assert "the file's own times, about every 0.0" in out and "pivot fitted at (3, 4)" in out
    assert call("inspect", "bob.npz")[0] == 0
    code, _, err = call("import", "bob.npz", "-o", "again.npz")
    assert (code, err) == (0, "")
    again = dhn.read("again.npz")
    np.testing.assert_array_equal(again.q, data.q)
    assert again.names == ("theta",) and again.angles == (True,)


def test_a_part_that_cannot_be_written_leaves_no_other_part(call, runs, tmp_path):
    (tmp_path / "data-test.npz").mkdir()
    before = sorted(x.name for x in tmp_path.iterdir())
    code, _, err = call("import", *runs, "--q", "angle", "--split", "0.6,0.4", "-o", "data.npz")
    assert code == 2 and "data-test.npz is a folder" in err
    assert sorted(x.name for x in tmp_path.iterdir()) == before
