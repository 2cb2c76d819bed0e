"""The paper's transformer as scalar network (paper, Sec. 3.5): tokens `[z, q_1..q_b, p_1..p_b]`.

The layout is for speed on a CPU. A small block has so few tokens that attention is cheap as
multiply-and-sum, while batched products of 5-by-5 matrices are not. So everything stays in rows
`(token, sample)`, tokens first: every linear map is one plain product, one token of the whole batch
is one contiguous slice, and the last layer, of which only the z token is read, computes that token
alone.
"""

from collections.abc import Callable
from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from dhn.blocks import Block, Code, NoiseLevel
from dhn.errors import UserError
from dhn.models.config import NetworkConfig
from dhn.models.networks.features import StateFeatures
from dhn.models.networks.product import product
from dhn.models.networks.scalar import AbstractScalarNetwork, get_activation

POSITION_SCALE = 0.5
"""Standard deviation of fresh position embeddings: small ones train far worse."""
MLP_RATIO = 4  # hidden units over width, as usual
NORM_FLOOR = 1e-5
"""Added to LayerNorm's variance, PyTorch's default."""
FEW_PAIRS = 100
"""Up to so many pairs of tokens (blocks of 4 states) attention is faster as multiply-and-sum, 2.7
times at 5 tokens; above, as batched products, 6 times at 17 tokens. Both on a CPU, differentiated
twice."""


def noise_hats(
    alpha: Float[Array, "*batch"], denoising_steps: int
) -> Float[Array, "*batch levels"]:
    """The noise level on the ladder `k/N`: one-hot on its rungs, linear in between.

    As features, so that state and level are embedded by one product, without a look-up.
    """
    rungs = jnp.arange(denoising_steps + 1, dtype=alpha.dtype)
    return jnp.maximum(0.0, 1.0 - jnp.abs(alpha[..., None] * denoising_steps - rungs))


@final
class Norm(eqx.Module):
    """LayerNorm over the width."""

    gain: Float[Array, " width"]
    shift: Float[Array, " width"]

    def __init__(self, width: int):
        self.gain = jnp.ones(width)
        self.shift = jnp.zeros(width)

    def __call__(self, x: Float[Array, "rows width"]) -> Float[Array, "rows width"]:
        x = x - x.mean(axis=-1, keepdims=True)
        variance = (x**2).mean(axis=-1, keepdims=True)
        return x * jax.lax.rsqrt(variance + NORM_FLOOR) * self.gain + self.shift


Shape = tuple[int, ...]
Draw = Callable[[Key[Array, ""], Shape, float | int], Array]
"""A fresh matrix: key, shape, and the number of inputs that each output adds up."""


def _wide(key: Key[Array, ""], shape: Shape, fan_in: float | int) -> Array:
    return jr.normal(key, shape) / jnp.sqrt(fan_in)


def _narrow(key: Key[Array, ""], shape: Shape, fan_in: float | int) -> Array:
    """PyTorch's default for linear layers."""
    bound = 1 / jnp.sqrt(fan_in)
    return jr.uniform(key, shape, minval=-bound, maxval=bound)


INITIAL: dict[str, Draw] = {"wide": _wide, "pytorch": _narrow}


def _attend(
    q: Float[Array, "outputs n heads size"],
    k: Float[Array, "tokens n heads size"],
    v: Float[Array, "tokens n heads size"],
) -> Float[Array, "outputs n heads size"]:
    """Softmax attention, scores already scaled."""
    if q.shape[0] * k.shape[0] <= FEW_PAIRS:
        weights = jax.nn.softmax((q[:, None] * k[None, :]).sum(axis=-1), axis=1)
        return (weights[..., None] * v[None, :]).sum(axis=1)
    weights = jax.nn.softmax(jnp.einsum("tnhd,snhd->nhts", q, k), axis=-1)
    return jnp.einsum("nhts,snhd->tnhd", weights, v)


