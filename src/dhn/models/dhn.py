"""The Denoising Hamiltonian Network: stages that share one codebook."""

from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, Key

from dhn.blocks import (
    BlockSpec,
    Code,
    StateBlock,
    autoregressive,
    corrupt,
    corrupt_nearby,
    draw_any_level,
    draw_known,
    draw_noise_level,
    get_mask,
    rung_above,
)
from dhn.errors import UserError
from dhn.models.config import DHNConfig, NetworkConfig
from dhn.models.contract import AbstractForecaster, AbstractModel, ModelContext, WindowShape
from dhn.models.damping import LearnedDamping, NoDamping
from dhn.models.denoise import denoise
from dhn.models.hamiltonian import LeftHamiltonian, RightHamiltonian
from dhn.models.networks.mlp import MLPNetwork
from dhn.models.networks.scalar import AbstractScalarNetwork
from dhn.models.networks.transformer import TransformerNetwork
from dhn.models.stage import (
    AbstractStage,
    LinkedStage,
    PairedStage,
    equation_loss,
    merged_losses,
    separate_losses,
    stage_residuals,
)

NOISED_ROWS = 4
"""With noise="nearby", one window of so many is noised; more slowed the clean equations down."""


def build_network(
    config: NetworkConfig, *, denoising_steps: int, **shared: Any
) -> AbstractScalarNetwork:
    """Fresh weights of the network inside a Hamiltonian.

    Arguments:
        config: Kind and size.
        denoising_steps: Levels that a transformer is conditioned on.
        shared: block_size, features, latent_size and key, which every network takes.

    Returns:
        An MLP or a transformer.
    """
    if config.kind == "mlp":
        return MLPNetwork(config, **shared)
    return TransformerNetwork(config, denoising_steps=denoising_steps, **shared)


