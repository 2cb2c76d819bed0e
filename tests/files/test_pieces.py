"""Files read and written in pieces hold what files read and written at once do."""

import tracemalloc

import numpy as np
import pytest

import dhn
from dhn.errors import UserError
from dhn.files.gathering import gathered
from dhn.files.pieces import open_pieces
from dhn.files.source import InMemory
from dhn.trajectories import Trajectories

SIZES = (1, 2, 7)


def some(n=5, states=6, shared=True, seed=0):
    """Trajectories with every field, gaps and quantiles; without shared times, with noise of each
    number and with shared codes."""
    random = np.random.default_rng(seed)
    q, p = random.normal(size=(2, n, states, 2))
    q[0, 2] = np.nan
    t = np.arange(states) * 0.1
    return Trajectories(
        q=q, p=p, t=t if shared else t + np.arange(n)[:, None],
        params={"l": random.normal(size=n), "m": np.ones(n)},
        names=("a", "b"), angles=(True, False), units={"a": "rad"}, system="toy",
        ids=tuple(f"run {i}" for i in range(n)),
        noise=np.full((2, 2), 0.1) if shared else random.uniform(size=(n, states, 2, 2)),
        code_group=() if shared else tuple("ab"[i % 2] for i in range(n)),
        q_quantiles={0.05: q - 1, 0.95: q + 1}, p_quantiles={0.5: p},
        meta={"seed": 3},
    )  # fmt: skip


def write_pieces(pieces, path, count):
    with gathered(pieces, path, count) as save:
        save(path)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shared", [True, False])
def test_pieces_of_a_file_are_its_rows(tmp_path, size, shared):
    data = some(shared=shared)
    dhn.write(data, tmp_path / "x.npz")
    with open_pieces(tmp_path / "x.npz") as source:
        assert not isinstance(source, InMemory)
        assert (len(source), source.states, source.dim) == data.q.shape
        pieces = list(source.pieces(size))
    assert all(a.equals(data[i * size : (i + 1) * size]) for i, a in enumerate(pieces))
    assert sum(map(len, pieces)) == len(data)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shared", [True, False])
def test_a_file_written_in_pieces_has_the_same_bytes(tmp_path, size, shared):
    data = some(shared=shared)
    dhn.write(data, tmp_path / "whole.npz")
    write_pieces(InMemory(data).pieces(size), tmp_path / "pieces.npz", len(data))
    assert (tmp_path / "pieces.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


@pytest.mark.parametrize("ending", [".csv", ".npz"])
def test_other_formats_are_read_and_written_likewise(tmp_path, ending):
    data = some()
    write_pieces(InMemory(data).pieces(2), tmp_path / f"x{ending}", len(data))
    with open_pieces(tmp_path / f"x{ending}") as source:
        assert next(source.pieces(9)).equals(dhn.read(tmp_path / f"x{ending}"))


def test_compressed_and_foreign_archives_are_read_whole(tmp_path):
    data = some()
    np.savez_compressed(tmp_path / "x.npz", q=data.q, t=data.t)
    with open_pieces(tmp_path / "x.npz") as source:
        assert isinstance(source, InMemory)
        np.testing.assert_array_equal(next(source.pieces(9)).q, data.q)


def test_a_flipped_byte_is_noticed_before_the_first_piece(tmp_path):
    dhn.write(some(), tmp_path / "x.npz")
    whole = (tmp_path / "x.npz").read_bytes()
    at = whole.index(some().p.tobytes()) + 3
    (tmp_path / "x.npz").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with (
        pytest.raises(UserError, match=r"x\.npz: .*(damaged|CRC)"),
        open_pieces(tmp_path / "x.npz"),
    ):
        pass


def test_a_file_that_shrinks_while_it_is_read_is_one_line(tmp_path):
    dhn.write(some(states=2000), tmp_path / "x.npz")
    with open_pieces(tmp_path / "x.npz") as source:
        with open(tmp_path / "x.npz", "r+b") as file:
            file.truncate(100)
        with pytest.raises(UserError, match="changed while it was read"):
            source.rows(0, 2)


def test_pieces_that_do_not_fit_leave_nothing(tmp_path):
    (tmp_path / "x.npz").write_text("old")
    for pieces, count in (
        ([some(), some(states=7)], 10),
        ([some(), some(shared=False)], 10),
        ([some()], 6),
        ([some()], 4),
        ([], 1),
    ):
        with pytest.raises(UserError):
            write_pieces(pieces, tmp_path / "x.npz", count)
    assert [x.name for x in tmp_path.iterdir()] == ["x.npz"]
    assert (tmp_path / "x.npz").read_text() == "old"


def test_memory_does_not_grow_with_the_number_of_trajectories(tmp_path):
    piece = some(n=64, states=800).replace(q_quantiles={}, p_quantiles={})

    def peak(count):
        pieces = (
            piece.replace(ids=tuple(f"{i}-{k}" for k in range(len(piece)))) for i in range(count)
        )
        tracemalloc.start()
        write_pieces(pieces, tmp_path / "x.npz", count * len(piece))
        with open_pieces(tmp_path / "x.npz") as source:
            for _ in source.pieces(len(piece)):
                pass
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    # Twenty more pieces hold 33 MB of q and p; their labels stay in memory.
    assert peak(40) - peak(20) < 2 * piece.q.nbytes
