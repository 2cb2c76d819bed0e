"""Hamiltonian neural network (Greydanus et al.), `H(q, p, z)` of one state (paper, Eq. 1-2)."""

import dataclasses
from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from dhn.blocks import Code, StateBlock, no_noise
from dhn.models.contract import AbstractForecaster, ModelContext, WindowShape
from dhn.models.dhn import build_network
from dhn.models.networks.scalar import AbstractScalarNetwork
from dhn.reproduction.baselines.config import HNNConfig, RolloutRule
from dhn.reproduction.baselines.integrators import EQUATIONS, STEPS
from dhn.reproduction.baselines.loss import AbstractResidualLoss


@final
class HNNModel(AbstractResidualLoss, AbstractForecaster):
    """Trained on pairs of neighbouring states; rolled out by a numerical integrator."""

    network: AbstractScalarNetwork
    scale: float = eqx.field(static=True)
    """Typical change of the state over one time step, so that the network works at order one."""
    time_step: float = eqx.field(static=True)
    config: HNNConfig = eqx.field(static=True)

    @classmethod
    def build(cls, config: HNNConfig, context: ModelContext, key: Key[Array, ""]) -> "HNNModel":
        network = build_network(
            config.network,
            block_size=1,
            latent_size=config.latent_size,
            denoising_steps=1,
            features=context.features(config.angles),
            key=key,
        )
        # pyright takes Equinox's abstract variables for fields of the constructor.
        return cls(  # pyright: ignore[reportCallIssue]
            network=network, scale=context.change(1), time_step=context.time_step, config=config
        )

    @property
    def latent_size(self) -> int:
        return self.config.latent_size

    @property
    def window_shapes(self) -> tuple[WindowShape, ...]:
        return (WindowShape(2),)

    @property
    def loss_names(self) -> tuple[str, ...]:
        return ("equation",)

    @property
    def context_length(self) -> int:
        return 1

    @property
    def step_length(self) -> int:
        return 1

    def with_rollout(self, rollout: RolloutRule) -> "HNNModel":
        """The same weights with another integrator."""
        config = HNNConfig(**{**self.config.model_dump(), "rollout": rollout})
        return dataclasses.replace(self, config=config)

    def energy(self, state: StateBlock, z: Code) -> Float[Array, " n"]:
        """The learned `H` of states `(n, 1, d)`."""
        value = self.network(state.q, state.p, no_noise(state), z)
        return self.scale / self.time_step * value

    def field(self, state: StateBlock, z: Code) -> StateBlock:
        """Hamilton's equations: `dq/dt = ∂H/∂p`, `dp/dt = -∂H/∂q`."""
        slope = jax.grad(lambda state: self.energy(state, z).sum())(state)
        return StateBlock(slope.p, -slope.q)

    def stage_residuals(self, stage: int, window: StateBlock, z: Code) -> Float[Array, "n m"]:
        source, target = window.at(slice(0, 1)), window.at(slice(1, 2))
        equation = EQUATIONS[self.config.training]
        predicted = equation(self.field, source, target, z, self.time_step)
        errors = jax.tree.map(lambda a, b: (a - b)[:, 0] / self.scale, predicted, target)
        return jnp.concatenate(errors, axis=1)

    def advance(self, context: StateBlock, z: Code, key: Key[Array, ""]) -> StateBlock:
        return STEPS[self.config.rollout](self.field, context, z, self.time_step)
