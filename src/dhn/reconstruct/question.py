"""A question about trajectories as arrays: what is known, how well, and where to begin."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

States = Float[np.ndarray, "n T m"]
"""Numbers of `n` trajectories on one grid of `T` times; a state is `[q, p]`."""
Mask = Bool[np.ndarray, "n T m"]
"""Which of these numbers are known."""


class Between(NamedTuple):
    """Measurements at times between the states of the grid.

    `J` is the largest number of them in one interval; unused places have weight 0.
    """

    values: Float[Any, "n I J m"]
    weight: Float[Any, "n I J m"]
    fraction: Float[Any, "n I J"]
    """Position in the interval, from 0 at its first state to 1 at its last."""


class Question(NamedTuple):
    """Scaled numbers of `n` trajectories on one grid of `T` times; a state is `[q, p]`."""

    values: Float[Any, "n T m"]
    """Measured numbers; 0 where nothing was measured."""
    weight: Float[Any, "n T m"]
    """Inverse variance of each measurement; 0 is unknown."""
    guess: Float[Any, "n T m"]
    length: Int[Any, " n"]
    """States of each trajectory that count; the others are padding."""
    between: Between

    @property
    def states(self) -> int:
        return self.values.shape[1]


STENCIL = 6
"""States that an interpolated measurement looks at: the error is of sixth order in the step."""


def nothing_between(n: int, states: int, size: int) -> Between:
    """No measurement off the grid."""
    return Between(
        np.zeros((n, states - 1, 0, size)),
        np.zeros((n, states - 1, 0, size)),
        np.zeros((n, states - 1, 0)),
    )


def interpolate_path(path, fraction):
    """The path between its states, by a local polynomial through up to `STENCIL` of them.

    Arguments:
        path: (n, T, m) states.
        fraction: (n, T - 1, J) positions in the intervals.

    Returns:
        (n, T - 1, J, m).
    """
    T = path.shape[1]
    order = min(STENCIL, T)
    first = np.clip(np.arange(T - 1) - (order // 2 - 1), 0, T - order)
    nodes = np.arange(order)
    position = fraction + (np.arange(T - 1) - first)[None, :, None]
    total = 0.0
    for k in nodes:
        weight = jnp.ones_like(position)
        for j in nodes:
            if j != k:
                weight = weight * (position - j) / (k - j)
        total = total + weight[..., None] * path[:, first + k][:, :, None]
    return total
