"""Trajectories larger than memory: a Zarr folder, chunked by trajectories, read in pieces.

The folder holds one array a field, as `dhn.files.arrays` names them, and the header as the
attribute `dhn`. Ids are rows of UTF-8 bytes in an array of their own, since a million of them do
not belong into a header. Every chunk has a checksum, and all of them are written, so that a lost
one is noticed. The arrays are not compressed: measured or simulated doubles hardly shrink, and
training reads them all the time.
"""

import contextlib
import itertools
import json
import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from dhn.checks import as_path, from_json, sequence, whole
from dhn.errors import UserError
from dhn.files.arrays import HEADER, own_fields, own_sizes, parse_header, trajectory_axis
from dhn.files.source import PIECE, AbstractSource
from dhn.memory import check_memory
from dhn.trajectories.container import Trajectories
from dhn.trajectories.contents import digest_blocks, header_text
from dhn.trajectories.frames import optional
from dhn.trajectories.labels import unique

ENDING = ".zarr"
CHUNK = 256
"""Trajectories of a chunk: about 0.5 MB of 129 states with two coordinates."""
COMPLETE = "complete"
"""Key of headers of folders that hold every chunk; older ones leave out chunks of zeros."""


def is_store(path: str | os.PathLike[str]) -> bool:
    """Whether the name ends as that of a Zarr folder."""
    return Path(path).suffix.lower() == ENDING


def is_own(path: Path) -> bool:
    """Whether there is a Zarr folder that this package wrote, which may be replaced."""
    try:
        return HEADER in from_json((path / "zarr.json").read_bytes())["attributes"]
    except (OSError, ValueError, LookupError, TypeError):
        return False


