"""Trajectories larger than memory: a Zarr folder, chunked by trajectories, read in pieces.

The folder holds one array a field, as `dhn.files.arrays` names them, and the header as the
attribute `dhn`. Ids are rows of UTF-8 bytes in an array of their own, since a million of them do
not belong into a header. Every chunk has a checksum. The arrays are not compressed: measured or
simulated doubles hardly shrink, and training reads them all the time.
"""

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from dhn.checks import as_path
from dhn.errors import UserError
from dhn.files.arrays import HEADER, own_fields, trajectory_axis
from dhn.files.source import PIECE, AbstractSource
from dhn.memory import check_memory
from dhn.trajectories.container import Trajectories
from dhn.trajectories.contents import LAYOUT, digest_blocks, header_dict, header_text, number_arrays
from dhn.trajectories.frames import optional
from dhn.trajectories.labels import unique

ENDING = ".zarr"
CHUNK = 256
"""Trajectories of a chunk: about 0.5 MB of 129 states with two coordinates."""
ID_BYTES = 16  # of most labels; longer ones widen the array
FIELDS = ("layout", "fields", "shared_time", "names", "angles", "units", "system", "params")
"""What must be the same in every piece, together with the levels of quantiles."""


def is_store(path: str | os.PathLike[str]) -> bool:
    """Whether the name ends as that of a Zarr folder."""
    return Path(path).suffix.lower() == ENDING


