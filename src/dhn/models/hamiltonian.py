"""The right and left block Hamiltonians (paper, Sec. 3.3 and appendix A): gradients of a scalar.

Each network learns the part beyond identity, `H⁺ = <Q, P> + h⁺` and `H⁻ = -<Q, P> + h⁻`, so that a
network that outputs nothing leaves the state where it is. To first order in the lag both `h` are
the lag times the continuous one, right (paper, Eq. 5-6) and left (paper, Eq. 15-16).
"""

from typing import final

import equinox as eqx
import jax

from dhn.blocks import Block, Code, NoiseLevel
from dhn.models.networks.scalar import AbstractScalarNetwork


def _gradients(network, scale, Q, P, level, z):
    def total(Q, P):
        return scale * network(Q, P, level, z).sum()

    return jax.grad(total, argnums=(0, 1))(Q, P)


@final
class RightHamiltonian(eqx.Module):
    """`H⁺(Q_source, P_target)`."""

    network: AbstractScalarNetwork
    scale: float = eqx.field(static=True)
    """Unit of the network's value: a typical change over the lag makes it work at order one."""

    def right_update(
        self, Q_source: Block, P_target: Block, level: NoiseLevel, z: Code
    ) -> tuple[Block, Block]:
        """`Q_target = ∂H⁺/∂P_target`, `P_source = ∂H⁺/∂Q_source` (paper, Eq. 8-9)."""
        dQ, dP = _gradients(self.network, self.scale, Q_source, P_target, level, z)
        return Q_source + dP, P_target + dQ


@final
class LeftHamiltonian(eqx.Module):
    """`H⁻(Q_target, P_source)`."""

    network: AbstractScalarNetwork
    scale: float = eqx.field(static=True)

    def left_update(
        self, Q_target: Block, P_source: Block, level: NoiseLevel, z: Code
    ) -> tuple[Block, Block]:
        """`Q_source = -∂H⁻/∂P_source`, `P_target = -∂H⁻/∂Q_target` (paper, Eq. 17-18)."""
        dQ, dP = _gradients(self.network, self.scale, Q_target, P_source, level, z)
        return Q_target - dP, P_source - dQ
