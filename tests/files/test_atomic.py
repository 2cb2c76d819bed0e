"""A file is written whole or not at all."""

import os

import numpy as np
import pytest

from dhn.errors import UserError
from dhn.files import FORMATS, write
from dhn.files.atomic import atomic_path
from dhn.files.formats import npz
from dhn.trajectories import Trajectories

DATA = Trajectories(q=np.zeros((1, 2, 1)), t=np.arange(2.0))


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_path(path) as temporary:
        temporary.write_text("half of the n")
        raise RuntimeError
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["file.txt"]


@pytest.mark.parametrize("ending", [*FORMATS, *map(str.upper, FORMATS)])
@pytest.mark.parametrize("length", [10, 255])
def test_only_the_file_itself_is_left_whatever_its_name(tmp_path, ending, length):
    path = tmp_path / f"{'x' * (length - len(ending))}{ending}"
    for _ in range(2):
        write(DATA, path)
        assert os.listdir(tmp_path) == [path.name]
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


def test_a_full_disk_is_one_line(tmp_path, monkeypatch):
    def full(path, arrays):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(npz, "save", full)
    path = tmp_path / "file.npz"
    with pytest.raises(UserError, match=r"file.npz cannot be written: No space left on device\."):
        write(DATA, path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "name, message",
    [
        ("", "the ending '' is not one of"),
        ("missing/file.npz", "does not exist; create it first"),
        ("folder.npz", "is a folder; give the name of a file"),
        ("file.pkl", "the ending '.pkl' is not one of .npz, .csv"),
    ],
)
def test_wrong_places_are_named(tmp_path, name, message):
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(UserError) as caught:
        write(DATA, tmp_path / name)
    assert message in str(caught.value)
