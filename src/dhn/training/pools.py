"""Training on more trajectories than memory holds: pools of chunks, one after the other.

A pool is some chunks of a Zarr folder, drawn at random, and one chunk that is kept aside for
validation. Steps on a pool are those of a training in memory. The next pool is read meanwhile. The
codes of trajectories that are not in the pool, and Adam's moments, wait in a file beside the
checkpoints, so that memory does not grow with the number of trajectories.

At the end of a pool the checkpoint, which holds the pool's codes, is written before the file of
codes is. Whenever a run is killed, the file has the codes as they were at the beginning of the
checkpoint's pool or (written again with the same numbers) at its end: resuming is exact.
"""

import contextlib
import dataclasses
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, final

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Int

from dhn.blocks import Codes
from dhn.codes.codebook import CodebookState
from dhn.errors import os_errors
from dhn.files.source import AbstractSource
from dhn.files.stored import StoredTrajectories
from dhn.models.contract import WindowShape
from dhn.training.config import TrainingConfig
from dhn.training.devices import Devices
from dhn.training.prepare import Part, bucket, place_states, prepare, scaled_part
from dhn.training.step import TrainingData
from dhn.training.validation import Split, Validator, aside, choose_split
from dhn.trajectories.container import Trajectories
from dhn.trajectories.scaling import Scaler
from dhn.trajectories.segments import code_rows as rows_of_codes

FirstCodes = Callable[[Trajectories], Codes]
"""Codes that trajectories begin with."""
FILE = "codes.bin"
STREAM = 0x9001
"""Keeps the random numbers of pools apart from other uses of the same seed."""


@final
@dataclasses.dataclass(frozen=True)
class Pooling:
    """How a training on disk is divided."""

    trajectories: int = 4096
    """In memory at a time, those kept aside included; half a million windows of 129 states."""
    steps: int = 1024
    """Taken on one pool: at 256 windows a step each trajectory is seen about 64 times."""


@final
class Pool(NamedTuple):
    """The trajectories that steps are taken on, ready for them."""

    number: int
    chunks: tuple[int, ...]
    """Chunks of the folder that are trained on; their rows come first."""
    arrays: TrainingData
    code_rows: Int[np.ndarray, " n"]
    """The codebook row of each trajectory."""
    validator: Validator


def whole_pool(
    data: Trajectories,
    source: AbstractSource,
    scaler: Scaler,
    shapes: tuple[WindowShape, ...],
    config: TrainingConfig,
    devices: Devices,
) -> Pool:
    """All trajectories, which are `data` in the first process; others read what they hold."""
    count = len(source)
    rows = bucket(count)
    first, last = devices.rows(rows)
    spans = [(first, min(last, count))] if first < count else []
    part = _part(spans, lambda parts: source.rows(*parts[0]), scaler, config, last - first)
    code_rows = rows_of_codes(data) if devices.first else np.zeros(count, np.int64)

    def split(known: Bool[np.ndarray, "n T"]) -> Split:
        return choose_split(known, shapes, config.validation, config.seed)

    return _ready(part, rows, devices.from_first(code_rows), split, shapes, config, devices, 0, ())


def _part(spans, read, scaler: Scaler, config: TrainingConfig, rows: int) -> Part:
    """What `read` gives for these spans; without any, all is padding of the shape of a state."""
    part = scaled_part(read(spans or [(0, 1)]), scaler, config.precision, rows)
    return part if spans else Part(*(np.zeros_like(x) for x in part))


def _ready(
    part: Part, rows: int, code_rows: Int[np.ndarray, " n"], split: Callable[..., Split],
    shapes: tuple[WindowShape, ...], config: TrainingConfig, devices: Devices, number: int,
    chunks: tuple[int, ...],
) -> Pool:  # fmt: skip
    states, known = place_states(part, rows, len(code_rows), devices)
    chosen = split(known)
    arrays = prepare(states, chosen.train, shapes, code_rows, devices.mesh)
    validator = Validator(known, shapes, chosen, arrays, config.seed, devices)
    return Pool(number, chunks, arrays, code_rows, validator)


