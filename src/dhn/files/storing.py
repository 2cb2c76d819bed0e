"""Writing trajectories larger than memory into a Zarr folder, piece after piece."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final

import numpy as np

from dhn.checks import as_path
from dhn.errors import UserError, os_errors
from dhn.files.arrays import HEADER, check_alike, in_common, trajectory_axis
from dhn.files.atomic import beside
from dhn.files.source import PIECE
from dhn.files.stored import CHUNK, COMPLETE, ENDING, is_own, rows_of_array
from dhn.trajectories.container import Trajectories
from dhn.trajectories.contents import header_dict, number_arrays
from dhn.trajectories.frames import optional

ID_BYTES = 16  # of most labels; longer ones widen the array


@final
class Store:
    """A Zarr folder that is being written, piece after piece."""

    def __init__(self, folder: Path, chunk: int):
        self._group = optional("zarr").create_group(folder)
        self._chunk, self.count = chunk, 0
        self._header: dict[str, Any] = {}
        self._common: dict[str, Any] = {}
        self._arrays: dict[str, Any] = {}

    def append(self, data: Trajectories) -> None:
        """Write these trajectories behind the others.

        Arguments:
            data: Of the same coordinates, parameters, number of states and, if shared, times.
        """
        if data.code_group:
            raise UserError(
                f"a {ENDING} folder holds trajectories with codes of their own; these share codes. "
                f"Write them into an .npz file."
            )
        header, arrays = header_dict(data), number_arrays(data)
        ids = list(header.pop("ids"))
        if self.count and ids == [str(i) for i in range(len(ids))]:
            ids = [str(self.count + i) for i in range(len(ids))]
        if self.count:
            check_alike(data, self._common, but=("meta",))
        else:
            self._header, self._common = header, in_common(data)
            for name, array in arrays.items():
                self._create(name, array)
            self._create("ids", np.empty((0, ID_BYTES), np.uint8))
        labels = [x.encode() for x in ids]
        old = self._arrays["ids"].shape[1]
        width = max(old, max(map(len, labels)))
        text = np.array([list(x.ljust(width, b"\0")) for x in labels], np.uint8)
        self._arrays["ids"].resize((self.count, width))
        if self.count and width > old:
            self._arrays["ids"][:, old:] = 0
        last = self.count + len(data)
        for name, array in {**arrays, "ids": text}.items():
            axis = trajectory_axis(name, array.ndim)
            if axis is not None:
                target = self._arrays[name]
                target.resize((*target.shape[:axis], last, *target.shape[axis + 1 :]))
                target[rows_of_array(axis, self.count, last)] = array
        self.count = last
        kept = {k: x for k, x in self._header["meta"].items() if header["meta"].get(k) == x}
        self._header = self._header | {"meta": kept}
        shape = [last, *data.q.shape[1:]]
        self._group.attrs[HEADER] = self._header | {"shape": shape, COMPLETE: True}

    def _create(self, name: str, array: np.ndarray) -> None:
        from zarr.codecs import Crc32cCodec

        shape, chunks = list(array.shape), list(array.shape)
        axis = trajectory_axis(name, array.ndim)
        if axis is not None:
            shape[axis], chunks[axis] = 0, self._chunk
        self._arrays[name] = self._group.create_array(
            name, shape=tuple(shape), chunks=tuple(max(x, 1) for x in chunks), dtype=array.dtype,
            compressors=(Crc32cCodec(),), config={"write_empty_chunks": True},
        )  # fmt: skip
        if axis is None:
            self._arrays[name][...] = array


@contextlib.contextmanager
def writing(path: str | os.PathLike[str], chunk: int = CHUNK) -> Iterator[Store]:
    """A folder that takes the place of `path` once everything has been appended to it.

    Arguments:
        path: Name of the folder, ending in `.zarr`; an older one of trajectories is replaced.
        chunk: Trajectories of a chunk.

    Returns:
        A `Store`, for the block; nothing half-written remains after an error.
    """
    path = as_path(path)
    optional("zarr")
    if path.exists() and not is_own(path):
        raise UserError(f"{path} exists and holds no trajectories of dhn; name another folder.")
    if not path.parent.is_dir():
        raise UserError(f"the folder {path.parent} does not exist; create it first.")
    temporary = beside(path)
    try:
        with os_errors(f"{path} cannot be written"):
            store = Store(temporary, chunk)
            yield store
            if not store.count:
                raise UserError(f"{path}: there are no trajectories to write.")
            old = beside(path)
            if path.exists():
                os.replace(path, old)
            os.replace(temporary, path)
            shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_store(data: Trajectories, path: str | os.PathLike[str]) -> None:
    """Write trajectories that are in memory as a Zarr folder."""
    with writing(path) as store:
        for first in range(0, len(data), PIECE):
            store.append(data[first : first + PIECE])
