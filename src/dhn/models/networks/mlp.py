"""Residual MLP as scalar network: the whole block, its noise levels and the code in one vector."""

from typing import final

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from dhn.blocks import Block, Code, NoiseLevel
from dhn.models.config import NetworkConfig
from dhn.models.networks.features import StateFeatures
from dhn.models.networks.form import QuadraticForm
from dhn.models.networks.product import product
from dhn.models.networks.scalar import AbstractScalarNetwork, get_activation


@final
class MLPNetwork(AbstractScalarNetwork):
    """`h ← h + act(h W + c)`, `depth` times, then one linear read-out."""

    embed: Float[Array, "features width"]
    embed_bias: Float[Array, " width"]
    weights: Float[Array, "depth width width"]
    biases: Float[Array, "depth width"]
    readout: Float[Array, " width"]
    form: QuadraticForm | None
    """Beside the network, which then begins at zero."""
    features: StateFeatures
    activation: str = eqx.field(static=True)

    def __init__(
        self,
        config: NetworkConfig,
        *,
        block_size: int,
        features: StateFeatures,
        latent_size: int,
        key: Key[Array, ""],
    ):
        keys, width, depth = jr.split(key, 3), config.width, config.depth
        inputs = 2 * block_size * (features.size + 1) + latent_size
        fan_in = 2 * block_size * features.size
        self.embed = jr.normal(keys[0], (inputs, width)) / jnp.sqrt(fan_in)
        self.embed_bias = jnp.zeros(width)
        self.weights = jr.normal(keys[1], (depth, width, width)) / jnp.sqrt(width)
        self.biases = jnp.zeros((depth, width))
        readout = jr.normal(keys[2], (width,)) / width
        self.readout = jnp.zeros(width) if config.quadratic else readout
        self.form = QuadraticForm(fan_in) if config.quadratic else None
        self.features = features
        self.activation = config.activation

    def __call__(self, Q: Block, P: Block, level: NoiseLevel, z: Code) -> Float[Array, " n"]:
        act = get_activation(self.activation)
        n = Q.shape[0]
        q_features = self.features(Q).reshape(n, -1)
        p_features = self.features.momenta(P).reshape(n, -1)
        x = jnp.concatenate([q_features, p_features, level.q, level.p, z], axis=1)
        h = x @ self.embed + self.embed_bias
        for weight, bias in zip(self.weights, self.biases, strict=True):
            h = h + act(product(h, weight) + bias)
        scalar = h @ self.readout
        return scalar if self.form is None else scalar + self.form(x[:, : len(self.form.slope)])