@final
class TransformerLayer(eqx.Module):
    """Attention and MLP, each added to its input and then normed (post-norm); no causal mask."""

    query: Float[Array, "width width"]
    query_bias: Float[Array, " width"]
    key_value: Float[Array, "width 2*width"]
    key_value_bias: Float[Array, " 2*width"]
    out: Float[Array, "width width"]
    out_bias: Float[Array, " width"]
    up: Float[Array, "width hidden"]
    up_bias: Float[Array, " hidden"]
    down: Float[Array, "width hidden"]
    """Transposed, like its gradient as `product` computes it."""
    down_bias: Float[Array, " width"]
    attention_norm: Norm | None
    mlp_norm: Norm | None
    heads: int = eqx.field(static=True)
    activation: str = eqx.field(static=True)

    def __init__(self, config: NetworkConfig, key: Key[Array, ""]):
        width, heads, initial = config.width, config.heads, config.initial
        if width % heads:
            raise UserError(
                f"the transformer's width must be a multiple of its heads; got width={width}, "
                f"heads={heads}. Use a width such as {heads * max(1, round(width / heads))}."
            )
        keys = jr.split(key, 7)
        hidden = MLP_RATIO * width
        draw = INITIAL[initial]
        # PyTorch draws query, key and value as one matrix by Glorot: U(-a, a), a² = 6 / (4 width).
        fan_in = width * 2 / 3 if initial == "pytorch" else width
        self.query = draw(keys[0], (width, width), fan_in)
        self.query_bias = jnp.zeros(width)
        self.key_value = draw(keys[1], (width, 2 * width), fan_in)
        self.key_value_bias = jnp.zeros(2 * width)
        self.out = draw(keys[2], (width, width), width)
        self.out_bias = jnp.zeros(width)
        self.up = draw(keys[3], (width, hidden), width)
        self.down = draw(keys[4], (width, hidden), hidden)
        if initial == "pytorch":
            self.up_bias = draw(keys[5], (hidden,), width)
            self.down_bias = draw(keys[6], (width,), hidden)
        else:
            self.up_bias = jnp.zeros(hidden)
            self.down_bias = jnp.zeros(width)
        self.attention_norm = Norm(width) if config.layer_norm else None
        self.mlp_norm = Norm(width) if config.layer_norm else None
        self.heads = heads
        self.activation = config.activation

    def __call__(
        self, x: Float[Array, "tokens n width"], *, only_first: bool
    ) -> Float[Array, "outputs n width"]:
        """All tokens, or the first one alone (which still attends to all)."""
        tokens, n, width = x.shape
        outputs = 1 if only_first else tokens
        rows = x.reshape(tokens * n, width)
        residual = rows[: outputs * n]
        mixed = self._attention(rows, outputs, n)
        residual = residual + (product(mixed, self.out) + self.out_bias)
        if self.attention_norm is not None:
            residual = self.attention_norm(residual)
        act = get_activation(self.activation)
        hidden = act(product(residual, self.up) + self.up_bias)
        residual = residual + (product(hidden, self.down.T) + self.down_bias)
        if self.mlp_norm is not None:
            residual = self.mlp_norm(residual)
        return residual.reshape(outputs, n, width)

    def _attention(
        self, rows: Float[Array, "rows width"], outputs: int, n: int
    ) -> Float[Array, "{outputs}*{n} width"]:
        width = rows.shape[1]
        head_width = width // self.heads
        # The softmax scale is folded into the weight, which is small, not into the scores.
        query, query_bias = (x / jnp.sqrt(head_width) for x in (self.query, self.query_bias))
        if outputs * n == rows.shape[0]:
            fused = product(rows, jnp.concatenate([query, self.key_value], axis=1))
            q, k, v = jnp.split(
                fused + jnp.concatenate([query_bias, self.key_value_bias]), 3, axis=1
            )
        else:
            q = product(rows[: outputs * n], query) + query_bias
            k, v = jnp.split(product(rows, self.key_value) + self.key_value_bias, 2, axis=1)
        q, k, v = (x.reshape(-1, n, self.heads, head_width) for x in (q, k, v))
        mixed = _attend(q, k, v)
        return mixed.reshape(outputs * n, width)


