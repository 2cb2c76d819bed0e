"""A file of trajectories that come in pieces: memory does not grow with their number."""

import contextlib
import functools
import json
import math
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, final

import numpy as np

from dhn.checks import as_path
from dhn.errors import UserError
from dhn.files.arrays import HEADER, own_sizes
from dhn.files.atomic import atomic_path
from dhn.files.files import cleaned, write
from dhn.files.loading import format_of
from dhn.files.pieces import LEVELS_FIRST, SHARED
from dhn.trajectories.container import Trajectories
from dhn.trajectories.contents import BLOCK, digest_blocks, header_dict, number_arrays

Shape = tuple[int, ...]


def write_pieces(pieces: Iterable[Trajectories], path: str | os.PathLike[str], count: int) -> None:
    """Write trajectories that come in pieces into one file; nothing half-written remains.

    An .npz file is written as the pieces come, byte for byte as `write` does; for other formats
    they are joined in memory.

    Arguments:
        pieces: Trajectories of the same coordinates, parameters, quantiles and number of states.
        path: The file; the ending of its name gives the format.
        count: Trajectories of all pieces together.
    """
    path = as_path(path)
    with gathered(pieces, path, count) as save:
        save(path)


@contextlib.contextmanager
def gathered(
    pieces: Iterable[Trajectories], path: Path, count: int
) -> Iterator[Callable[[Path], None]]:
    """All pieces, on the disk of `path` or in memory, and a function that writes them to a file.

    Arguments:
        pieces, path, count: As for `write_pieces`.

    Returns:
        A context that gives `save(path)`; it can be called again if a disk is full.
    """
    if format_of(path).module != "npz":
        parts = list(pieces)
        data = parts[0] if len(parts) == 1 else Trajectories.concatenate(parts)
        yield functools.partial(write, data)
        return
    with _scratch(path) as file:
        yield functools.partial(_save, _gather(pieces, file, count))


@contextlib.contextmanager
def _scratch(path: Path) -> Iterator[IO[bytes]]:
    """A file without a name beside `path`, gone when it is closed, even by a crash."""
    try:
        file = tempfile.TemporaryFile(dir=path.parent)  # noqa: SIM115
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}.") from error
    with file:
        try:
            yield file
        except OSError as error:
            raise UserError(f"{path} cannot be written: {error.strerror or error}.") from error


@final
class _Gathered:
    """Arrays of known shapes, one after the other in a file without a name."""

    def __init__(self, first: Trajectories, file: IO[bytes], count: int):
        self.file, self.count = file, count
        self.common = _common(first)
        self.header = header_dict(first) | {"shape": [count, first.states, first.dim]}
        self.ids: list[str] = []
        self.sizes: dict[str, Shape] = {}
        self.types: dict[str, np.dtype] = {}
        self.starts: dict[str, int] = {}
        position = 0
        sizes = own_sizes(self.header)
        for name, array in number_arrays(first).items():
            self.sizes[name], self.types[name] = sizes[name], array.dtype
            self.starts[name] = position
            position += math.prod(sizes[name]) * array.dtype.itemsize
        if hasattr(os, "posix_fallocate"):  # a full disk is noticed now, not at the end
            os.posix_fallocate(file.fileno(), 0, position)

    def add(self, piece: Trajectories) -> None:
        done = len(self.ids)
        self.ids += piece.ids
        if _common(piece) != self.common or len(self.ids) > self.count:
            raise UserError("the pieces of one file must have the same fields and states.")
        for name, array in number_arrays(piece).items():
            if name in SHARED or array.shape == self.sizes[name] == (piece.states,):
                self._put(name, 0, array)
            elif name in LEVELS_FIRST:
                row = math.prod(self.sizes[name][2:])
                for level, values in enumerate(array):
                    self._put(name, (level * self.count + done) * row, values)
            else:
                self._put(name, done * math.prod(self.sizes[name][1:]), array)

    def _put(self, name: str, first: int, array: np.ndarray) -> None:
        self.file.seek(self.starts[name] + first * self.types[name].itemsize)
        self.file.write(np.ascontiguousarray(array, self.types[name]).tobytes())

    def blocks(self, name: str) -> Iterator[np.ndarray]:
        kind, size = self.types[name], math.prod(self.sizes[name])
        for first in range(0, size, BLOCK):
            self.file.seek(self.starts[name] + first * kind.itemsize)
            number = min(BLOCK, size - first)
            yield np.frombuffer(self.file.read(number * kind.itemsize), kind, number)

    def whole_header(self) -> bytes:
        header = self.header | {"ids": self.ids}
        parts = {name: (size, self.blocks(name)) for name, size in self.sizes.items()}
        return json.dumps(header | {"sha256": digest_blocks(header, parts)}).encode()


def _gather(pieces: Iterable[Trajectories], file: IO[bytes], count: int) -> _Gathered:
    found = None
    for piece in pieces:
        piece = cleaned(piece)
        found = found or _Gathered(piece, file, count)
        found.add(piece)
    if found is None or len(found.ids) != count:
        raise UserError(f"{count} trajectories were to be written; fewer came.")
    return found


def _save(gathered: _Gathered, path: Path) -> None:
    with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        text = np.frombuffer(gathered.whole_header(), np.uint8)
        _member(archive, HEADER, text.dtype, text.shape, [text])
        for name, size in gathered.sizes.items():
            _member(archive, name, gathered.types[name], size, gathered.blocks(name))


def _member(
    archive: zipfile.ZipFile, name: str, kind: np.dtype, shape: Shape, blocks: Iterable[np.ndarray]
) -> None:
    """One array, as `np.savez` writes it."""
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        header = {
            "descr": np.lib.format.dtype_to_descr(kind),
            "fortran_order": False,
            "shape": shape,
        }
        np.lib.format.write_array_header_1_0(file, header)
        for block in blocks:
            file.write(block.tobytes())


def _common(piece: Trajectories) -> Mapping[str, Any]:
    """What must be the same in all pieces."""
    shared = {"t": piece.t, "noise": piece.noise} if piece.t.ndim == 1 else {"noise": piece.noise}
    numbers = {k: None if x is None else x.tobytes() for k, x in shared.items()}
    return header_dict(piece) | {"ids": None, "shape": piece.q.shape[1:]} | numbers
