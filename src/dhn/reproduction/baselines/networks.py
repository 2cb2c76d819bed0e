"""Networks with a vector as output; written for a batch, like the scalar ones."""

from typing import final

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from dhn.blocks import Code
from dhn.models.config import NetworkConfig
from dhn.models.networks.scalar import get_activation
from dhn.models.networks.transformer import POSITION_SCALE, TransformerLayer
from dhn.reproduction.baselines.config import VanillaConfig


@final
class ResidualMLP(eqx.Module):
    """`h ← h + act(h U + c) V`, `depth` times, between two linear maps."""

    embed: Float[Array, "inputs width"]
    embed_bias: Float[Array, " width"]
    up: Float[Array, "depth width width"]
    up_bias: Float[Array, "depth width"]
    down: Float[Array, "depth width width"]
    readout: Float[Array, "width outputs"]
    readout_bias: Float[Array, " outputs"]
    activation: str = eqx.field(static=True)

    def __init__(
        self,
        *,
        inputs: int,
        outputs: int,
        width: int,
        depth: int,
        activation: str,
        key: Key[Array, ""],
    ):
        keys = jr.split(key, 4)
        self.embed = jr.normal(keys[0], (inputs, width)) / jnp.sqrt(inputs)
        self.embed_bias = jnp.zeros(width)
        self.up = jr.normal(keys[1], (depth, width, width)) / jnp.sqrt(width)
        self.up_bias = jnp.zeros((depth, width))
        self.down = jr.normal(keys[2], (depth, width, width)) / jnp.sqrt(width)
        self.readout = jr.normal(keys[3], (width, outputs)) / width
        self.readout_bias = jnp.zeros(outputs)
        self.activation = activation

    def __call__(self, x: Float[Array, "n inputs"]) -> Float[Array, "n outputs"]:
        act = get_activation(self.activation)
        h = x @ self.embed + self.embed_bias
        for up, bias, down in zip(self.up, self.up_bias, self.down, strict=True):
            h = h + act(h @ up + bias) @ down
        return h @ self.readout + self.readout_bias


@final
class VectorTransformer(eqx.Module):
    """The paper's transformer with a vector read from the z token instead of a scalar."""

    embed_z: Float[Array, "k width"]
    embed_token: Float[Array, "kinds features width"]
    """One embedding for q tokens, one for p tokens."""
    position: Float[Array, "tokens width"]
    layers: tuple[TransformerLayer, ...]
    readout: Float[Array, "width outputs"]
    readout_bias: Float[Array, " outputs"]

    def __init__(self, config: VanillaConfig, *, features: int, outputs: int, key: Key[Array, ""]):
        keys, width = jr.split(key, 4 + config.depth), config.width
        size = config.latent_size
        self.embed_z = jr.normal(keys[0], (size, width)) / jnp.sqrt(size)
        self.embed_token = jr.normal(keys[1], (2, features, width)) / jnp.sqrt(features)
        self.position = POSITION_SCALE * jr.normal(keys[2], (2 * config.context + 1, width))
        self.readout = jr.normal(keys[3], (width, outputs)) / width
        self.readout_bias = jnp.zeros(outputs)
        layer = NetworkConfig(
            kind="transformer", width=width, heads=config.heads, activation=config.activation,
            layer_norm=config.layer_norm,
        )  # fmt: skip
        self.layers = tuple(TransformerLayer(layer, key) for key in keys[4:])

    def __call__(
        self,
        q_tokens: Float[Array, "n states features"],
        p_tokens: Float[Array, "n states features"],
        z: Code,
    ) -> Float[Array, "n outputs"]:
        tokens = jnp.concatenate(
            [
                (z @ self.embed_z)[None],
                jnp.swapaxes(q_tokens, 0, 1) @ self.embed_token[0],
                jnp.swapaxes(p_tokens, 0, 1) @ self.embed_token[1],
            ]
        )
        x = tokens + self.position[:, None]
        for i, layer in enumerate(self.layers):
            x = layer(x, only_first=i + 1 == len(self.layers))
        return x[0] @ self.readout + self.readout_bias
