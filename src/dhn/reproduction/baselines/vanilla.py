"""Next-state networks without physical structure: the change of state in one feed-forward pass."""

from typing import final

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from dhn.blocks import Code, StateBlock
from dhn.models.contract import AbstractForecaster, ModelContext, WindowShape
from dhn.models.networks.features import StateFeatures
from dhn.reproduction.baselines.config import VanillaConfig
from dhn.reproduction.baselines.loss import AbstractResidualLoss
from dhn.reproduction.baselines.networks import ResidualMLP, VectorTransformer


@final
class VanillaModel(AbstractResidualLoss, AbstractForecaster):
    """Sees the last `context` states and the code; adds its output to the last state.

    Earlier states enter as differences to the last one, in units of a typical difference:
    neighbouring states are nearly equal, so a network that saw them as they are would have to find
    velocities in small differences of large numbers.
    """

    network: ResidualMLP | VectorTransformer
    features: StateFeatures
    change: float = eqx.field(static=True)
    """Typical change over one step: the unit of the output."""
    lags: tuple[float, ...] = eqx.field(static=True)
    """Typical difference of each earlier state to the last: the units of the inputs."""
    config: VanillaConfig = eqx.field(static=True)

    @classmethod
    def build(
        cls, config: VanillaConfig, context: ModelContext, key: Key[Array, ""]
    ) -> "VanillaModel":
        features = context.features(config.angles)
        earlier = config.context - 1
        if config.network == "resnet":
            network = ResidualMLP(
                inputs=2 * (features.size + earlier * context.dim) + config.latent_size,
                outputs=2 * context.dim,
                width=config.width,
                depth=config.depth,
                activation=config.activation,
                key=key,
            )
        else:
            network = VectorTransformer(
                config,
                features=features.size + (context.dim if earlier else 0),
                outputs=2 * context.dim,
                key=key,
            )
        # pyright takes Equinox's abstract variables for fields of the constructor.
        return cls(  # pyright: ignore[reportCallIssue]
            network=network,
            features=features,
            change=context.change(1),
            lags=tuple(context.change(lag) for lag in range(earlier, 0, -1)),
            config=config,
        )

    @property
    def latent_size(self) -> int:
        return self.config.latent_size

    @property
    def window_shapes(self) -> tuple[WindowShape, ...]:
        return (WindowShape(self.config.context + 1),)

    @property
    def loss_names(self) -> tuple[str, ...]:
        return ("prediction",)

    @property
    def context_length(self) -> int:
        return self.config.context

    @property
    def step_length(self) -> int:
        return 1

    def _output(
        self, context: StateBlock, z: Code
    ) -> tuple[Float[Array, "n d"], Float[Array, "n d"]]:
        """Change of q and of p, in units of a typical change."""
        n = z.shape[0]
        unit = jnp.array((*self.lags, 1.0), z.dtype)[:, None]
        back_q, back_p = ((x - x[:, -1:]) / unit for x in context)
        if isinstance(self.network, ResidualMLP):
            last = self.features(context.q[:, -1]), self.features.momenta(context.p[:, -1])
            earlier = [x[:, :-1].reshape(n, -1) for x in (back_q, back_p)]
            out = self.network(jnp.concatenate([*last, *earlier, z], axis=1))
        else:
            q_tokens, p_tokens = self.features(context.q), self.features.momenta(context.p)
            if self.lags:
                q_tokens = jnp.concatenate([q_tokens, back_q], axis=-1)
                p_tokens = jnp.concatenate([p_tokens, back_p], axis=-1)
            out = self.network(q_tokens, p_tokens, z)
        dq, dp = jnp.split(out, 2, axis=1)
        return dq, dp

    def stage_residuals(self, stage: int, window: StateBlock, z: Code) -> Float[Array, "n m"]:
        dq, dp = self._output(window.at(slice(0, -1)), z)
        truth_q, truth_p = ((x[:, -1] - x[:, -2]) / self.change for x in window)
        return jnp.concatenate([dq - truth_q, dp - truth_p], axis=1)

    def advance(self, context: StateBlock, z: Code, key: Key[Array, ""]) -> StateBlock:
        dq, dp = self._output(context, z)
        return StateBlock(
            context.q[:, -1:] + self.change * dq[:, None],
            context.p[:, -1:] + self.change * dp[:, None],
        )
