"""A DHN whose Hamiltonian is exact: harmonic oscillators told apart by their code."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dhn.blocks import BlockSpec, NoiseLevel, StateBlock
from dhn.codes.autodecode import CodePrior
from dhn.models import DHNConfig, DHNModel, LinkedStage, ModelContext, RightHamiltonian
from dhn.models.damping import NoDamping
from dhn.models.networks.scalar import AbstractScalarNetwork

TIME_STEP = 0.1


class ExactOscillator(AbstractScalarNetwork):
    """`h⁺ = q p (1/cos wD - 1) + tan(wD)/2 (w q² + p²/w)` with frequency `w = 1 + z`."""

    dummy: Array
    lag: float = eqx.field(static=True)

    def __call__(
        self,
        Q: Float[Array, "n b d"],
        P: Float[Array, "n b d"],
        level: NoiseLevel,
        z: Float[Array, "n k"],
    ) -> Float[Array, " n"]:
        w = (1.0 + z[:, :1])[..., None]
        angle = w * self.lag
        h = Q * P * (1 / jnp.cos(angle) - 1) + jnp.tan(angle) / 2 * (w * Q**2 + P**2 / w)
        return h.sum((1, 2)) + 0.0 * self.dummy


def exact_model(block_size: int = 1, stride: int = 1, dtype=jnp.float64) -> DHNModel:
    spec = BlockSpec(block_size, stride, TIME_STEP)
    network = ExactOscillator(jnp.zeros((), dtype), spec.lag)
    stage = LinkedStage(RightHamiltonian(network, 1.0), NoDamping(), spec, 1, 0.1)
    config = DHNConfig(block_size=block_size, stride=stride, latent_size=1)
    return DHNModel(stages=(stage,), config=config)


def exact_states(frequencies: np.ndarray, steps: int, phases: np.ndarray) -> StateBlock:
    """`q = cos(w t + φ)`, `p = -w sin(w t + φ)` for unit mass."""
    t = TIME_STEP * np.arange(steps)
    angle = frequencies[:, None] * t + phases[:, None]
    return StateBlock(np.cos(angle)[..., None], -(frequencies[:, None] * np.sin(angle))[..., None])


def prior() -> CodePrior:
    """Frequencies of about 1 ± 0.2."""
    return CodePrior.fit(np.linspace(-0.35, 0.35, 30)[:, None], noise=1e-4)


CONTEXT = ModelContext(1, TIME_STEP, (False,), (1.0,), (0.1, 0.2, 0.4, 0.8))