def is_own(path: Path) -> bool:
    """Whether there is a Zarr folder that this package wrote, which may be replaced."""
    try:
        return HEADER in json.loads((path / "zarr.json").read_text())["attributes"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
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
        group = zarr.open_group(path, mode="r")
        arrays = {name: array for name, array in group.arrays()}
        header = dict(group.attrs[HEADER])
        if header["layout"] > LAYOUT:
            raise UserError(
                f"{path}: it was written by a newer dhn (layout {header['layout']}, this one "
                f"reads {LAYOUT}); upgrade dhn."
            )
        return StoredTrajectories(path, header, arrays)
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise UserError(
            f"{path} is no folder of trajectories that dhn wrote ({type(error).__name__}: "
            f"{str(error).splitlines()[0] if str(error) else 'no reason'}); write it anew."
        ) from error


@final
class StoredTrajectories(AbstractSource):
    """Trajectories in a Zarr folder. Only what is asked for is read."""

    def __init__(self, path: Path, header: Mapping[str, Any], arrays: Mapping[str, Any]):
        self.path, self.header, self._arrays = path, dict(header), dict(arrays)
        self.count, self.states, self.dim = (int(x) for x in self._arrays["q"].shape)
        self.names, self.angles = tuple(header["names"]), tuple(header["angles"])
        self.params: tuple[str, ...] = tuple(header["params"])
        self.system: str | None = header["system"]
        self.units, self.meta = dict(header["units"]), dict(header["meta"])
        needed = {"q", "t", "known", "ids", *self.header["fields"]}
        missing = sorted(needed - set(self._arrays))
        if missing or self._arrays["ids"].shape[0] != self.count:
            raise ValueError(f"its array {(missing or ['ids'])[0]!r} is missing or too short")
        self._axes = {k: trajectory_axis(k, x.ndim) for k, x in self._arrays.items()}
        shared = [name for name, axis in self._axes.items() if axis is None]
        self._fixed = {name: self._get(name, ...) for name in shared}

    @property
    def chunk(self) -> int:
        """Trajectories of a chunk: what is cheapest to read together."""
        return int(self._arrays["q"].chunks[0])

    def __getitem__(self, rows: slice) -> Trajectories:
        """These trajectories, in memory; only slices of consecutive ones are read."""
        if not isinstance(rows, slice) or rows.step not in (None, 1):
            raise UserError("trajectories on disk are read by slices, such as stored[0:1000].")
        first, last, _ = rows.indices(len(self))
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
        return self.spans([(size * k, size * k + self.rows_of(k)) for k in numbers])

    def rows_of(self, number: int) -> int:
        """How many trajectories this chunk holds."""
        return min(self.chunk, len(self) - number * self.chunk)

    def spans(self, parts: Sequence[tuple[int, int]]) -> Trajectories:
        """The trajectories of these spans, one after the other.

        Arguments:
            parts: First row of each span, and the one after its last.

        Returns:
            Trajectories in memory.
        """
        fields = dict(self._fixed)
        for name in self._arrays.keys() - self._fixed.keys() - {"ids"}:
            axis = self._axes[name] or 0
            found = [self._get(name, _rows(axis, *part)) for part in parts]
            fields[name] = found[0] if len(found) == 1 else np.concatenate(found, axis)
        ids = unique([x for part in parts for x in self._ids(*part)])
        return Trajectories(
            **own_fields(self.header | {"ids": ids, "shape": fields["q"].shape}, fields)
        )

    def _ids(self, first: int, last: int) -> list[str]:
        rows = self._get("ids", slice(first, last))
        return [bytes(x).rstrip(b"\0").decode() for x in rows]

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
        levels = range(self._arrays[name].shape[0]) if self._axes[name] == 1 else (...,)
        for level in levels:
            for first in range(0, len(self), size):
                rows = slice(first, first + size)
                yield self._get(name, rows if level is ... else (level, rows))

    def _get(self, name: str, index: Any) -> np.ndarray:
        try:
            return np.asarray(self._arrays[name][index])
        except (ValueError, OSError, RuntimeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UserError(
                f"{self.path}: its array {name!r} cannot be read ({reason:.120}); it is damaged, "
                f"write it anew."
            ) from error

    def __repr__(self) -> str:
        return (
            f"StoredTrajectories({self.path}: {self.count} of {self.states} states, "
            f"{self.dim} coordinates)"
        )


def _rows(axis: int, first: int, last: int) -> tuple[slice, ...]:
    """The index of these trajectories, which this axis counts."""
    return (*(slice(None),) * axis, slice(first, last))


@final
class Store:
    """A Zarr folder that is being written, piece after piece."""

    def __init__(self, folder: Path, chunk: int):
        self._group = optional("zarr").create_group(folder)
        self._chunk, self.count = chunk, 0
        self._header: dict[str, Any] = {}
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
        header = header_dict(data)
        ids = list(header.pop("ids"))
        if self.count and ids == [str(i) for i in range(len(ids))]:
            ids = [str(self.count + i) for i in range(len(ids))]
        arrays = number_arrays(data)
        if not self._header:
            self._header = header
            for name, array in arrays.items():
                self._create(name, array)
            self._create("ids", np.empty((0, ID_BYTES), np.uint8))
        self._check(header, arrays)
        labels = [x.encode() for x in ids]
        width = max(self._arrays["ids"].shape[1], max(map(len, labels)))
        text = np.array([list(x.ljust(width, b"\0")) for x in labels], np.uint8)
        self._arrays["ids"].resize((self.count, width))
        last = self.count + len(data)
        for name, array in {**arrays, "ids": text}.items():
            axis = trajectory_axis(name, array.ndim)
            if axis is not None:
                target = self._arrays[name]
                target.resize((*target.shape[:axis], last, *target.shape[axis + 1 :]))
                target[_rows(axis, self.count, last)] = array
        self.count = last
        kept = {k: x for k, x in self._header["meta"].items() if header["meta"].get(k) == x}
        self._header = self._header | {"meta": kept}
        shape = [last, *data.q.shape[1:]]
        self._group.attrs[HEADER] = self._header | {"shape": shape}

    def _create(self, name: str, array: np.ndarray) -> None:
        from zarr.codecs import Crc32cCodec

        shape, chunks = list(array.shape), list(array.shape)
        axis = trajectory_axis(name, array.ndim)
        if axis is not None:
            shape[axis], chunks[axis] = 0, self._chunk
        self._arrays[name] = self._group.create_array(
            name, shape=tuple(shape), chunks=tuple(max(x, 1) for x in chunks), dtype=array.dtype,
            compressors=(Crc32cCodec(),),
        )  # fmt: skip
        if axis is None:
            self._arrays[name][...] = array

    def _check(self, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        for name in (*FIELDS, "q_levels", "p_levels"):
            if header[name] != self._header[name]:
                raise UserError(
                    f"all trajectories of a {ENDING} folder have the same {name}; got "
                    f"{self._header[name]!r} and then {header[name]!r}."
                )
        if header["shape"][1:] != list(self._arrays["q"].shape[1:]):
            raise UserError(
                f"all trajectories of a {ENDING} folder have the same number of states and "
                f"coordinates; got {self._arrays['q'].shape[1:]} and then "
                f"{tuple(header['shape'][1:])}."
            )
        for name, array in arrays.items():
            if trajectory_axis(name, array.ndim) is not None:
                continue
            if not np.array_equal(self._arrays[name][...], array, equal_nan=True):
                what = "times" if name == "t" else "noise"
                raise UserError(f"all trajectories of a {ENDING} folder have the same {what}.")


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
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{ENDING}")
    try:
        store = Store(temporary, chunk)
        yield store
        if not store.count:
            raise UserError(f"{path}: there are no trajectories to write.")
        old = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{ENDING}")
        if path.exists():
            os.replace(path, old)
        os.replace(temporary, path)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        reason = error.strerror or str(error).splitlines()[0]
        raise UserError(f"{path} cannot be written: {reason}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_store(data: Trajectories, path: str | os.PathLike[str]) -> None:
    """Write trajectories that are in memory as a Zarr folder."""
    with writing(path) as store:
        for first in range(0, len(data), PIECE):
            store.append(data[first : first + PIECE])
