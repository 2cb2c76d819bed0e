"""1-D convolutional network for super-resolution: the paper's baseline of interpolation."""

from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from dhn.blocks import Code, StateBlock
from dhn.errors import UserError
from dhn.models.contract import ModelContext, WindowShape
from dhn.models.networks.scalar import get_activation
from dhn.reproduction.baselines.config import CNNConfig
from dhn.reproduction.baselines.loss import AbstractResidualLoss
from dhn.reproduction.baselines.upsampler import AbstractUpsampler, bend, linear_upsample


@final
class Convolution(eqx.Module):
    """A convolution over time as a sum of shifted products; the ends are repeated as padding.

    On a CPU this is about ten times faster than XLA's convolution.
    """

    weight: Float[Array, "kernel inputs outputs"]
    bias: Float[Array, " outputs"]

    def __init__(self, kernel: int, inputs: int, outputs: int, key: Key[Array, ""]):
        fan_in = kernel * inputs
        self.weight = jr.normal(key, (kernel, inputs, outputs)) / jnp.sqrt(fan_in)
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Float[Array, "n T inputs"]) -> Float[Array, "n T outputs"]:
        kernel, steps = self.weight.shape[0], x.shape[1]
        half = kernel // 2
        padded = jnp.pad(x, ((0, 0), (half, half), (0, 0)), mode="edge")
        return self.bias + sum(
            padded[:, i : i + steps] @ weight for i, weight in enumerate(self.weight)
        )


@final
class CNNModel(AbstractResidualLoss, AbstractUpsampler):
    """Linear upsampling, then convolutions with residual connections between them.

    Every state also sees its place between the two known ones; without it the network would have
    to find the kinks of the straight lines first.
    """

    layers: tuple[Convolution, ...]
    scale: float = eqx.field(static=True)
    """Unit of the output."""
    config: CNNConfig = eqx.field(static=True)

    @classmethod
    def build(cls, config: CNNConfig, context: ModelContext, key: Key[Array, ""]) -> "CNNModel":
        inputs = 2 * context.dim + config.factor + config.latent_size
        sizes = [inputs, *[config.width] * (config.depth - 1), 2 * context.dim]
        layers = [
            Convolution(config.kernel, a, b, key)
            for a, b, key in zip(sizes[:-1], sizes[1:], jr.split(key, config.depth), strict=True)
        ]
        if config.residual:
            # A fresh network is linear interpolation.
            layers[-1] = eqx.tree_at(
                lambda layer: layer.weight, layers[-1], replace_fn=jnp.zeros_like
            )
        scale = bend(context, config.factor) if config.residual else 1.0
        # pyright takes Equinox's abstract variables for fields of the constructor.
        return cls(  # pyright: ignore[reportCallIssue]
            layers=tuple(layers), scale=scale, config=config
        )

    @property
    def latent_size(self) -> int:
        # The codebook needs a column; a network that ignores it leaves it at zero.
        return max(1, self.config.latent_size)

    @property
    def window_shapes(self) -> tuple[WindowShape, ...]:
        return (WindowShape(self.config.factor * self.config.intervals + 1),)

    @property
    def loss_names(self) -> tuple[str, ...]:
        return ("interpolation",)

    @property
    def uses_code(self) -> bool:
        return self.config.latent_size > 0

    def upsample(self, sparse: StateBlock, z: Code, factor: int) -> StateBlock:
        if factor != self.config.factor:
            raise UserError(
                f"this network was trained to refine {self.config.factor} times; got "
                f"factor={factor}. Train one with CNNConfig(factor={factor})."
            )
        line = linear_upsample(jnp.concatenate(sparse, axis=-1), factor)
        n, steps, _ = line.shape
        code = z[:, None, : self.config.latent_size]
        place = jax.nn.one_hot(jnp.arange(steps) % factor, factor, dtype=line.dtype)
        x = jnp.concatenate(
            [
                line,
                jnp.broadcast_to(place, (n, steps, factor)),
                jnp.broadcast_to(code, (n, steps, code.shape[2])),
            ],
            axis=-1,
        )
        out = self.scale * self._convolve(x)
        filled = line + out if self.config.residual else out
        filled = jnp.where(place[:, :1] > 0, line, filled)
        return StateBlock(*jnp.split(filled, 2, axis=-1))

    def _convolve(self, x: Float[Array, "n T inputs"]) -> Float[Array, "n T outputs"]:
        act = get_activation(self.config.activation)
        first, *hidden, last = self.layers
        h = act(first(x))
        for layer in hidden:
            h = h + act(layer(h))
        return last(h)

    def stage_residuals(self, stage: int, window: StateBlock, z: Code) -> Float[Array, "n m"]:
        """Errors of the states in between alone; the known ones are given."""
        factor = self.config.factor
        filled = self.upsample(window.at(slice(None, None, factor)), z, factor)

        def unknown(predicted, truth):
            error = (predicted - truth)[:, :-1].reshape(z.shape[0], -1, factor, truth.shape[-1])
            return error[:, :, 1:].reshape(z.shape[0], -1) / self.scale

        return jnp.concatenate(jax.tree.map(unknown, filled, window), axis=1)