@final
class Pools:
    """The pools of one training, read ahead by a thread, and the file of codes.

    Each process reads the rows of a pool that its devices hold. The first one has the file.
    """

    def __init__(
        self,
        stored: StoredTrajectories,
        scaler: Scaler,
        shapes: tuple[WindowShape, ...],
        config: TrainingConfig,
        folder: Path,
        latent_size: int,
        pooling: Pooling,
        first_codes: FirstCodes | None = None,
    ):
        self.stored, self.pooling, self.config = stored, pooling, config
        self._scaler, self._shapes = scaler, shapes
        self._devices = Devices()
        count = -(-len(stored) // stored.chunk)
        order = np.random.default_rng([STREAM, config.seed]).permutation(count)
        held = 1 if config.validation > 0 and count > 1 else 0
        self.held: tuple[int, ...] = tuple(order[:held].tolist())
        self._train = np.sort(order[held:])
        self._size = min(max(1, pooling.trajectories // stored.chunk - held), len(self._train))
        self._latent_size, self._first_codes = latent_size, first_codes
        self._file = (
            _CodeFile(folder / FILE, stored, latent_size, config) if self._devices.first else None
        )
        self._reader = ThreadPoolExecutor(1)
        self._next: tuple[int, Future[Part]] | None = None

    def chunks(self, number: int) -> tuple[int, ...]:
        """The chunks that this pool trains on: every one comes once before any comes again."""
        pools = -(-len(self._train) // self._size)
        epoch, place = divmod(number, pools)
        order = np.random.default_rng([STREAM, 1, self.config.seed, epoch]).permutation(self._train)
        places = place * self._size + np.arange(self._size)
        return tuple(order[places % len(order)].tolist())

    def load(self, number: int) -> Pool:
        """This pool; the one after it is read from now on."""
        ahead, self._next = self._next, None
        part = ahead[1].result() if ahead and ahead[0] == number else self._read(number)
        self._next = (number + 1, self._reader.submit(self._read, number + 1))
        chunks = self.chunks(number)
        trained = sum(self.stored.rows_of(chunk) for chunk in chunks)
        count = trained + sum(self.stored.rows_of(chunk) for chunk in self.held)

        def split(known: Bool[np.ndarray, "n T"]) -> Split:
            return aside(known, self._shapes, np.arange(count) >= trained)

        return _ready(
            part, bucket(count), np.arange(count), split, self._shapes, self.config,
            self._devices, number, chunks,
        )  # fmt: skip

    def _read(self, number: int) -> Part:
        """The rows of a pool that this process holds; nothing here waits for other processes."""
        spans, before = [], 0
        chunks = (*self.chunks(number), *self.held)
        rows = bucket(sum(self.stored.rows_of(chunk) for chunk in chunks))
        first, last = self._devices.rows(rows)
        for chunk in chunks:
            start, count = chunk * self.stored.chunk, self.stored.rows_of(chunk)
            span = max(first - before, 0), min(last - before, count)
            spans += [(start + span[0], start + span[1])] if span[0] < span[1] else []
            before += count
        return _part(spans, self.stored.spans, self._scaler, self.config, last - first)

    def codes(self, pool: Pool) -> CodebookState:
        """The codes of a pool and Adam's moments, from the file."""
        size = self._latent_size
        rows = pool.arrays.states.q.shape[0]
        padded = np.zeros((rows, 3 * size + 1), self.config.precision)
        if self._file is not None:
            found = np.concatenate([self._codes_of(chunk) for chunk in pool.chunks])
            padded[: len(found)] = found
        padded = self._devices.from_first(padded)
        codes, mean, square = (jnp.array(padded[:, k * size : (k + 1) * size]) for k in range(3))
        return CodebookState(codes, mean, square, jnp.array(padded[:, -1], jnp.int32))

    def _codes_of(self, chunk: int) -> np.ndarray:
        """(rows, 3 k + 1); trajectories that were never visited have their first codes."""
        assert self._file is not None
        table, size = self._file.read(chunk), self._latent_size
        new = table[:, -1] == 0
        if new.any() and self._first_codes is not None:
            table[new, :size] = self._first_codes(self.stored.chunks([chunk]))[new]
        elif self.config.code_start > 0:
            rng = np.random.default_rng([STREAM, 2, self.config.seed, chunk])
            first = self.config.code_start * rng.normal(size=(len(table), size))
            table[new, :size] = first[new]
        return table

    def keep(self, pool: Pool, book: CodebookState) -> None:
        """Write the codes of a pool into the file."""
        if self._file is None:
            return
        arrays = (book.rows, book.mean, book.square, book.count[:, None])
        table = np.concatenate([np.asarray(x, self.config.precision) for x in arrays], axis=1)
        first = 0
        for chunk in pool.chunks:
            rows = self.stored.rows_of(chunk)
            self._file.write(chunk, table[first : first + rows])
            first += rows
        self._file.sync()

    def clear(self) -> None:
        """Forget the codes of an earlier training in the same folder."""
        if self._file is not None:
            self._file.clear()

    def close(self) -> None:
        """End the reader."""
        self._reader.shutdown(wait=True, cancel_futures=True)
        if self._file is not None:
            self._file.close()


@final
class _CodeFile:
    """One record a trajectory: code, mean, square and count. What was never written is zero."""

    def __init__(
        self, path: Path, stored: StoredTrajectories, latent_size: int, config: TrainingConfig
    ):
        self._stored = stored
        self._type, self._width = np.dtype(config.precision), 3 * latent_size + 1
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        with os_errors(f"{path} cannot be written"):
            self._descriptor = os.open(path, flags, 0o666)
            self._resize()

    def _resize(self) -> None:
        os.truncate(self._descriptor, len(self._stored) * self._width * self._type.itemsize)

    def clear(self) -> None:
        os.truncate(self._descriptor, 0)
        self._resize()

    def _place(self, chunk: int) -> int:
        return chunk * self._stored.chunk * self._width * self._type.itemsize

    def read(self, chunk: int) -> np.ndarray:
        """(rows, 3 k + 1)."""
        length = self._stored.rows_of(chunk) * self._width * self._type.itemsize
        raw = os.pread(self._descriptor, length, self._place(chunk))
        return np.frombuffer(raw, self._type).reshape(-1, self._width).copy()

    def write(self, chunk: int, table: np.ndarray) -> None:
        os.pwrite(self._descriptor, np.ascontiguousarray(table).tobytes(), self._place(chunk))

    def sync(self) -> None:
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._descriptor)
