"""Linear damping: the block map becomes conformally symplectic.

With `dp/dt = -∂H/∂q - γ p` the flow over a lag is a symplectic map followed by shrinking the
momenta by `exp(-γ · lag)`. So the Hamiltonians see the target's momenta grown back.
"""

import abc
from typing import final

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from dhn.blocks import Code


class AbstractDamping(eqx.Module):
    @abc.abstractmethod
    def rate(self, z: Code) -> Float[Array, " n"]:
        """`γ` of each trajectory, per unit of time."""

    def growth(self, z: Code, lag: float) -> Float[Array, "n 1 1"]:
        """`exp(γ · lag)`."""
        return jnp.exp(self.rate(z) * lag)[:, None, None]


@final
class NoDamping(AbstractDamping):
    """Exactly zero: the map is symplectic."""

    def rate(self, z: Code) -> Float[Array, " n"]:
        return jnp.zeros(z.shape[0], z.dtype)


@final
class LearnedDamping(AbstractDamping):
    """An affine function of the code, in units of one over the time step."""

    base: Float[Array, ""]
    slope: Float[Array, " k"]
    time_step: float = eqx.field(static=True)

    def __init__(self, latent_size: int, time_step: float):
        self.base = jnp.zeros(())
        self.slope = jnp.zeros(latent_size)
        self.time_step = time_step

    def rate(self, z: Code) -> Float[Array, " n"]:
        return (self.base + z @ self.slope) / self.time_step
