"""Trajectories larger than memory: a Zarr folder, chunked by trajectories, read in pieces.

The folder holds one array a field, as `dhn.files.arrays` names them, and the header as the
attribute `dhn`. Ids are rows of UTF-8 bytes in an array of their own, since a million of them do
not belong into a header. Every chunk has a checksum, and all of them are written, so that a lost
one is noticed. The arrays are not compressed: measured or simulated doubles hardly shrink, and
training reads them all the time.
"""

import contextlib
import hashlib
import itertools
import json
import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, final

import numpy as np

from dhn.checks import as_path, from_json, sequence, whole
from dhn.errors import UserError
from dhn.files.arrays import HEADER, own_fields, own_sizes, parse_header
from dhn.memory import check_memory
from dhn.trajectories.container import Trajectories
from dhn.trajectories.labels import unique

ENDING = ".zarr"
CHUNK = 256
"""Trajectories of a chunk: about 0.5 MB of 129 states with two coordinates."""
PIECE = 4096
"""Trajectories held in memory at a time."""
QUANTILES = ("q_quantiles", "p_quantiles")
COMPLETE = "complete"
"""Key of headers of folders that hold every chunk; older ones leave out chunks of zeros."""


def zarr_module() -> ModuleType:
    """Zarr, or a `UserError` that names the extra."""
    try:
        import zarr
    except ImportError:
        raise UserError('.zarr folders need an extra: pip install "dhn[zarr]".') from None
    return zarr


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
    zarr = zarr_module()
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
class StoredTrajectories:
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
        self._shape = tuple(header["shape"])
        self.names, self.angles = tuple(header["names"]), tuple(header["angles"])
        self.params: tuple[str, ...] = tuple(header["params"])
        self.system: str | None = header["system"]
        self.units, self.meta = dict(header["units"]), dict(header["meta"])
        shared = [x for x in self._arrays if is_shared(x, self.header)]
        self._fixed = {name: self._get(name) for name in shared}

    def __len__(self) -> int:
        return self._shape[0]

    @property
    def states(self) -> int:
        """Number of states `T`, padding included."""
        return self._shape[1]

    @property
    def dim(self) -> int:
        """Number of coordinates `d`."""
        return self._shape[2]

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
        return self.spans([(first, last)])

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
            axis = 1 if name in QUANTILES else 0
            found = [self._get(name, part) for part in parts]
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

    def pieces(self, size: int = PIECE) -> Iterator[Trajectories]:
        """All trajectories in order, `size` at a time.

        Arguments:
            size: Trajectories of a piece.

        Returns:
            The pieces, each read when it is asked for.
        """
        for first in range(0, len(self), whole("size", size)):
            yield self[first : first + size]

    def read(self) -> Trajectories:
        """All of them in memory; a `UserError` if they do not fit."""
        count = sum(int(np.prod(x.shape)) * x.dtype.itemsize for x in self._arrays.values())
        check_memory(3 * count, f"{self.path} in memory", "open it with dhn.open instead")
        return self[:]

    def fingerprint(self) -> str:
        """`Trajectories.fingerprint` of the whole, computed chunk by chunk."""
        own = {"shape": list(self._shape), "ids": [], "meta": None}
        # A million labels are not held together, so the header's text is written around them.
        before, after = json.dumps(self.header | own, sort_keys=True).split('"ids": []')
        sha = hashlib.sha256(f'{before}"ids": ['.encode())
        for first in range(0, len(self), PIECE):
            text = json.dumps(self._ids(first, first + PIECE))[1:-1]
            sha.update(((", " if first else "") + text).encode())
        sha.update(f"]{after}".encode())
        for name in sorted(self._arrays.keys() - {"ids"}):
            sha.update(f"{name}{tuple(self._arrays[name].shape)}".encode())
            for part in self._blocks(name):
                clean = np.where(np.isnan(part), np.nan, part).astype("<f8")
                sha.update(np.ascontiguousarray(clean).tobytes())
        return sha.hexdigest()

    def _blocks(self, name: str) -> Iterator[np.ndarray]:
        """The parts of an array whose bytes, one after the other, are those of the whole."""
        if name in self._fixed:
            yield self._fixed[name]
            return
        size = max(self.chunk, PIECE // self.chunk * self.chunk)
        levels = range(self._arrays[name].shape[0]) if name in QUANTILES else (None,)
        for level in levels:
            for first in range(0, len(self), size):
                yield self._get(name, (first, min(first + size, len(self))), level)

    def _get(
        self, name: str, rows: tuple[int, int] | None = None, level: int | None = None
    ) -> np.ndarray:
        """The numbers of the trajectories `rows`, first and last + 1; of a shared array, all."""
        try:
            self._find_chunks(name, rows)
            index: Any = ... if rows is None else rows_of_array(name, *rows)
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
            axis = 1 if name in QUANTILES else 0
            size = array.chunks[axis]
            places[axis] = range(rows[0] // size, math.ceil(rows[1] / size))
        for place in itertools.product(*places):
            key = array.metadata.encode_chunk_key(place)
            if not (self.path / name / key).is_file():
                raise FileNotFoundError(f"its chunk {key} is lost")

    def __repr__(self) -> str:
        n, states, d = self._shape
        return f"StoredTrajectories({self.path}: {n} of {states} states, {d} coordinates)"


def is_shared(name: str, header: Mapping[str, Any]) -> bool:
    """Whether it is an array that all trajectories share: times, or noise of each coordinate."""
    if name == "noise":
        return not header.get("each_noise", False)
    return name == "t" and bool(header["shared_time"])


def rows_of_array(name: str, first: int, last: int) -> Any:
    """The index of these trajectories."""
    rows = slice(first, last)
    return (slice(None), rows) if name in QUANTILES else rows
