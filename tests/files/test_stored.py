"""Trajectories in a Zarr folder are the same trajectories, read and written in pieces."""

import builtins
import json
import shutil
import sys

import numpy as np
import pytest

import dhn
from dhn.errors import UserError
from dhn.files import read, write
from dhn.files.storing import writing
from dhn.systems import simulate
from dhn.systems.simulation import PIECE, simulate_pieces
from dhn.trajectories import Trajectories

zarr = pytest.importorskip("zarr")


@pytest.fixture
def data():
    found = simulate(
        "double_pendulum", trajectories=11, steps=6, seed=3, noise=0.01, gaps=0.2, subsample=0.8
    )
    levels = {0.05: found.q - 1, 0.95: found.q + 1}
    ids = tuple(f"ü{'x' * (3 * k)}" for k in range(11))  # longer than the first width
    return found.replace(q_quantiles=levels, p_quantiles={0.5: found.q}, ids=ids)


def test_what_is_written_comes_back(data, tmp_path):
    write(data, tmp_path / "x.zarr")
    assert read(tmp_path / "x.zarr").equals(data)
    stored = dhn.open(tmp_path / "x.zarr")
    assert (len(stored), stored.states, stored.dim) == data.q.shape
    assert stored[3:7].equals(data[3:7])
    assert stored.fingerprint() == data.fingerprint()
    assert dhn.as_trajectories(stored).equals(data)


@pytest.mark.parametrize("size", [1, 3, 4, 11])
def test_pieces_of_any_size_make_the_same_folder(data, tmp_path, size):
    with writing(tmp_path / "x.zarr", chunk=4) as store:
        for first in range(0, len(data), size):
            store.append(data[first : first + size])
    stored = dhn.open(tmp_path / "x.zarr")
    assert stored.read().equals(data) and stored.fingerprint() == data.fingerprint()
    parts = list(stored.pieces(3))
    assert [len(x) for x in parts] == [3, 3, 3, 2]
    assert Trajectories.concatenate(parts).equals(data)


def test_numbered_pieces_are_numbered_on(tmp_path):
    one = simulate("single_pendulum", trajectories=2, steps=4)
    with writing(tmp_path / "x.zarr") as store:
        store.append(one)
        store.append(one)
    assert read(tmp_path / "x.zarr").ids == ("0", "1", "2", "3")


def test_pieces_that_do_not_fit_together_are_refused(tmp_path):
    one = simulate("single_pendulum", trajectories=2, steps=4)
    others = {
        "shape, t;": one[:, :3],
        "names, units;": one.replace(names=("x",), units={}),
        "in t;": one.replace(t=one.t + 1),
        "params;": one.replace(params={**one.params, "x": np.ones(2)}),
    }
    for text, other in others.items():
        with pytest.raises(UserError, match=text), writing(tmp_path / "x.zarr") as store:
            store.append(one)
            store.append(other)
        assert list(tmp_path.iterdir()) == []


def test_a_new_folder_replaces_an_old_one_only_when_it_is_whole(tmp_path):
    first = simulate("single_pendulum", trajectories=2, steps=4)
    write(first, tmp_path / "x.zarr")
    with pytest.raises(ZeroDivisionError), writing(tmp_path / "x.zarr") as store:
        store.append(first[:1])
        raise ZeroDivisionError
    assert read(tmp_path / "x.zarr").equals(first)
    write(first[:1], tmp_path / "x.zarr")
    assert len(read(tmp_path / "x.zarr")) == 1
    assert [x.name for x in tmp_path.iterdir()] == ["x.zarr"]
    (tmp_path / "mine.zarr").mkdir()
    with pytest.raises(UserError, match="exists and holds no trajectories of dhn"):
        write(first, tmp_path / "mine.zarr")


def test_damage_is_noticed(tmp_path):
    write(simulate("single_pendulum", trajectories=2, steps=4), tmp_path / "x.zarr")
    chunk = next(x for x in (tmp_path / "x.zarr" / "q" / "c").rglob("*") if x.is_file())
    content = bytearray(chunk.read_bytes())
    content[5] ^= 1
    chunk.write_bytes(content)
    with pytest.raises(UserError, match=r"array 'q' cannot be read .* damaged"):
        read(tmp_path / "x.zarr")
    (tmp_path / "x.zarr" / "zarr.json").write_text("{}")
    with pytest.raises(UserError, match="no folder of trajectories that dhn wrote"):
        dhn.open(tmp_path / "x.zarr")


def test_one_line_for_what_is_not_there(tmp_path, monkeypatch):
    with pytest.raises(UserError, match="there is no folder"):
        dhn.open(tmp_path / "x.zarr")
    with pytest.raises(UserError, match="dhn convert"):
        dhn.open(tmp_path / "x.npz")
    for name in [x for x in sys.modules if x.split(".")[0] == "zarr"]:
        monkeypatch.delitem(sys.modules, name)
    found = builtins.__import__

    def without_zarr(name, *args, **kwargs):
        if name.split(".")[0] == "zarr":
            raise ImportError(name)
        return found(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_zarr)
    with pytest.raises(UserError, match=r'pip install "dhn\[zarr\]"'):
        dhn.open(tmp_path / "x.zarr")
    with pytest.raises(UserError, match=r'pip install "dhn\[zarr\]"'):
        write(simulate("single_pendulum", trajectories=1, steps=4), tmp_path / "x.zarr")


