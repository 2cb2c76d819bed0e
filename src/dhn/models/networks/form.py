"""A quadratic form beside a network: what classical mechanics would write down first.

Springs and constant masses are quadratic in the states, a pendulum's weight is linear in the
cosine of its angle. Such terms hold where no data are, which a network does not: a motion that
dies away is soon smaller than anything it was trained on.
"""

from typing import final

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


@final
class QuadraticForm(eqx.Module):
    """`xᵀ A x + a·x`, zero at first."""

    matrix: Float[Array, "m m"]
    slope: Float[Array, " m"]

    def __init__(self, size: int):
        self.matrix = jnp.zeros((size, size))
        self.slope = jnp.zeros(size)

    def __call__(self, x: Float[Array, "n m"]) -> Float[Array, " n"]:
        return ((x @ self.matrix) * x).sum(1) + x @ self.slope
