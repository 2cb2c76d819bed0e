"""Text files with odd headers, names and cells: read right, or one line; no terminal is reached."""

import json

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from dhn.cli import main
from dhn.errors import UserError
from dhn.files import read, write
from dhn.files.foreign import import_measured
from dhn.trajectories import Trajectories

VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=5), x, max_size=3),
    max_leaves=6,
)
KEYS = ["layout", "shape", "fields", "shared_time", "names", "angles", "units", "ids", "system"]
KEYS += ["params", "q_levels", "p_levels", "meta", "rows", "noise"]


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(changes=st.dictionaries(st.sampled_from(KEYS), VALUE, min_size=1, max_size=3))
def test_any_change_of_the_header_is_read_or_one_line(tmp_path_factory, changes):
    path = tmp_path_factory.getbasetemp() / "header.csv"
    q = np.arange(6.0).reshape(2, 3, 1)
    write(Trajectories(q=q, t=np.arange(3.0), p=q, params={"l": [1.0, 2.0]}), path)
    head, rest = path.read_text().split("\n", 1)
    header = json.loads(head.removeprefix("# dhn ")) | changes
    path.write_text(f"# dhn {json.dumps(header)}\n{rest}")
    try:
        read(path)
    except UserError as error:
        assert "\n" not in str(error)


def test_a_header_cannot_ask_for_more_memory_than_there_is(tmp_path, little_memory):
    path = tmp_path / "file.csv"
    write(Trajectories(q=np.zeros((1, 3, 1)), t=[[0, 1, 2]]), path)
    path.write_text(path.read_text().replace('"shape": [1, 3, 1]', f'"shape": [1, {10**12}, 1]'))
    with pytest.raises(UserError, match=r"its trajectories would need about 8 TB"):
        read(path)


def test_control_characters_reach_neither_terminal_nor_trajectories(tmp_path):
    path = tmp_path / "file.csv"
    q = np.arange(3.0).reshape(1, 3, 1)
    units = {"q": "\x1b[31mm\x07", "t": "s\u202e"}
    data = Trajectories(
        q=q, t=np.arange(3.0), units=units, system="a\x1b]0;x", meta={"k\x9b": "\r"}
    )
    write(data, path)
    assert path.read_bytes().isascii() and b"\x1b" not in path.read_bytes()
    again = read(path)
    assert again.units == {"q": r"\x1b[31mm\x07", "t": r"s\u202e"} and again.system == r"a\x1b]0;x"
    assert again.meta == {r"k\x9b": r"\r"}
    np.savez(tmp_path / "a.npz", **{"\x1b[31mx": q, "t": np.arange(20.0)})
    (tmp_path / "b.txt").write_text("t [s],\x1b[31mx [\x1b[1mm]\n" + "1,2\n2,3\n" * 4)
    for call in (lambda: read(tmp_path / "a.npz"), lambda: import_measured(tmp_path / "b.txt")):
        with pytest.raises(UserError) as caught:
            call()
        assert "[31mx" in str(caught.value) and str(caught.value).isprintable()


def test_escapes_in_a_header_do_not_reach_the_terminal(tmp_path, capsys):
    path = tmp_path / "file.csv"
    write(Trajectories(q=np.zeros((1, 3, 1)), t=[0, 1, 2], units={"q": "m"}, system="s"), path)
    head, rest = path.read_text().split("\n", 1)
    header = json.loads(head.removeprefix("# dhn "))
    header |= {"units": {"q": "\x1b[2Jm"}, "system": "\x1b]0;owned\x07", "fingerprint": None}
    path.write_text(f"# dhn {json.dumps(header)}\n{rest}")
    assert main(["inspect", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "[2Jm" in shown and "owned" in shown and "\x1b" not in shown and "\x07" not in shown
    header["ids"] = ["\x1b[2J"]
    path.write_text(f"# dhn {json.dumps(header)}\n{rest}")
    assert main(["inspect", str(path)]) == 2
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "label", ["=1+1", "+A1", "@SUM(A1)", "-cmd", "'=x", "a,b", "a;b", '"', "-5"]
)
def test_spreadsheets_do_not_run_ids_and_names(tmp_path, label):
    path = tmp_path / "file.csv"
    q = np.ones((1, 2, 1))
    data = Trajectories(q=q, t=[0, 1], p=q, ids=(label,), names=(label,))
    write(data, path)
    assert read(path).equals(data)
    lines = path.read_text().splitlines(keepends=True)
    cells = [x for line in lines[1:] for x in line.strip().split(",")]
    assert not any(x.strip('"')[:1] in ("=", "+", "@") for x in cells)
    path.write_text("".join(lines[1:]))
    assert read(path).ids == (label,) and read(path).names == (label,)


def test_many_columns_take_seconds(tmp_path):
    """Linear in the number of columns; quadratic checks took minutes."""
    path = tmp_path / "wide.csv"
    d = 50_000
    names = ",".join(f"q{k}" for k in range(d))
    path.write_text(f"t,{names}\n0{',2' * d}\n1{',3' * d}\n")
    data = read(path)
    assert data.q.shape == (1, 2, d)
    with pytest.raises(UserError) as caught:
        read(path, {"x": "q"})
    assert len(str(caught.value)) < 500


def test_empty_cells_are_missing_numbers(tmp_path):
    path = tmp_path / "file.csv"
    path.write_text("t,q,p\n0,1,2\n1,2,\n2,,\n3,4,5\n4,,\n")
    data = read(path)
    np.testing.assert_array_equal(data.q[0, :, 0], [1, 2, np.nan, 4, np.nan])
    np.testing.assert_array_equal(data.p[0, :, 0], [2, np.nan, np.nan, 5, np.nan])
    assert data.t.tolist() == [0, 1, 2, 3, 4]
    path.write_text("trajectory,t,q\na,0,1\na,1,2\nb,0,3\nb,1,\nb,2,\n")
    data = read(path)
    assert data.t.tolist() == [0, 1, 2] and np.isnan(data.q[1, 1:]).all()