def open(path: str | os.PathLike[str]) -> "StoredTrajectories":
    """Open trajectories on disk without reading them.

    Arguments:
        path: A `.zarr` folder that `dhn convert`, `dhn.write` or a command wrote.

    Returns:
        Trajectories on disk; `stored[0:1000]` reads some of them, and `DHN().fit(stored)` trains
        on all of them in pieces.
    """
    path = as_path(path)
    if not is_store(path):
        raise UserError(
            f"{path}: only {ENDING} folders are read in pieces; convert the file: "
            f"dhn convert {path} {path.stem}{ENDING}"
        )
    zarr = optional("zarr")
    if not path.is_dir():
        raise UserError(f"there is no folder {path}; check its name.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about files that are no part of a Zarr folder
            group = zarr.open_group(path, mode="r")
            arrays = {name: array for name, array in group.arrays()}
        header = parse_header(json.dumps(group.attrs[HEADER]), ids=False)
        return StoredTrajectories(path, header, arrays)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except Exception as error:  # Zarr reports damage by many kinds of exceptions
        raise UserError(
            f"{path} is no folder of trajectories that dhn wrote ({type(error).__name__}: "
            f"{str(error).splitlines()[0] if str(error) else 'no reason':.120}); write it anew."
        ) from error


@final
class StoredTrajectories(AbstractSource):
    """Trajectories in a Zarr folder. Only what is asked for is read."""

    def __init__(self, path: Path, header: Mapping[str, Any], arrays: Mapping[str, Any]):
        self.path = path
        self.header = {key: x for key, x in header.items() if key != COMPLETE}
        self._complete = COMPLETE in header
        sizes = own_sizes(header) | {"ids": (header["shape"][0], arrays["ids"].shape[1])}
        if strange := sorted(set(arrays) - set(sizes)):
            raise ValueError(f"its array {strange[0]!r} is not in its header")
        self._arrays = {name: arrays[name] for name in sizes}
        for name, array in self._arrays.items():
            plain = array.dtype.kind in "fb" or (name == "ids" and array.dtype == np.uint8)
            if tuple(array.shape) != tuple(sizes[name]) or not plain or 0 in array.chunks:
                raise ValueError(f"its array {name!r} should have shape {sizes[name]}")
        self.count, self.states, self.dim = (int(x) for x in header["shape"])
        self.names, self.angles = tuple(header["names"]), tuple(header["angles"])
        self.params: tuple[str, ...] = tuple(header["params"])
        self.system: str | None = header["system"]
        self.units, self.meta = dict(header["units"]), dict(header["meta"])
        self._axes = {k: trajectory_axis(k, x.ndim) for k, x in self._arrays.items()}
        shared = [name for name, axis in self._axes.items() if axis is None]
        self._fixed = {name: self._get(name) for name in shared}

    @property
    def chunk(self) -> int:
        """Trajectories of a chunk: what is cheapest to read together."""
        return int(self._arrays["q"].chunks[0])

    def __getitem__(self, rows: slice) -> Trajectories:
        """These trajectories, in memory; only slices of consecutive ones are read."""
        first, last, step = 0, 0, 0
        with contextlib.suppress(AttributeError, TypeError):  # no slice, or not of whole numbers
            first, last, step = rows.indices(len(self))
        if step != 1:
            raise UserError("trajectories on disk are read by slices, such as stored[0:1000].")
        if first >= last:
            raise UserError(f"no trajectories in {rows}; there are {len(self)}.")
        return self.rows(first, last)

    def rows(self, first: int, stop: int) -> Trajectories:
        return self.spans([(first, stop)])

    def chunks(self, numbers: Sequence[int]) -> Trajectories:
        """The trajectories of these chunks, one chunk after the other.

        Arguments:
            numbers: Chunk 0 holds the first `chunk` trajectories, and so on.

        Returns:
            Trajectories in memory.
        """
        size = self.chunk
        return self.spans(
            [(size * k, size * k + self.rows_of(k)) for k in sequence("numbers", numbers)]
        )

    def rows_of(self, number: int) -> int:
        """How many trajectories this chunk holds."""
        last = math.ceil(len(self) / self.chunk) - 1
        return min(self.chunk, len(self) - whole("number", number, 0, last) * self.chunk)

    def spans(self, parts: Sequence[tuple[int, int]]) -> Trajectories:
        """The trajectories of these spans, one after the other.

        Arguments:
            parts: First row of each span, and the one after its last.

        Returns:
            Trajectories in memory.
        """
        if not parts:
            raise UserError("no trajectories are named; name one span at least.")
        fields = dict(self._fixed)
        for name in self._arrays.keys() - self._fixed.keys() - {"ids"}:
            found = [self._get(name, part) for part in parts]
            axis = self._axes[name] or 0
            fields[name] = found[0] if len(found) == 1 else np.concatenate(found, axis)
        ids = unique([x for part in parts for x in self._ids(*part)])
        return Trajectories(
            **own_fields(self.header | {"ids": ids, "shape": fields["q"].shape}, fields)
        )

    def _ids(self, first: int, last: int) -> list[str]:
        rows = self._get("ids", (first, min(last, len(self))))
        try:
            return [bytes(x).rstrip(b"\0").decode() for x in rows]
        except UnicodeDecodeError as error:
            raise UserError(
                f"{self.path}: its labels are no text in UTF-8; it is damaged, write it anew."
            ) from error

    def read(self) -> Trajectories:
        """All of them in memory; a `UserError` if they do not fit."""
        count = sum(int(np.prod(x.shape)) * x.dtype.itemsize for x in self._arrays.values())
        check_memory(3 * count, f"{self.path} in memory", "open it with dhn.open instead")
        return self[:]

    def fingerprint(self) -> str:
        """`Trajectories.fingerprint` of the whole, computed chunk by chunk."""
        names = sorted(self._arrays.keys() - {"ids"})
        parts = {name: (tuple(self._arrays[name].shape), self._blocks(name)) for name in names}
        return digest_blocks(self._header_text(), parts)

    def _header_text(self) -> Iterator[str]:
        """A million labels are not held together, so the text is written around them."""
        own = {"shape": [self.count, self.states, self.dim], "ids": [], "meta": None}
        before, after = header_text(self.header | own).split('"ids": []')
        yield f'{before}"ids": ['
        for first in range(0, len(self), PIECE):
            labels = json.dumps(self._ids(first, first + PIECE))[1:-1]
            yield f", {labels}" if first else labels
        yield f"]{after}"

    def _blocks(self, name: str) -> Iterator[np.ndarray]:
        """The parts of an array whose bytes, one after the other, are those of the whole."""
        if name in self._fixed:
            yield self._fixed[name]
            return
        size = max(self.chunk, PIECE // self.chunk * self.chunk)
        levels = range(self._arrays[name].shape[0]) if self._axes[name] == 1 else (None,)
        for level in levels:
            for first in range(0, len(self), size):
                yield self._get(name, (first, min(first + size, len(self))), level)

    def _get(
        self, name: str, rows: tuple[int, int] | None = None, level: int | None = None
    ) -> np.ndarray:
        """The numbers of the trajectories `rows`, first and last + 1; of a shared array, all."""
        try:
            self._find_chunks(name, rows)
            index: Any = ... if rows is None else rows_of_array(self._axes[name] or 0, *rows)
            if level is not None:
                index = (level, index[1])
            return np.asarray(self._arrays[name][index])
        except Exception as error:  # Zarr reports damage by many kinds of exceptions
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UserError(
                f"{self.path}: its array {name!r} cannot be read ({reason:.120}); it is damaged, "
                f"write it anew."
            ) from error

    def _find_chunks(self, name: str, rows: tuple[int, int] | None) -> None:
        """A `FileNotFoundError` if a chunk is lost, which Zarr would read as zeros."""
        if not self._complete:
            return
        array = self._arrays[name]
        places = [range(math.ceil(n / c)) for n, c in zip(array.shape, array.chunks, strict=True)]
        if rows is not None:
            axis = self._axes[name] or 0
            size = array.chunks[axis]
            places[axis] = range(rows[0] // size, math.ceil(rows[1] / size))
        for place in itertools.product(*places):
            key = array.metadata.encode_chunk_key(place)
            if not (self.path / name / key).is_file():
                raise FileNotFoundError(f"its chunk {key} is lost")

    def __repr__(self) -> str:
        return (
            f"StoredTrajectories({self.path}: {self.count} of {self.states} states, "
            f"{self.dim} coordinates)"
        )


def rows_of_array(axis: int, first: int, last: int) -> tuple[slice, ...]:
    """The index of these trajectories, which this axis counts."""
    return (*(slice(None),) * axis, slice(first, last))
