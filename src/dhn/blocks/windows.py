"""Windows: which runs of states may be trained on, and cutting them out of the arrays."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from dhn.blocks.state import StateBlock
from dhn.errors import UserError


def window_starts(known: np.ndarray, length: int, spacing: int = 1) -> np.ndarray:
    """All `(trajectory, start)` whose `length` states, `spacing` apart, are known; int32 `(w, 2)`.

    `known` is `(trajectories, states)`. No window contains an unknown state or reaches past the
    end of a trajectory; what lies between the states of a spaced window does not matter.
    """
    reach = (length - 1) * spacing
    steps = known.shape[1] - reach
    if steps < 1:
        raise UserError(
            f"a window needs {reach + 1} states ({length} of them, {spacing} apart), but the "
            f"trajectories have only {known.shape[1]}. Use a smaller block, stride, spacing or "
            f"path, or longer trajectories."
        )
    complete = np.ones((known.shape[0], steps), bool)
    for i in range(length):
        complete &= known[:, i * spacing : i * spacing + steps]
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
