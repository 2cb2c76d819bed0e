"""What a block Hamiltonian conserves, and what it relaxes (paper, appendix B), measured.

The states of a block are as those of `b` identical systems that began at different times. Their
*summed* energy is conserved by the exact block map, each one's only if the energy does not move
between them. And where source and target overlap, the network's output should equal its input.
"""

from collections.abc import Callable
from typing import NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dhn.blocks import StateBlock, no_noise
from dhn.errors import UserError
from dhn.models.contract import weights_dtype
from dhn.models.dhn import DHNModel
from dhn.models.stage import AbstractStage

Energy = Callable[[StateBlock], Float[Array, "n w b"]]
"""Energies of states (n, w, b, d), in the units that the model takes."""


@final
class BlockEnergy(NamedTuple):
    """By how much one application of the block map changes energies, for each window."""

    summed: Float[np.ndarray, "n w"]
    """Of the whole block: what appendix B finds conserved."""
    single: Float[np.ndarray, "n w"]
    """Root mean square over the states of the block, each one compared with itself."""


def block_energy(
    model: DHNModel,
    states: StateBlock,
    codes: Float[np.ndarray, "n k"],
    energy: Energy,
) -> BlockEnergy:
    """Energies of the target block, as the model maps it, minus those of the source block.

    **Arguments**: `states` (n, T, d), clean and scaled; `codes` (n, k); `energy` of such states.

    **Returns**: the change of the sum over a block and of its single states, each (n, w) for the
    windows of the finest stage.
    """
    windows, z = _windows(model, states, codes)
    moved = _target_block(model.finest, windows, z)
    shape = (len(codes), -1, model.finest.spec.block_size, states.q.shape[-1])
    source = windows.at(model.finest.spec.source)
    before, after = (
        np.asarray(energy(jax.tree.map(lambda x: x.reshape(shape), block)))
        for block in (source, moved)
    )
    change = after - before
    return BlockEnergy(change.sum(-1), np.sqrt((change**2).mean(-1)))


def overlap_disagreement(
    model: DHNModel, states: StateBlock, codes: Float[np.ndarray, "n k"]
) -> Float[np.ndarray, "n w"]:
    """How far outputs are from inputs at the `b - s` states that both blocks hold.

    Root mean square over these states and over all Hamiltonians, in units of a typical change over
    the lag; 0 for an exact block map.

    **Arguments**: `states` (n, T, d), clean and scaled; `codes` (n, k).

    **Returns**: (n, w) for the windows of the finest stage.
    """
    spec = model.finest.spec
    if spec.stride >= spec.block_size:
        raise UserError(
            f"source and target share block_size - stride states; block_size={spec.block_size}, "
            f"stride={spec.stride} leaves none. Use a model with stride < block_size."
        )
    windows, z = _windows(model, states, codes)
    return np.asarray(_overlap(model.finest, windows, z)).reshape(len(codes), -1)


def _windows(model: DHNModel, states: StateBlock, codes) -> tuple[StateBlock, Array]:
    """All windows of the finest stage, (n·w, L, d), and a code for each."""
    stage = model.finest
    offsets = stage.spacing * np.arange(stage.spec.window_length)
    places = np.arange(states.q.shape[1] - offsets[-1])[:, None] + offsets
    if len(places) == 0:
        raise UserError(
            f"a window of this model reaches over {offsets[-1] + 1} states; these trajectories "
            f"have {states.q.shape[1]}. Use longer ones."
        )
    dtype = weights_dtype(model)
    shape = (-1, places.shape[1], states.q.shape[-1])
    windows = StateBlock(*(jnp.asarray(x[:, places], dtype).reshape(shape) for x in states))
    return windows, jnp.repeat(jnp.asarray(codes, dtype), len(places), axis=0)


@eqx.filter_jit
def _target_block(stage: AbstractStage, windows: StateBlock, z) -> StateBlock:
    return stage.target_block(windows, z)


@eqx.filter_jit
def _overlap(stage: AbstractStage, windows: StateBlock, z) -> Float[Array, " m"]:
    spec = stage.spec
    shared = spec.block_size - spec.stride
    early, late = slice(0, shared), slice(spec.stride, None)
    overlap = windows.at(slice(spec.stride, spec.block_size))
    squares = []
    for found in stage.equations(windows, no_noise(windows), z):
        for value, states, truth in (
            (found.Q_target, early, overlap.q),
            (found.P_source, late, overlap.p),
            (found.Q_source, late, overlap.q),
            (found.P_target, early, overlap.p),
        ):
            if value is not None:
                squares.append((value[:, states] - truth) ** 2)
    return jnp.sqrt(jnp.stack(squares).mean((0, 2, 3))) / stage.scale
