"""The codebook while it learns, by Adam.

`update_rows` touches only the rows of the batch and costs the same for a thousand trajectories and
for a million. `update_all` moves every row at every step, as a dense optimiser does (the authors'):
between two visits a row goes on by its momentum and shrinks by the penalty.
"""

from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, Key

B1, B2, EPS = 0.9, 0.999, 1e-8
"""Adam's usual constants."""


@final
class CodebookState(eqx.Module):
    """Codes and Adam's moments, one row a trajectory."""

    rows: Float[Array, "N k"]
    mean: Float[Array, "N k"]
    square: Float[Array, "N k"]
    count: Int[Array, " N"]

    @classmethod
    def start(
        cls, key: Key[Array, ""], trajectories: int, latent_size: int, spread: float, dtype
    ) -> "CodebookState":
        """Codes from N(0, spread²); with spread 0 all systems begin alike."""
        shape = (trajectories, latent_size)
        return cls(
            spread * jr.normal(key, shape, dtype),
            jnp.zeros(shape, dtype),
            jnp.zeros(shape, dtype),
            jnp.zeros(trajectories, jnp.int32),
        )


def update_rows(
    state: CodebookState,
    index: Int[Array, " m"],
    gradient: Float[Array, "m k"],
    learning_rate: Float[Array, ""],
    l2: float = 0.0,
) -> CodebookState:
    """One Adam step on the rows named by `index`; gradients of a row named twice add up.

    **Arguments**: `index` (m,) rows and `gradient` (m, k); `l2` times the code is added to it.
    """
    m, absent = index.shape[0], state.rows.shape[0]
    row, inverse = jnp.unique(index, return_inverse=True, size=m, fill_value=absent)
    gradient = jax.ops.segment_sum(gradient, inverse, m) + l2 * state.rows[row]
    count, mean, square, step = _adam(
        state.count[row], state.mean[row], state.square[row], gradient
    )
    # Rows past the end (the padding of `unique`) are dropped by the scatter.
    write = {"mode": "drop", "unique_indices": False}
    return CodebookState(
        rows=state.rows.at[row].add(-learning_rate * step, **write),
        mean=state.mean.at[row].set(mean, **write),
        square=state.square.at[row].set(square, **write),
        count=state.count.at[row].set(count, **write),
    )


def update_all(
    state: CodebookState,
    index: Int[Array, " m"],
    gradient: Float[Array, "m k"],
    learning_rate: Float[Array, ""],
    l2: float = 0.0,
) -> CodebookState:
    """One Adam step on every row; those that `index` does not name have the penalty's gradient."""
    gradient = jax.ops.segment_sum(gradient, index, state.rows.shape[0]) + l2 * state.rows
    count, mean, square, step = _adam(state.count, state.mean, state.square, gradient)
    return CodebookState(state.rows - learning_rate * step, mean, square, count)


def _adam(count, mean, square, gradient):
    """The next counts and moments, and the step before the learning rate."""
    count = count + 1
    mean = B1 * mean + (1 - B1) * gradient
    square = B2 * square + (1 - B2) * gradient**2
    age = count[:, None].astype(gradient.dtype)
    return count, mean, square, mean / (1 - B1**age) / (jnp.sqrt(square / (1 - B2**age)) + EPS)
