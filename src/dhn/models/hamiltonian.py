"""The right and left block Hamiltonians (paper, Eq. 9-10 and appendix A): gradients of a scalar.

Each network learns the part beyond identity, `H⁺ = <Q, P> + h⁺` and `H⁻ = -<Q, P> + h⁻`, so that a
network that outputs nothing leaves the state where it is.
"""

import equinox as eqx
import jax
from jaxtyping import Array, Float

from dhn.blocks import NoiseLevel
from dhn.models.networks.scalar import AbstractScalarNetwork


def _gradients(network, scale, Q, P, level, z):
    def total(Q, P):
        return scale * network(Q, P, level, z).sum()

    return jax.grad(total, argnums=(0, 1))(Q, P)


class RightHamiltonian(eqx.Module):
    """`H⁺(Q_source, P_target)`."""

    network: AbstractScalarNetwork
    scale: float = eqx.field(static=True)
    """Size of a typical change over the lag, so that the network works at order one."""

    def right_update(
        self,
        Q_source: Float[Array, "n b d"],
        P_target: Float[Array, "n b d"],
        level: NoiseLevel,
        z: Float[Array, "n k"],
    ) -> tuple[Float[Array, "n b d"], Float[Array, "n b d"]]:
        """`Q_target = ∂H⁺/∂P_target`, `P_source = ∂H⁺/∂Q_source`."""
        dQ, dP = _gradients(self.network, self.scale, Q_source, P_target, level, z)
        return Q_source + dP, P_target + dQ


class LeftHamiltonian(eqx.Module):
    """`H⁻(Q_target, P_source)`."""

    network: AbstractScalarNetwork
    scale: float = eqx.field(static=True)

    def left_update(
        self,
        Q_target: Float[Array, "n b d"],
        P_source: Float[Array, "n b d"],
        level: NoiseLevel,
        z: Float[Array, "n k"],
    ) -> tuple[Float[Array, "n b d"], Float[Array, "n b d"]]:
        """`Q_source = -∂H⁻/∂P_source`, `P_target = -∂H⁻/∂Q_target`."""
        dQ, dP = _gradients(self.network, self.scale, Q_target, P_source, level, z)
        return Q_target - dP, P_source - dQ
