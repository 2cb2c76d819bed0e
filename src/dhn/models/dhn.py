"""The Denoising Hamiltonian Network: stages that share one codebook."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from dhn.blocks import (
    BlockSpec,
    StateBlock,
    autoregressive,
    corrupt,
    draw_known,
    draw_noise_level,
    get_mask,
)
from dhn.errors import UserError
from dhn.models.config import DHNConfig, NetworkConfig
from dhn.models.contract import AbstractForecaster, ModelContext, WindowShape
from dhn.models.damping import LearnedDamping, NoDamping
from dhn.models.denoise import denoise
from dhn.models.hamiltonian import LeftHamiltonian, RightHamiltonian
from dhn.models.networks.features import StateFeatures
from dhn.models.networks.mlp import MLPNetwork
from dhn.models.networks.scalar import AbstractScalarNetwork
from dhn.models.networks.transformer import TransformerNetwork
from dhn.models.path import path_loss
from dhn.models.stage import (
    AbstractStage,
    LinkedStage,
    PairedStage,
    consistency_loss,
    denoising_loss,
    equation_loss,
    stage_residuals,
)


def build_network(
    config: NetworkConfig,
    *,
    block_size: int,
    latent_size: int,
    denoising_steps: int,
    features: StateFeatures,
    key: Key[Array, ""],
) -> AbstractScalarNetwork:
    if config.kind == "mlp":
        return MLPNetwork(
            block_size=block_size,
            features=features,
            latent_size=latent_size,
            width=config.width,
            depth=config.depth,
            activation=config.activation,
            quadratic=config.quadratic,
            key=key,
        )
    return TransformerNetwork(
        block_size=block_size,
        features=features,
        latent_size=latent_size,
        denoising_steps=denoising_steps,
        width=config.width,
        depth=config.depth,
        heads=config.heads,
        activation=config.activation,
        layer_norm=config.layer_norm,
        key=key,
    )


class DHNModel(AbstractForecaster):
    """One or more stages; the finest one (smallest spacing) forecasts."""

    stages: tuple[AbstractStage, ...]
    config: DHNConfig = eqx.field(static=True)
    path_noise: Float[Array, "2 d"] | None = None
    """How closely paths meet the measurements (scaled); None without paths. Not trained by steps:
    it only weighs."""

    @classmethod
    def build(cls, config: DHNConfig, context: ModelContext, key: Key[Array, ""]) -> "DHNModel":
        """Fresh weights; `context` is what the data say about dimension, time step and scale."""
        if config.linked and config.consistency_weight > 0:
            raise UserError(
                f"consistency_weight={config.consistency_weight} asks two networks to agree, but a "
                f"linked model has one. Use linked=False (preset paired) or consistency_weight=0."
            )
        features = StateFeatures(
            tuple(
                unit if angle and config.angles == "periodic" else None
                for angle, unit in zip(context.angles, context.radian, strict=True)
            )
        )
        stages = []
        for spacing, stage_key in zip(
            config.spacings, jr.split(key, len(config.spacings)), strict=True
        ):
            spec = BlockSpec(config.block_size, config.stride, spacing * context.time_step)
            scale = context.change(max(config.stride, 1) * spacing)
            keys = jr.split(stage_key)
            networks = [
                build_network(
                    config.network,
                    block_size=config.block_size,
                    latent_size=config.latent_size,
                    denoising_steps=config.denoising_steps,
                    features=features,
                    key=key,
                )
                for key in keys
            ]
            damping = (
                LearnedDamping(config.latent_size, context.time_step)
                if config.damping == "learned"
                else NoDamping()
            )
            right = RightHamiltonian(networks[0], scale)
            if config.linked:
                stage = LinkedStage(
                    right=right, damping=damping, spec=spec, spacing=spacing, scale=scale
                )
            else:
                left = LeftHamiltonian(networks[1], scale)
                stage = PairedStage(
                    right=right, left=left, damping=damping, spec=spec, spacing=spacing, scale=scale
                )
            stages.append(stage)
        # pyright takes Equinox's abstract variables for fields of the constructor.
        noise = jnp.ones((2, context.dim)) if config.path else None
        return cls(stages=tuple(stages), path_noise=noise, config=config)  # pyright: ignore[reportCallIssue]

    @property
    def latent_size(self) -> int:
        return self.config.latent_size

    @property
    def window_shapes(self) -> tuple[WindowShape, ...]:
        return tuple(WindowShape(s.spec.window_length, s.spacing) for s in self.stages)

    @property
    def loss_names(self) -> tuple[str, ...]:
        config = self.config
        along_paths = config.path > 0 and config.path_weight > 0
        names = [] if along_paths and config.equation_weight == 0 else ["equation"]
        names += ["denoising"] * (config.denoising_weight > 0)
        names += ["consistency"] * (config.consistency_weight > 0) + ["path"] * along_paths
        return tuple(names)

    @property
    def training_shapes(self) -> tuple[WindowShape, ...]:
        """Windows of every stage and, behind them, those of paths."""
        path = (WindowShape(self.config.path, 1),) if self.config.path else ()
        return self.window_shapes + path

    @property
    def finest(self) -> AbstractStage:
        return min(self.stages, key=lambda stage: stage.spacing)

    @property
    def context_length(self) -> int:
        return self.finest.spec.context_length

    @property
    def step_length(self) -> int:
        return self.finest.spec.step_length

    def losses(
        self,
        windows: tuple[StateBlock, ...],
        codes: tuple[Float[Array, "n k"], ...],
        key: Key[Array, ""],
    ) -> dict[str, Float[Array, ""]]:
        config = self.config
        total = dict.fromkeys(self.loss_names, jnp.zeros((), codes[0].dtype))
        keys = jr.split(key, len(self.stages))
        # Behind the stages' windows there may be one of a path.
        for stage, window, z, key in zip(self.stages, windows, codes, keys, strict=False):
            if "equation" in total:
                total["equation"] += config.equation_weight * equation_loss(stage, window, z)
            if "denoising" in total:
                key_mask, key_level, key_noise = jr.split(key, 3)
                pattern = get_mask(config.mask)
                known = draw_known(key_mask, pattern, stage.spec, window.q.shape[0])
                level = draw_noise_level(key_level, known, config.denoising_steps, window.q.dtype)
                noised = corrupt(key_noise, window, level)
                total["denoising"] += config.denoising_weight * denoising_loss(
                    stage, window, noised, known, level, z, config.denoising_outputs
                )
            if "consistency" in total:
                assert isinstance(stage, PairedStage)
                total["consistency"] += config.consistency_weight * consistency_loss(
                    stage, window, z, jr.fold_in(key, 1)
                )
        total = {name: value / len(self.stages) for name, value in total.items()}
        if "path" in total:
            stage = self.finest
            assert isinstance(stage, LinkedStage) and self.path_noise is not None
            total["path"] = config.path_weight * path_loss(
                stage, windows[-1], codes[-1], self.path_noise
            )
        return total

    def stage_residuals(
        self, stage: int, window: StateBlock, z: Float[Array, "n k"]
    ) -> Float[Array, "n m"]:
        return stage_residuals(self.stages[stage], window, z)

    def advance(
        self, context: StateBlock, z: Float[Array, "n k"], key: Key[Array, ""]
    ) -> StateBlock:
        stage, spec = self.finest, self.finest.spec
        if stage.spacing != 1:
            raise UserError(
                f"a forecast moves by single steps of the data's grid, but this model's finest "
                f"stage has spacing {stage.spacing}. Train with 1 among its spacings."
            )
        new = slice(spec.block_size - spec.step_length, None)
        if isinstance(stage, LinkedStage):
            return stage.forward(context.at(spec.source), z).at(new)
        # The unknown states start as the last known one; `denoise` replaces them.
        window = jax.tree.map(
            lambda x: jnp.concatenate([x, jnp.repeat(x[:, -1:], spec.step_length, axis=1)], axis=1),
            context,
        )
        known = draw_known(key, autoregressive, spec, context.q.shape[0])
        filled = denoise(stage, window, known, z, key, self.config.inference)
        return filled.at(spec.target).at(new)
