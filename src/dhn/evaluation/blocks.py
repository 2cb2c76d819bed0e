"""What a block Hamiltonian conserves, and what it relaxes (paper, appendix B), measured.

The states of a block are as those of `b` identical systems that began at different times. Their
*summed* energy is conserved by the exact block map, each one's only if the energy does not move
between them. And where source and target overlap, the network's output should equal its input.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, final

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dhn.blocks import Codes, StateBlock, no_noise
from dhn.codes.batches import in_batches
from dhn.errors import UserError
from dhn.estimator.asking import ask
from dhn.estimator.trained import TrainedModel
from dhn.evaluation.metrics import energy_function, exchanged_energy
from dhn.models.compiling import solving_jit
from dhn.models.contract import weights_dtype
from dhn.models.stage import AbstractStage
from dhn.trajectories.container import Trajectories

Energy = Callable[[StateBlock], Float[np.ndarray, "n m"]]
"""Energies of states (n, m, d), in the units that the model takes."""
MOST = 100
"""Trajectories whose windows are looked at: thousands of windows, enough for a mean."""
BATCH = 1024
"""Windows in one call."""


@final
class BlockEnergy(NamedTuple):
    """By how much one application of the block map changes energies, for each window."""

    summed: Float[np.ndarray, "n w"]
    """Of the whole block: what appendix B finds conserved."""
    single: Float[np.ndarray, "n w"]
    """Root mean square over the states of the block, each one compared with itself."""


def block_energy(
    stage: AbstractStage, states: StateBlock, codes: Codes, energy: Energy
) -> BlockEnergy:
    """Energies of the target block, as the model maps it, minus those of the source block.

    Arguments:
        stage: The block map.
        states: (n, T, d) clean and scaled states.
        codes: (n, k).
        energy: Of such states.

    Returns:
        The change of the sum over a block and of its single states, each (n, w) for w windows.
    """
    windows, z = _windows(stage, states, codes)
    moved = in_batches(lambda part: _target_block(stage, *part), (windows, z), BATCH)
    n, d, b = len(codes), states.q.shape[-1], stage.spec.block_size
    before, after = (
        energy(StateBlock(*(np.asarray(x).reshape(n, -1, d) for x in block))).reshape(n, -1, b)
        for block in (windows.at(stage.spec.source), moved)
    )
    change = after - before
    return BlockEnergy(change.sum(-1), np.sqrt((change**2).mean(-1)))


def overlap_disagreement(
    stage: AbstractStage, states: StateBlock, codes: Codes
) -> Float[np.ndarray, "n w"]:
    """How far outputs are from inputs at the `b - s` states that both blocks hold.

    Root mean square over these states and over all Hamiltonians, in units of a typical change over
    the lag; 0 for an exact block map.

    Arguments:
        stage: The block map.
        states: (n, T, d) clean and scaled states.
        codes: (n, k).

    Returns:
        (n, w) for w windows.
    """
    spec = stage.spec
    if not _overlaps(stage):
        raise UserError(
            f"source and target share block_size - stride states; block_size={spec.block_size}, "
            f"stride={spec.stride} leaves none. Use a model with stride < block_size."
        )
    windows, z = _windows(stage, states, codes)
    found = in_batches(lambda part: _overlap(stage, *part), (windows, z), BATCH)
    return np.asarray(found).reshape(len(codes), -1)


@final
@dataclasses.dataclass(frozen=True)
class BlockDiagnostics:
    """Root mean squares over all windows of some trajectories, with their codes as inferred."""

    block_size: int
    stride: int
    summed_energy: float | None
    """Change of a block's summed energy in one application of the map, as a share of the energy
    that the motion exchanges; None where the energy is not known."""
    single_energy: float | None
    """The same for single states of a block."""
    overlap: float | None
    """`overlap_disagreement`; None where blocks do not overlap."""

    def summary(self) -> dict[str, Any]:
        """Plain numbers for tables and JSON."""
        return dataclasses.asdict(self)

    def describe(self) -> str:
        """One line for a person."""
        parts = []
        if self.summed_energy is not None and self.single_energy is not None:
            parts.append(
                f"one application changes the summed energy of a block by {self.summed_energy:.2g} "
                f"of the exchanged energy, that of a single state by {self.single_energy:.2g}"
            )
        if self.overlap is not None:
            parts.append(
                f"input and output differ by {self.overlap:.2g} typical changes where blocks "
                f"overlap"
            )
        words = "; ".join(parts) or "no energy is known and blocks do not overlap"
        return f"block map (b={self.block_size}, s={self.stride}): {words}"


def diagnose(trained: TrainedModel, data: Trajectories, codes: Codes) -> BlockDiagnostics | None:
    """Appendix B for a trained model with blocks.

    Arguments:
        trained: A trained network.
        data: Clean trajectories with momenta; windows with unknown states are left out.
        codes: (n, k) a code for each.

    Returns:
        The diagnostics; None for a model without blocks, or where no whole window of the model's
        time grid is known.
    """
    stage = trained.model.block_map
    data, codes = data[:MOST], np.asarray(codes[:MOST], weights_dtype(trained.model))
    asked = ask(trained, data)
    if stage is None or not asked.on_grid:
        return None
    states = StateBlock.of(asked.values.astype(codes.dtype))
    places = stage.places(states.q.shape[1])
    complete = np.all(asked.known[:, places], axis=(-2, -1))
    if not complete.any():
        return None

    def root_mean(x):
        return float(np.sqrt(np.mean(x[complete] ** 2)))

    summed = single = None
    physical = energy_function(data.system, data.params) if trained.momenta == "p" else None
    if physical is not None:

        def energy(block: StateBlock) -> np.ndarray:
            return physical(*trained.scaler.inverse(block.q, block.p))

        unit = exchanged_energy(data)[:, None]
        found = block_energy(stage, states, codes, energy)
        summed, single = root_mean(found.summed / unit), root_mean(found.single / unit)
    overlap = None
    if _overlaps(stage):
        overlap = root_mean(overlap_disagreement(stage, states, codes))
    return BlockDiagnostics(stage.spec.block_size, stage.spec.stride, summed, single, overlap)


def _overlaps(stage: AbstractStage) -> bool:
    return stage.spec.stride < stage.spec.block_size


def _windows(stage: AbstractStage, states: StateBlock, codes) -> tuple[StateBlock, np.ndarray]:
    """All windows of the stage, (n·w, L, d), and a code for each."""
    places = stage.places(states.q.shape[1])
    if len(places) == 0:
        raise UserError(
            f"a window of this model reaches over "
            f"{stage.spacing * (stage.spec.window_length - 1) + 1} states; these trajectories have "
            f"{states.q.shape[1]}. Use longer ones."
        )
    shape = (-1, places.shape[1], states.q.shape[-1])
    windows = StateBlock(*(np.asarray(x)[:, places].reshape(shape) for x in states))
    return windows, np.repeat(np.asarray(codes), len(places), axis=0)


@solving_jit
def _target_block(stage: AbstractStage, windows: StateBlock, z) -> StateBlock:
    return stage.target_block(windows, z)


@solving_jit
def _overlap(stage: AbstractStage, windows: StateBlock, z) -> Float[Array, " m"]:
    spec = stage.spec
    shared = spec.block_size - spec.stride
    overlap = windows.at(slice(spec.stride, spec.block_size))
    squares = []
    for found in stage.equations(windows, no_noise(windows), z):
        for part, states, value in found.parts(spec):
            inside = slice(0, shared) if states == spec.target else slice(spec.stride, None)
            squares.append((value[:, inside] - getattr(overlap, part)) ** 2)
    return jnp.sqrt(jnp.stack(squares).mean((0, 2, 3))) / stage.scale
