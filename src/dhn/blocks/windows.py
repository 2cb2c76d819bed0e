"""Windows: which runs of states may be trained on, and cutting them out of the arrays."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from dhn.blocks.state import StateBlock
from dhn.errors import UserError


def complete_windows(
    known: Bool[Any, "n T"], length: int, spacing: int = 1
) -> Bool[Any, "n starts"]:
    """Whether every state of the window that starts there is known; NumPy or JAX arrays.

    What lies between the states of a spaced window does not matter.
    """
    reach = (length - 1) * spacing
    steps = max(known.shape[1] - reach, 0)
    complete = known[:, :steps]
    for i in range(1, length):
        complete = complete & known[:, i * spacing : i * spacing + steps]
    return complete


def window_starts(known: Bool[np.ndarray, "n T"], length: int, spacing: int = 1) -> np.ndarray:
    """All `(trajectory, start)` of `complete_windows`, int32 `(w, 2)`; a `UserError` if none is."""
    complete = complete_windows(known, length, spacing)
    if complete.shape[1] == 0:
        raise UserError(
            f"a window needs {(length - 1) * spacing + 1} states ({length} of them, {spacing} "
            f"apart), but the trajectories have only {known.shape[1]}. Use a smaller block, "
            f"stride, spacing or path, or longer trajectories."
        )
    starts = np.argwhere(complete).astype(np.int32)
    if len(starts) == 0:
        raise UserError(
            f"no run of {length} known states, {spacing} apart, without a gap in any trajectory. "
            f"Use a smaller block or stride, or fill the gaps first."
        )
    return starts


def cut_windows(
    states: StateBlock,
    trajectory: Int[Array, " n"],
    start: Int[Array, " n"],
    length: int,
    spacing: int = 1,
) -> StateBlock:
    """The windows that begin at `start` of these trajectories: `(n, length, d)`."""
    time = start[:, None] + spacing * jnp.arange(length)[None, :]
    row = trajectory[:, None]
    return StateBlock(states.q[row, time], states.p[row, time])
