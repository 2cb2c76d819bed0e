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
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np

from dhn.codes.codebook import CodebookState
from dhn.errors import UserError
from dhn.files.stored import StoredTrajectories
from dhn.models.contract import WindowShape
from dhn.training.config import TrainingConfig
from dhn.training.prepare import prepare, usable_states
from dhn.training.step import TrainingData
from dhn.training.validation import Split, Validator, aside, choose_split
from dhn.trajectories.container import Trajectories
from dhn.trajectories.scaling import Scaler

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
    data: Trajectories
    arrays: TrainingData
    validator: Validator


def whole_pool(
    data: Trajectories, scaler: Scaler, shapes: tuple[WindowShape, ...], config: TrainingConfig
) -> Pool:
    """All trajectories, which are in memory."""
    split = choose_split(usable_states(data), shapes, config.validation, config.seed)
    return _ready(data, scaler, shapes, config, split, 0, ())


def _ready(data, scaler, shapes, config, split: Split, number: int, chunks) -> Pool:
    arrays = prepare(data, scaler, shapes, config.precision, split.train)
    validator = Validator(data, scaler, shapes, split, arrays, config.precision, config.seed)
    return Pool(number, chunks, data, arrays, validator)


@final
class Pools:
    """The pools of one training, read ahead by a thread, and the file of codes."""

    def __init__(
        self,
        stored: StoredTrajectories,
        scaler: Scaler,
        shapes: tuple[WindowShape, ...],
        config: TrainingConfig,
        folder: Path,
        latent_size: int,
        pooling: Pooling,
    ):
        self.stored, self.pooling, self.config = stored, pooling, config
        self._scaler, self._shapes = scaler, shapes
        count = -(-len(stored) // stored.chunk)
        order = np.random.default_rng([STREAM, config.seed]).permutation(count)
        held = 1 if config.validation > 0 and count > 1 else 0
        self.held: tuple[int, ...] = tuple(order[:held].tolist())
        self._train = np.sort(order[held:])
        self._size = min(max(1, pooling.trajectories // stored.chunk - held), len(self._train))
        self._file = _CodeFile(folder / FILE, stored, latent_size, config)
        self._reader = ThreadPoolExecutor(1)
        self._next: tuple[int, Future[Pool]] | None = None

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
        pool = ahead[1].result() if ahead and ahead[0] == number else self._load(number)
        self._next = (number + 1, self._reader.submit(self._load, number + 1))
        return pool

    def _load(self, number: int) -> Pool:
        chunks = self.chunks(number)
        data = self.stored.chunks((*chunks, *self.held))
        rows = sum(self._file.rows(chunk) for chunk in chunks)
        split = aside(usable_states(data), self._shapes, np.arange(len(data)) >= rows)
        # The setting belongs to the thread that made it.
        with jax.enable_x64(self.config.precision == "float64"):
            return _ready(data, self._scaler, self._shapes, self.config, split, number, chunks)

    def codes(self, pool: Pool) -> CodebookState:
        """The codes of a pool and Adam's moments, from the file."""
        found = np.concatenate([self._file.read(chunk) for chunk in pool.chunks])
        padded = np.zeros((pool.arrays.states.q.shape[0], found.shape[1]), found.dtype)
        padded[: len(found)] = found
        size = (padded.shape[1] - 1) // 3
        rows, mean, square = (padded[:, k * size : (k + 1) * size] for k in range(3))
        return CodebookState(
            jnp.array(rows),
            jnp.array(mean),
            jnp.array(square),
            jnp.array(padded[:, -1], jnp.int32),
        )

    def keep(self, pool: Pool, book: CodebookState) -> None:
        """Write the codes of a pool into the file."""
        arrays = (book.rows, book.mean, book.square, book.count[:, None])
        table = np.concatenate([np.asarray(x, self.config.precision) for x in arrays], axis=1)
        first = 0
        for chunk in pool.chunks:
            rows = self._file.rows(chunk)
            self._file.write(chunk, table[first : first + rows])
            first += rows
        self._file.sync()

    def clear(self) -> None:
        """Forget the codes of an earlier training in the same folder."""
        self._file.clear()

    def close(self) -> None:
        """End the reader."""
        self._reader.shutdown(wait=True, cancel_futures=True)
        self._file.close()


@final
class _CodeFile:
    """One record a trajectory: code, mean, square and count. What was never written is zero."""

    def __init__(
        self, path: Path, stored: StoredTrajectories, latent_size: int, config: TrainingConfig
    ):
        self._chunk, self._count = stored.chunk, len(stored)
        self._type, self._width = np.dtype(config.precision), 3 * latent_size + 1
        self._size, self._config = latent_size, config
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            self._descriptor = os.open(path, flags, 0o666)
            self._resize()
        except OSError as error:
            raise UserError(f"{path} cannot be written: {error.strerror}.") from error

    def _resize(self) -> None:
        os.truncate(self._descriptor, self._count * self._width * self._type.itemsize)

    def clear(self) -> None:
        os.truncate(self._descriptor, 0)
        self._resize()

    def rows(self, chunk: int) -> int:
        """Trajectories of this chunk."""
        return min(self._chunk, self._count - chunk * self._chunk)

    def _place(self, chunk: int) -> int:
        return chunk * self._chunk * self._width * self._type.itemsize

    def read(self, chunk: int) -> np.ndarray:
        """(rows, 3 k + 1); trajectories that were never visited have the recipe's first codes."""
        length = self.rows(chunk) * self._width * self._type.itemsize
        raw = os.pread(self._descriptor, length, self._place(chunk))
        table = np.frombuffer(raw, self._type).reshape(-1, self._width).copy()
        if self._config.code_start > 0:
            rng = np.random.default_rng([STREAM, 2, self._config.seed, chunk])
            first = self._config.code_start * rng.normal(size=(len(table), self._size))
            new = table[:, -1] == 0
            table[new, : self._size] = first[new]
        return table

    def write(self, chunk: int, table: np.ndarray) -> None:
        os.pwrite(self._descriptor, np.ascontiguousarray(table).tobytes(), self._place(chunk))

    def sync(self) -> None:
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._descriptor)