@final
class TransformerNetwork(AbstractScalarNetwork):
    """Embedded tokens, `depth` layers, and a scalar read from the z token."""

    embed_z: Float[Array, "k width"]
    embed_q: Float[Array, "features width"]
    embed_p: Float[Array, "features width"]
    embed_bias: Float[Array, "3 width"]
    """Of z, q and p."""
    embed_level: Float[Array, "levels width"]
    """Shared by all tokens; z is always clean."""
    position_z: Float[Array, " width"]
    position_q: Float[Array, "b width"]
    position_p: Float[Array, "b width"]
    layers: tuple[TransformerLayer, ...]
    readout: Float[Array, " width"]
    features: StateFeatures
    denoising_steps: int = eqx.field(static=True)

    def __init__(
        self,
        config: NetworkConfig,
        *,
        block_size: int,
        features: StateFeatures,
        latent_size: int,
        denoising_steps: int,
        key: Key[Array, ""],
    ):
        keys, width = jr.split(key, 10 + config.depth), config.width
        draw, pytorch = INITIAL[config.initial], config.initial == "pytorch"
        sizes = (latent_size, features.size, features.size)
        self.embed_z, self.embed_q, self.embed_p = (
            draw(key, (size, width), size) for key, size in zip(keys[:3], sizes, strict=True)
        )
        biases = [draw(jr.fold_in(keys[3], size), (width,), size) for size in sizes]
        self.embed_bias = jnp.stack(biases) if pytorch else jnp.zeros((3, width))
        level = jr.normal(keys[4], (denoising_steps + 1, width))
        self.embed_level = level if pytorch else POSITION_SCALE * level
        spread = 0.0 if pytorch else POSITION_SCALE
        self.position_z = spread * jr.normal(keys[5], (width,))
        self.position_q = spread * jr.normal(keys[6], (block_size, width))
        self.position_p = spread * jr.normal(keys[7], (block_size, width))
        self.layers = tuple(TransformerLayer(config, key) for key in keys[10:])
        self.readout = draw(keys[8], (width,), width if pytorch else width**2)
        self.features = features
        self.denoising_steps = denoising_steps

    def __call__(self, Q: Block, P: Block, level: NoiseLevel, z: Code) -> Float[Array, " n"]:
        n, b, _ = Q.shape
        width = self.readout.shape[0]
        bias_z, bias_q, bias_p = self.embed_bias
        z_token = z @ self.embed_z + (bias_z + self.position_z + self.embed_level[0])
        position = (self.position_q + bias_q, self.position_p + bias_p)
        q_tokens = self._embed(self.features(Q), level.q, self.embed_q, position[0])
        p_tokens = self._embed(self.features.momenta(P), level.p, self.embed_p, position[1])
        x = jnp.concatenate([z_token[None], q_tokens, p_tokens])
        assert x.shape == (1 + 2 * b, n, width)
        for i, layer in enumerate(self.layers):
            x = layer(x, only_first=i + 1 == len(self.layers))
        return product(x[0], self.readout[:, None])[:, 0]

    def _embed(
        self,
        states: Float[Array, "n b f"],
        alpha: Float[Array, "n b"],
        weight: Float[Array, "features width"],
        position: Float[Array, "b width"],
    ) -> Float[Array, "b n width"]:
        x = jnp.concatenate([states, noise_hats(alpha, self.denoising_steps)], axis=-1)
        x = jnp.swapaxes(x, 0, 1)
        b, n, size = x.shape
        weight = jnp.concatenate([weight, self.embed_level])
        return (x.reshape(b * n, size) @ weight).reshape(b, n, -1) + position[:, None]
