"""One training over several devices and processes.

The windows of a batch and the rows of the codebook, with its optimiser's moments, are divided among
the devices. Weights and data are everywhere. The compiler inserts the exchanges. All random
numbers, and the pieces that a batch is cut into, are those of one device, so the losses are the
same up to the order of sums. With one device nothing here does anything.
"""

from collections.abc import Sequence
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from dhn.errors import UserError

AXIS = "batch"


def is_first_process() -> bool:
    """Whether this process writes the files."""
    return jax.process_index() == 0


def divided(mesh: Mesh | None, tree: PyTree, axis: int = 0) -> PyTree:
    """Inside a compiled function: divide this axis of every array among the devices."""
    if mesh is None:
        return tree
    sharding = NamedSharding(mesh, PartitionSpec(*[None] * axis, AXIS))
    return jax.tree.map(lambda x: jax.lax.with_sharding_constraint(x, sharding), tree)


def whole(mesh: Mesh | None, tree: PyTree) -> PyTree:
    """Inside a compiled function: every device has all of every array."""
    if mesh is None:
        return tree
    sharding = NamedSharding(mesh, PartitionSpec())
    return jax.tree.map(lambda x: jax.lax.with_sharding_constraint(x, sharding), tree)


def replicated(mesh: Mesh | None, tree: PyTree) -> PyTree:
    """The tree with a copy of every array on every device."""
    return tree if mesh is None else _placed(mesh, tree, PartitionSpec())


def _placed(mesh: Mesh, tree: PyTree, spec: PartitionSpec) -> PyTree:
    sharding = NamedSharding(mesh, spec)

    def place(x: Any) -> Any:
        if not eqx.is_array(x):
            return x
        host = np.asarray(x)
        return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])

    return jax.tree.map(place, tree)


@final
class Devices:
    """All devices of all processes, and what the processes have to agree on."""

    def __init__(self) -> None:
        found = jax.devices()
        self.count, self.first = len(found), is_first_process()
        self.processes = jax.process_count()
        self.mesh: Mesh | None = None
        if self.count > 1:
            self.mesh = jax.make_mesh(
                (self.count,), (AXIS,), axis_types=(AxisType.Auto,), devices=found
            )

    def check(self, sizes: Sequence[int], pieces: int, rows: int) -> None:
        """A `UserError` unless windows of every stage and rows of the codebook can be divided."""
        for size in (*sizes, pieces * rows):
            if size % (pieces * self.count):
                raise UserError(
                    f"{self.count} devices cannot share {size // pieces} windows or codes evenly; "
                    f"use a number of devices that is a power of two and divides batch_size."
                )

    def placed(self, state: Any) -> Any:
        """A state of training on the devices, its codebook divided by rows."""
        if self.mesh is None:
            return state
        book = _placed(self.mesh, state.codebook, PartitionSpec(AXIS))
        rest = replicated(self.mesh, eqx.tree_at(lambda x: x.codebook, state, None))
        return eqx.tree_at(lambda x: x.codebook, rest, book, is_leaf=lambda x: x is None)

    def gathered(self, state: PyTree) -> PyTree:
        """The same on one device of this process; every process has to ask for it."""
        if self.mesh is None:
            return state
        everywhere = NamedSharding(self.mesh, PartitionSpec())
        copies = jax.jit(lambda x: x, out_shardings=everywhere)(state)
        return jax.tree.map(lambda x: jnp.asarray(np.asarray(x.addressable_data(0))), copies)

    def agree(self, seconds: float, due: bool, stop: bool) -> tuple[float, bool, bool]:
        """The first process's clock decides; a signal to any process stops all."""
        if self.processes == 1:
            return seconds, due, stop
        from jax.experimental import multihost_utils

        mine = np.array([seconds, due, stop], np.float32)
        every = np.asarray(multihost_utils.process_allgather(mine))
        return float(every[0, 0]), bool(every[0, 1]), bool(every[:, 2].any())

    def wait_for_first(self) -> None:
        """All processes meet here."""
        if self.processes > 1:
            from jax.experimental import multihost_utils

            multihost_utils.sync_global_devices("dhn")
