"""One training over several devices and processes.

The windows of a batch, the rows of the data and the rows of the codebook, with its optimiser's
moments, are divided among the devices; each process reads the rows that its devices hold. Weights
are everywhere. The compiler inserts the exchanges. All random numbers, and the pieces that a batch
is cut into, are those of one device, so the losses are the same up to the order of sums. With one
device nothing here does anything.
"""

from collections.abc import Sequence
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from dhn.errors import UserError

AXIS = "batch"


def is_first_process() -> bool:
    """Whether this process writes the files."""
    return jax.process_index() == 0


def divided(mesh: Mesh | None, tree: PyTree, axis: int = 0) -> PyTree:
    """Inside a compiled function: divide this axis of every array among the devices."""
    return _constrained(mesh, tree, PartitionSpec(*[None] * axis, AXIS))


def whole(mesh: Mesh | None, tree: PyTree) -> PyTree:
    """Inside a compiled function: every device has all of every array."""
    return _constrained(mesh, tree, PartitionSpec())


def _constrained(mesh: Mesh | None, tree: PyTree, spec: PartitionSpec) -> PyTree:
    if mesh is None:
        return tree
    sharding = NamedSharding(mesh, spec)
    return jax.tree.map(lambda x: jax.lax.with_sharding_constraint(x, sharding), tree)


def replicated(mesh: Mesh | None, tree: PyTree) -> PyTree:
    """The tree with a copy of every array on every device."""
    if mesh is None:
        return tree
    sharding = NamedSharding(mesh, PartitionSpec())

    def place(x: Any) -> Any:
        if not eqx.is_array(x):
            return x
        host = np.asarray(x)
        return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])

    return jax.tree.map(place, tree)


def _same(tree: PyTree) -> PyTree:
    return tree


@jax.jit
def _take(tree: PyTree, rows: jax.Array) -> PyTree:
    return jax.tree.map(lambda x: x[rows], tree)


@final
class Devices:
    """All devices of all processes, and what the processes have to agree on."""

    def __init__(self) -> None:
        found = sorted(jax.devices(), key=lambda device: (device.process_index, device.id))
        self.count, self.first = len(found), is_first_process()
        self.processes, self._process = jax.process_count(), jax.process_index()
        self.mesh = Mesh(np.array(found), (AXIS,)) if self.count > 1 else None

    def check(self, sizes: Sequence[int], pieces: int, rows: int) -> None:
        """A `UserError` unless windows of every stage and rows of the codebook can be divided."""
        for size in (*sizes, pieces * rows):
            if size % (pieces * self.count):
                raise UserError(
                    f"{self.count} devices cannot share {size // pieces} windows or codes evenly; "
                    f"use a number of devices that is a power of two and divides batch_size "
                    f"(CUDA_VISIBLE_DEVICES=0,1 takes two GPUs)."
                )

    def rows(self, total: int) -> tuple[int, int]:
        """First row, and the one after the last, of those that this process holds."""
        if self.mesh is None:
            return 0, total
        each = total // self.count
        mine = [k for k, x in enumerate(self.mesh.devices) if x.process_index == self._process]
        return each * mine[0], each * (mine[-1] + 1)

    def by_rows(self, part: np.ndarray, total: int) -> jax.Array:
        """An array of `total` rows, divided by rows, from those of this process."""
        if self.mesh is None:
            return jax.device_put(part)
        sharding = NamedSharding(self.mesh, PartitionSpec(AXIS))
        return jax.make_array_from_process_local_data(sharding, part, (total, *part.shape[1:]))

    def placed(self, state: Any) -> Any:
        """A state of training on the devices, its codebook divided by rows."""
        if self.mesh is None:
            return state
        total = state.codebook.rows.shape[0]
        mine = slice(*self.rows(total))
        book = jax.tree.map(lambda x: self.by_rows(np.asarray(x)[mine], total), state.codebook)
        rest = replicated(self.mesh, eqx.tree_at(lambda x: x.codebook, state, None))
        return eqx.tree_at(lambda x: x.codebook, rest, book, is_leaf=lambda x: x is None)

    def gathered(self, tree: PyTree) -> PyTree:
        """The same on one device of this process; every process has to ask for it."""
        if self.mesh is None:
            return tree
        everywhere = NamedSharding(self.mesh, PartitionSpec())
        copies = jax.jit(_same, out_shardings=everywhere)(tree)
        return jax.tree.map(lambda x: jnp.asarray(np.asarray(x.addressable_data(0))), copies)

    def take(self, tree: PyTree, rows: np.ndarray) -> PyTree:
        """These rows of arrays that are divided by rows, on one device of this process."""
        if self.mesh is None:
            return jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[rows]), tree)
        return self.gathered(_take(tree, replicated(self.mesh, jnp.asarray(rows))))

    def from_first(self, array: np.ndarray) -> np.ndarray:
        """The first process's numbers, bit for bit; all processes have the same shape."""
        if self.processes == 1:
            return array
        from jax.experimental import multihost_utils

        raw = multihost_utils.broadcast_one_to_all(np.frombuffer(array.tobytes(), np.uint8))
        return np.frombuffer(np.asarray(raw).tobytes(), array.dtype).reshape(array.shape)

    def text_from_first(self, text: str) -> str:
        """The first process's text; the others may give any."""
        raw = np.frombuffer(text.encode(), np.uint8)
        size = int(self.from_first(np.array(len(raw))))
        return self.from_first(np.resize(raw, size)).tobytes().decode()

    def agree(self, number: float) -> float:
        """The first process's number: of several clocks, its own decides."""
        return float(self.from_first(np.array(number, np.float64)))

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in any process."""
        if self.processes == 1:
            return flag
        from jax.experimental import multihost_utils

        return bool(np.asarray(multihost_utils.process_allgather(np.array(flag))).any())

    def wait_for_first(self) -> None:
        """All processes meet here."""
        self.any(False)