@final
class DHNModel(AbstractForecaster):
    """One or more stages; the finest one (smallest spacing) forecasts."""

    stages: tuple[AbstractStage, ...]
    config: DHNConfig = eqx.field(static=True)

    @classmethod
    def build(cls, config: DHNConfig, context: ModelContext, key: Key[Array, ""]) -> "DHNModel":
        """Fresh weights; `context` is what the data determine: dimension, time step and scale."""

        def network(key):
            return build_network(
                config.network,
                block_size=config.block_size,
                latent_size=config.latent_size,
                denoising_steps=config.denoising_steps,
                features=context.features(config.angles),
                key=key,
            )

        stages = []
        for spacing, stage_key in zip(
            config.spacings, jr.split(key, len(config.spacings)), strict=True
        ):
            scale = context.change(max(config.stride, 1) * spacing)
            unit = scale if config.units == "change" else 1.0
            shared = {
                "damping": (
                    LearnedDamping(config.latent_size, context.time_step)
                    if config.damping == "learned"
                    else NoDamping()
                ),
                "spec": BlockSpec(config.block_size, config.stride, spacing * context.time_step),
                "spacing": spacing,
                "scale": scale,
            }
            keys = jr.split(stage_key)
            right = RightHamiltonian(network(keys[0]), unit)
            if config.linked:
                stages.append(LinkedStage(right=right, **shared))
            else:
                left = LeftHamiltonian(network(keys[1]), unit)
                stages.append(PairedStage(right=right, left=left, **shared))
        # pyright takes Equinox's abstract variables for fields of the constructor.
        return cls(stages=tuple(stages), config=config)  # pyright: ignore[reportCallIssue]

    @property
    def latent_size(self) -> int:
        return self.config.latent_size

    @property
    def window_shapes(self) -> tuple[WindowShape, ...]:
        return tuple(WindowShape(s.spec.window_length, s.spacing) for s in self.stages)

    @property
    def loss_names(self) -> tuple[str, ...]:
        return ("equation", "denoising") if self.config.denoising_weight > 0 else ("equation",)

    @property
    def tokens(self) -> int:
        """z, and a q and a p for every state of the block."""
        return 1 + 2 * self.config.block_size if self.config.network.kind == "transformer" else 0

    @property
    def finest(self) -> AbstractStage:
        return min(self.stages, key=lambda stage: stage.spacing)

    @property
    def block_map(self) -> AbstractStage:
        return self.finest

    @property
    def context_length(self) -> int:
        return self.finest.spec.context_length

    @property
    def step_length(self) -> int:
        whole = self.finest.spec.step_length
        return min(1, whole) if self.config.inference.advance == "one" else whole

    def losses(
        self,
        windows: tuple[StateBlock, ...],
        codes: tuple[Float[Array, "_ k"], ...],
        key: Key[Array, ""],
        part: Int[Array, ""] | int = 0,
    ) -> dict[str, Float[Array, ""]]:
        config = self.config
        total = dict.fromkeys(self.loss_names, jnp.zeros((), codes[0].dtype))
        keys = jr.split(key, len(self.stages))
        for stage, window, z, key in zip(self.stages, windows, codes, keys, strict=True):
            # Losses come in units of a typical change; the paper's are of the state itself.
            unit = 1.0 if config.units == "change" else stage.scale**2
            for name, loss in self._stage_losses(stage, window, z, key, part).items():
                total[name] += unit / len(self.stages) * loss
        return total

    def _stage_losses(self, stage, window, z, key, part) -> dict[str, Float[Array, ""]]:
        config, own = self.config, jr.fold_in(key, part)
        weights = {"equation": config.equation_weight, "denoising": config.denoising_weight}
        if config.denoising_weight == 0:
            return {"equation": weights["equation"] * equation_loss(stage, window, z)}
        key_mask, key_level, key_noise = jr.split(own, 3)
        rows = window.q.shape[0]
        every = NOISED_ROWS if config.noise == "nearby" else 1
        known = draw_known(
            key if config.shared_mask else key_mask,
            get_mask(config.mask),
            stage.spec,
            -(-rows // every),
            shared=config.shared_mask,
        )
        if config.noise == "nearby":
            # Random numbers cost as much as the networks, so only for the windows that need them.
            some = jax.tree.map(lambda x: x[::every], window)
            drawn = (corrupt_nearby(key_noise, some, known, stage.scale), known)
            nearby, known = jax.tree.map(lambda x: jnp.repeat(x, every, axis=0)[:rows], drawn)
            noised = jnp.arange(rows) % every == 0
            found = merged_losses(stage, window, nearby, known, noised, z)
        else:
            steps, dtype = config.denoising_steps, window.q.dtype
            if config.noise == "uniform":
                level = draw_any_level(key_level, known, dtype)
                condition = rung_above(level, steps)
            else:
                level = condition = draw_noise_level(key_level, known, steps, dtype)
            inputs = corrupt(key_noise, window, level)
            outputs = config.denoising_outputs
            found = separate_losses(stage, window, inputs, known, condition, z, outputs)
        return {name: weights[name] * loss for name, loss in zip(weights, found, strict=True)}

    def stage_residuals(self, stage: int, window: StateBlock, z: Code) -> Float[Array, "n m"]:
        return stage_residuals(self.stages[stage], window, z)

    def advance(self, context: StateBlock, z: Code, key: Key[Array, ""]) -> StateBlock:
        stage, spec = self.finest, self.finest.spec
        if stage.spacing != 1:
            raise UserError(
                f"a forecast moves by single steps of the data's grid, but this model's finest "
                f"stage has spacing {stage.spacing}. Train with 1 among its spacings."
            )
        new = slice(spec.context_length, spec.context_length + self.step_length)
        if isinstance(stage, LinkedStage):
            first = spec.block_size - spec.step_length
            found = stage.forward(context.at(spec.source), z)
            return found.at(slice(first, first + self.step_length))
        window = continue_straight(context, spec.step_length)
        known = draw_known(key, autoregressive, spec, context.q.shape[0])
        return denoise(stage, window, known, z, key, self.config.inference).at(new)


def as_dhn(model: AbstractModel) -> DHNModel:
    """The same model, if it is a DHN; else a `UserError`."""
    if not isinstance(model, DHNModel):
        raise UserError(f"denoising needs the Hamiltonians of a DHN; got a {type(model).__name__}.")
    return model


def continue_straight(context: StateBlock, steps: int) -> StateBlock:
    """Append states on the line through the last two; a single state stays where it is."""

    def extend(x):
        before = x[:, -2:-1] if x.shape[1] > 1 else x[:, -1:]
        ahead = jnp.arange(1, steps + 1, dtype=x.dtype)[None, :, None]
        return jnp.concatenate([x, x[:, -1:] + ahead * (x[:, -1:] - before)], axis=1)

    return jax.tree.map(extend, context)