def test_simulation_in_pieces(monkeypatch):
    monkeypatch.setattr("dhn.systems.simulation.PIECE", 4)
    parts = list(simulate_pieces("single_pendulum", 10, seed=5, steps=4, noise=0.1, gaps=0.2))
    assert [len(x) for x in parts] == [4, 4, 2] and PIECE == 4096
    whole = simulate("single_pendulum", 4, seed=5, steps=4, noise=0.1, gaps=0.2)
    assert parts[0].equals(whole)
    assert all(np.array_equal(x.noise, whole.noise) for x in parts)
    lengths = np.concatenate([x.params["l"] for x in parts])
    assert len(np.unique(lengths)) == 10


def edit(path, change):
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


def header(**changes):
    """Change what stands in the header of a folder; `...` deletes it."""

    def change(values):
        found = values["attributes"]["dhn"]
        found.update(changes)
        for key in [key for key, x in changes.items() if x is ...]:
            del found[key]

    return lambda folder: edit(folder / "zarr.json", change)


def array(name, **changes):
    return lambda folder: edit(folder / name / "zarr.json", lambda x: x.update(changes))


def shorter(folder):
    chunk = next((folder / "q" / "c").rglob("0"))
    while chunk.is_dir():
        chunk = next(chunk.iterdir())
    chunk.write_bytes(chunk.read_bytes()[:-9])


def unreadable_ids(folder):
    zarr.open_group(folder, mode="r+")["ids"][:] = 255


DAMAGES = {
    **{f"{k} {x!r}": header(**{k: x}) for k, x in [
        ("names", [3, 4]), ("names", ["a"]), ("angles", "x"), ("params", ["l"]), ("units", [1]),
        ("meta", None), ("layout", "2"), ("layout", 99), ("shape", [1, 2, 3]), ("shape", [11]),
        ("fields", ["p", "zz"]), ("shared_time", 3), ("system", 5), ("q_levels", ["a"]),
        ("p_levels", []), ("q_levels", ...), ("shape", ...), ("names", ...), ("ids", ["a"]),
    ]},
    "no q": lambda folder: shutil.rmtree(folder / "q"),
    "no ids": lambda folder: shutil.rmtree(folder / "ids"),
    "no numbers of q": lambda folder: shutil.rmtree(folder / "q" / "c"),
    "no numbers of t": lambda folder: shutil.rmtree(folder / "t" / "c"),
    "no quantiles": lambda folder: shutil.rmtree(folder / "q_quantiles" / "c"),
    "no labels": lambda folder: shutil.rmtree(folder / "ids" / "c"),
    "header cut": lambda folder: (folder / "zarr.json").write_text("{"),
    "header deep": lambda folder: (folder / "zarr.json").write_text(100_000 * "["),
    "q of another shape": array("q", shape=[11, 7]),
    "q of no length": array("q", shape=[0, 7, 2]),
    "q of letters": array("q", data_type="string"),
    "chunks of no length": array("q", chunk_grid={
        "name": "regular", "configuration": {"chunk_shape": [0, 7, 2]}}),
    "unknown codec": array("q", codecs=[{"name": "evil"}]),
    "chunk cut": shorter,
    "labels that are no text": unreadable_ids,
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_one_line(data, tmp_path, damage):
    path = tmp_path / "x.zarr"
    write(data, path)
    DAMAGES[damage](path)
    for use in (lambda x: x.read(), lambda x: x.fingerprint()):
        with pytest.raises(UserError) as caught:
            use(dhn.open(path))
        assert "\n" not in str(caught.value) and str(path) in str(caught.value)


def test_rows_that_are_not_there_are_refused_before_they_are_looked_for(data, tmp_path):
    """A header and arrays that agree on 10^12 trajectories, of which eleven are there."""
    path = tmp_path / "x.zarr"
    write(data, path)
    many = 10**12
    header(shape=[many, *data.q.shape[1:]])(path)
    for name in ("q", "p", "t", "known", "params", "ids", "q_quantiles", "p_quantiles"):
        axis = 1 if name.endswith("quantiles") else 0
        edit(path / name / "zarr.json", lambda x, axis=axis: x["shape"].__setitem__(axis, many))
    stored = dhn.open(path)
    with pytest.raises(UserError, match="of memory, and"):
        stored.read()
    with pytest.raises(UserError, match="is lost"):
        stored.fingerprint()


def test_zeros_are_written_and_folders_of_before_leave_them_out(tmp_path):
    still = Trajectories(q=np.zeros((3, 5, 1)), t=np.arange(5.0))
    path = tmp_path / "x.zarr"
    write(still, path)
    assert read(path).equals(still)
    shutil.rmtree(path / "q" / "c")
    header(complete=...)(path)
    assert read(path).equals(still)


@pytest.mark.usefixtures("as_users_have_it")
@pytest.mark.parametrize("ask", [
    lambda x: x[0], lambda x: x["a":"b"], lambda x: x[1.5:3], lambda x: x[::2], lambda x: x[11:],
    lambda x: x.chunks(3), lambda x: x.chunks([]), lambda x: x.chunks([9]), lambda x: x.chunks("x"),
    lambda x: x.chunks([-1]), lambda x: list(x.pieces(0)), lambda x: list(x.pieces("x")),
    lambda x: x.spans([]), lambda x: x.rows_of(1.5),
])  # fmt: skip
def test_questions_that_make_no_sense_are_refused(data, tmp_path, ask):
    write(data, tmp_path / "x.zarr")
    with pytest.raises(UserError):
        ask(dhn.open(tmp_path / "x.zarr"))
