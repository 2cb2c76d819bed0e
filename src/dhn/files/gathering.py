"""A file of trajectories that come in pieces: memory does not grow with their number."""

import contextlib
import functools
import json
import math
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, final

import numpy as np

from dhn.errors import UserError, os_errors
from dhn.files.arrays import HEADER, check_alike, in_common, own_sizes, trajectory_axis
from dhn.files.atomic import atomic_path
from dhn.files.files import cleaned, format_of, write
from dhn.trajectories.container import Trajectories
from dhn.trajectories.contents import BLOCK, digest_blocks, header_dict, header_text, number_arrays

Shape = tuple[int, ...]


@contextlib.contextmanager
def gathered(
    pieces: Iterable[Trajectories], path: Path, count: int
) -> Iterator[Callable[[Path], None]]:
    """All pieces, and a function that writes them into one file; nothing half-written remains.

    An .npz file is gathered on the disk and written byte for byte as `write` does; for other
    formats the pieces are joined in memory.

    Arguments:
        pieces: Trajectories of the same coordinates, parameters, quantiles and number of states.
        path: The file; the ending of its name gives the format.
        count: Trajectories of all pieces together.

    Returns:
        A context that gives `save(path)`; it can be called again if a disk is full.
    """
    if format_of(path).module != "npz":
        parts = list(pieces)
        data = parts[0] if len(parts) == 1 else Trajectories.concatenate(parts)
        yield functools.partial(write, data)
        return
    with contextlib.ExitStack() as files:
        with os_errors(f"{path} cannot be written"):
            found = _gather(pieces, path.parent, count, files)
        yield functools.partial(_save, found)


@final
class _Gathered:
    """The arrays of all pieces, each in a file without a name; quantiles in one for each level."""

    def __init__(self, first: Trajectories, folder: Path, count: int, stack: contextlib.ExitStack):
        self.common, self.count = in_common(first), count
        self.header = header_dict(first) | {"shape": [count, first.states, first.dim], "ids": []}
        self.sizes = {name: own_sizes(self.header)[name] for name in number_arrays(first)}
        self.files: dict[str, list[IO[bytes]]] = {}
        for name, size in self.sizes.items():
            number = size[0] if trajectory_axis(name, len(size)) == 1 else 1
            made = (tempfile.TemporaryFile(dir=folder) for _ in range(number))  # noqa: SIM115
            self.files[name] = [stack.enter_context(file) for file in made]
            for file in self.files[name]:
                if hasattr(os, "posix_fallocate"):  # a full disk is noticed now, not at the end
                    length = math.prod(size) // number * _kind(name).itemsize
                    os.posix_fallocate(file.fileno(), 0, length)

    def add(self, piece: Trajectories) -> None:
        ids, begun = self.header["ids"], bool(self.header["ids"])
        check_alike(piece, self.common)
        if len(ids) + len(piece) > self.count:
            raise UserError(f"{self.count} trajectories were to be written; more came.")
        ids += piece.ids
        if begun and piece.code_group:
            self.header["code_group"] += piece.code_group
        for name, array in number_arrays(piece).items():
            axis = trajectory_axis(name, array.ndim)
            if not (begun and axis is None):
                levels = array if axis == 1 else [array]
                for file, values in zip(self.files[name], levels, strict=True):
                    file.write(np.ascontiguousarray(values, _kind(name)).tobytes())

    def blocks(self, name: str) -> Iterator[np.ndarray]:
        for file in self.files[name]:
            file.seek(0)
            while content := file.read(BLOCK * _kind(name).itemsize):
                yield np.frombuffer(content, _kind(name))

    def whole_header(self) -> bytes:
        parts = {name: (size, self.blocks(name)) for name, size in self.sizes.items()}
        sha256 = digest_blocks([header_text(self.header)], parts)
        return json.dumps(self.header | {"sha256": sha256}).encode()


def _kind(name: str) -> np.dtype:
    return np.dtype(bool if name == "known" else np.float64)


def _gather(
    pieces: Iterable[Trajectories], folder: Path, count: int, files: contextlib.ExitStack
) -> _Gathered:
    found = None
    for piece in map(cleaned, pieces):
        found = found or _Gathered(piece, folder, count, files)
        found.add(piece)
    if found is None or len(found.header["ids"]) != count:
        raise UserError(f"{count} trajectories were to be written; fewer came.")
    return found


def _save(gathered: _Gathered, path: Path) -> None:
    with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        text = np.frombuffer(gathered.whole_header(), np.uint8)
        _member(archive, HEADER, text.dtype, text.shape, [text])
        for name, size in gathered.sizes.items():
            _member(archive, name, _kind(name), size, gathered.blocks(name))


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
