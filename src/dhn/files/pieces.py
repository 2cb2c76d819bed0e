"""The trajectories of a file, a few at a time, so that memory does not grow with their number."""

import contextlib
import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, final

import numpy as np

from dhn.errors import UserError
from dhn.files import stored
from dhn.files.arrays import HEADER, own_fields, own_header, own_sizes, trajectory_axis
from dhn.files.files import read, upgraded
from dhn.files.source import AbstractSource, InMemory
from dhn.trajectories.container import Trajectories
from dhn.trajectories.contents import BLOCK, digest_blocks, header_text

_ZIP_LOCAL = 30
"""Bytes of a local header of a .zip before its name and extra field."""


@contextlib.contextmanager
def open_pieces(path: Path, verify: bool = True) -> Iterator[AbstractSource]:
    """A file of trajectories, verified whole, to be read in pieces.

    Our own .npz files and .zarr folders are read from the disk as pieces are asked for; other files
    are loaded.

    Arguments:
        path: As for `read`.
        verify: Whether to read all of it first, to compare its checksum; a process that shares
            the file with others leaves that to one of them.

    Returns:
        A context that gives the source.
    """
    with contextlib.ExitStack() as stack:
        source = stored.open(path) if stored.is_store(path) else None
        if path.suffix.lower() == ".npz" and path.is_file():  # opening a pipe would wait for ever
            # Whatever is wrong with the file, `read` explains it.
            with contextlib.suppress(Exception):
                source = _Stored(path, stack.enter_context(open(path, "rb")), verify)
        yield InMemory(read(path)) if source is None else source


@final
class _Stored(AbstractSource):
    """One of our own .npz files, whose arrays are not compressed."""

    def __init__(self, path: Path, file: IO[bytes], verify: bool):
        arrays = _stored_arrays(file)
        self._path, self._arrays = path, arrays
        self._header = own_header(arrays.pop(HEADER).all())
        self._ids = tuple(self._header["ids"])
        self.count, self.states, self.dim = self._header["shape"]
        sizes = own_sizes(self._header)
        parts = {}
        for name, size in sizes.items():
            if arrays[name].shape != size:
                raise ValueError(name)
            parts[name] = (size, arrays[name].blocks())
        stated = self._header.pop("sha256", None)
        if verify and stated != digest_blocks([header_text(self._header)], parts):
            raise ValueError("checksum")
        self._names = tuple(sizes)

    def rows(self, first: int, stop: int) -> Trajectories:
        header = self._header | {
            "ids": self._ids[first:stop],
            "shape": (stop - first, self.states, self.dim),
        }
        try:
            fields = {name: self._part(name, first, stop) for name in self._names}
        except (OSError, ValueError) as error:
            raise UserError(f"{self._path} changed while it was read; run it again.") from error
        if groups := header.get("code_group"):
            header["code_group"] = groups[first:stop]
        return upgraded(Trajectories(**own_fields(header, fields)))

    def _part(self, name: str, first: int, stop: int) -> np.ndarray:
        array = self._arrays[name]
        axis = trajectory_axis(name, len(array.shape))
        if axis is None:
            return array.all()
        if axis == 0:
            return array.rows(None, first, stop)
        return np.stack([array.rows(level, first, stop) for level in range(array.shape[0])])


@final
class _Array:
    """An array inside a file."""

    def __init__(self, file: IO[bytes], offset: int, shape: tuple[int, ...], dtype: np.dtype):
        self._file, self._offset, self.shape, self._dtype = file, offset, shape, dtype

    def _read(self, first: int, count: int) -> np.ndarray:
        self._file.seek(self._offset + first * self._dtype.itemsize)
        text = self._file.read(count * self._dtype.itemsize)
        return np.frombuffer(text, self._dtype, count).astype(self._kind)

    @property
    def _kind(self) -> type:
        return np.float64 if self._dtype != np.uint8 else np.uint8

    def all(self) -> np.ndarray:
        return self._read(0, math.prod(self.shape)).reshape(self.shape)

    def blocks(self) -> Iterator[np.ndarray]:
        size = math.prod(self.shape)
        return (self._read(first, min(BLOCK, size - first)) for first in range(0, size, BLOCK))

    def rows(self, level: int | None, first: int, stop: int) -> np.ndarray:
        """Rows of the array, or of one of its levels if its first axis counts them."""
        shape = self.shape if level is None else self.shape[1:]
        size = math.prod(shape[1:])
        start = (level or 0) * math.prod(shape) + first * size
        return self._read(start, (stop - first) * size).reshape(stop - first, *shape[1:])


def _stored_arrays(file: IO[bytes]) -> dict[str, _Array]:
    """Name -> array of an archive; a `ValueError` if one cannot be read by rows."""
    found = {}
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
    if len({x.filename for x in members}) < len(members):
        raise ValueError("two arrays have the same name")
    for member in members:
        file.seek(member.header_offset)
        local = file.read(_ZIP_LOCAL)
        lengths = int.from_bytes(local[26:28], "little"), int.from_bytes(local[28:30], "little")
        file.seek(member.header_offset + _ZIP_LOCAL + sum(lengths))
        start = file.tell()
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError(member.filename)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        size = file.tell() - start + math.prod(shape) * dtype.itemsize
        plain = dtype.kind in "fb" or dtype == np.uint8
        if member.compress_type != zipfile.ZIP_STORED or fortran or not plain:
            raise ValueError(member.filename)
        if member.file_size != size:
            raise ValueError(member.filename)
        found[member.filename.removesuffix(".npy")] = _Array(file, file.tell(), shape, dtype)
    return found
