"""The codebook while it learns: Adam that touches only the rows of the batch.

A dense optimiser would read and write every trajectory's code at every step; this one costs the
same for a thousand trajectories and for a million.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


class CodebookState(eqx.Module):
    """Codes and Adam's moments, one row a trajectory. Codes start at zero: all systems alike."""

    rows: Float[Array, "N k"]
    mean: Float[Array, "N k"]
    square: Float[Array, "N k"]
    count: Int[Array, " N"]

    @classmethod
    def zeros(cls, trajectories: int, latent_size: int, dtype) -> "CodebookState":
        shape = (trajectories, latent_size)
        return cls(
            jnp.zeros(shape, dtype),
            jnp.zeros(shape, dtype),
            jnp.zeros(shape, dtype),
            jnp.zeros(trajectories, jnp.int32),
        )


def update_rows(
    state: CodebookState,
    index: Int[Array, " m"],
    gradient: Float[Array, "m k"],
    learning_rate: Float[Array, ""],
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> CodebookState:
    """One Adam step on the rows named by `index`; gradients of a row named twice add up."""
    m, absent = index.shape[0], state.rows.shape[0]
    row, inverse = jnp.unique(index, return_inverse=True, size=m, fill_value=absent)
    gradient = jax.ops.segment_sum(gradient, inverse, m)
    count = state.count[row] + 1
    mean = b1 * state.mean[row] + (1 - b1) * gradient
    square = b2 * state.square[row] + (1 - b2) * gradient**2
    age = count[:, None].astype(gradient.dtype)
    step = mean / (1 - b1**age) / (jnp.sqrt(square / (1 - b2**age)) + eps)
    # Rows past the end (the padding of `unique`) are dropped by the scatter.
    write = {"mode": "drop", "unique_indices": False}
    return CodebookState(
        rows=state.rows.at[row].add(-learning_rate * step, **write),
        mean=state.mean.at[row].set(mean, **write),
        square=state.square.at[row].set(square, **write),
        count=state.count.at[row].set(count, **write),
    )
