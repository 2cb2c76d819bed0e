"""The paper's transformer as scalar network (paper, Sec. 3.3): tokens `[z, q_1..q_b, p_1..p_b]`.

The layout is for speed on a CPU. A small block has so few tokens that attention is cheap as
multiply-and-sum, while batched products of 5-by-5 matrices are not. So everything stays in rows
`(token, sample)`, tokens first: every linear map is one plain product, one token of the whole batch
is one contiguous slice, and the last layer, of which only the z token is read, computes that token
alone.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from dhn.blocks import NoiseLevel
from dhn.errors import UserError
from dhn.models.networks.features import StateFeatures
from dhn.models.networks.product import product
from dhn.models.networks.scalar import AbstractScalarNetwork, get_activation

POSITION_SCALE = 0.5
"""Standard deviation of fresh position embeddings: small ones train far worse."""
MLP_RATIO = 4
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


class Norm(eqx.Module):
    """LayerNorm's gain and shift, to be folded into the product that follows."""

    gain: Float[Array, " width"]
    shift: Float[Array, " width"]

    def __init__(self, width: int):
        self.gain = jnp.ones(width)
        self.shift = jnp.zeros(width)


def _linear(
    x: Float[Array, "rows inputs"],
    weight: Float[Array, "inputs outputs"],
    bias: Float[Array, " outputs"] | float,
    norm: Norm | None,
) -> Float[Array, "rows outputs"]:
    """`norm(x) @ weight + bias`, with the norm's gain and shift moved into weight and bias."""
    if norm is None:
        return product(x, weight) + bias
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    x = (x - mean) * jax.lax.rsqrt(variance + 1e-5)
    return product(x, norm.gain[:, None] * weight) + (norm.shift @ weight + bias)


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


class TransformerLayer(eqx.Module):
    """Attention and MLP, each added to its input; no causal mask."""

    query: Float[Array, "width width"]
    key_value: Float[Array, "width 2*width"]
    out: Float[Array, "width width"]
    up: Float[Array, "width hidden"]
    up_bias: Float[Array, " hidden"]
    down: Float[Array, "width hidden"]
    """Transposed, like its gradient as `product` computes it."""
    attention_norm: Norm | None
    mlp_norm: Norm | None
    heads: int = eqx.field(static=True)
    activation: str = eqx.field(static=True)

    def __init__(
        self,
        *,
        width: int,
        heads: int,
        activation: str,
        layer_norm: bool,
        key: Key[Array, ""],
    ):
        keys = jr.split(key, 5)
        hidden = MLP_RATIO * width
        self.query = jr.normal(keys[0], (width, width)) / jnp.sqrt(width)
        self.key_value = jr.normal(keys[1], (width, 2 * width)) / jnp.sqrt(width)
        self.out = jr.normal(keys[2], (width, width)) / jnp.sqrt(width)
        self.up = jr.normal(keys[3], (width, hidden)) / jnp.sqrt(width)
        self.up_bias = jnp.zeros(hidden)
        self.down = jr.normal(keys[4], (width, hidden)) / jnp.sqrt(hidden)
        self.attention_norm = Norm(width) if layer_norm else None
        self.mlp_norm = Norm(width) if layer_norm else None
        self.heads = heads
        self.activation = activation

    def __call__(
        self, x: Float[Array, "tokens n width"], *, only_first: bool
    ) -> Float[Array, "outputs n width"]:
        """All tokens, or the first one alone (which still attends to all)."""
        tokens, n, width = x.shape
        outputs = 1 if only_first else tokens
        rows = x.reshape(tokens * n, width)
        residual = rows[: outputs * n]
        mixed = self._attention(rows, outputs, n)
        residual = residual + product(mixed, self.out)
        act = get_activation(self.activation)
        hidden = act(_linear(residual, self.up, self.up_bias, self.mlp_norm))
        residual = residual + product(hidden, self.down.T)
        return residual.reshape(outputs, n, width)

    def _attention(
        self, rows: Float[Array, "rows width"], outputs: int, n: int
    ) -> Float[Array, "{outputs}*{n} width"]:
        width = rows.shape[1]
        head_width = width // self.heads
        # The softmax scale is folded into the weight, which is small, not into the scores.
        query = self.query / jnp.sqrt(head_width)
        norm = self.attention_norm
        if outputs * n == rows.shape[0]:
            fused = _linear(rows, jnp.concatenate([query, self.key_value], axis=1), 0.0, norm)
            q, k, v = jnp.split(fused, 3, axis=1)
        else:
            q = _linear(rows[: outputs * n], query, 0.0, norm)
            k, v = jnp.split(_linear(rows, self.key_value, 0.0, norm), 2, axis=1)
        q, k, v = (x.reshape(-1, n, self.heads, head_width) for x in (q, k, v))
        mixed = _attend(q, k, v)
        return mixed.reshape(outputs * n, width)


class TransformerNetwork(AbstractScalarNetwork):
    """Embedded tokens, `depth` layers, and a scalar read from the z token."""

    embed_z: Float[Array, "k width"]
    embed_z_bias: Float[Array, " width"]
    embed_q: Float[Array, "token_features width"]
    """Rows: state features, then noise levels."""
    embed_p: Float[Array, "token_features width"]
    position_q: Float[Array, "b width"]
    position_p: Float[Array, "b width"]
    layers: tuple[TransformerLayer, ...]
    readout_norm: Norm | None
    readout: Float[Array, " width"]
    features: StateFeatures
    denoising_steps: int = eqx.field(static=True)

    def __init__(
        self,
        *,
        block_size: int,
        features: StateFeatures,
        latent_size: int,
        denoising_steps: int,
        width: int,
        depth: int,
        heads: int,
        activation: str,
        layer_norm: bool,
        key: Key[Array, ""],
    ):
        if width % heads:
            raise UserError(
                f"the transformer's width must be a multiple of its heads; got width={width}, "
                f"heads={heads}. Use a width such as {heads * max(1, round(width / heads))}."
            )
        keys = jr.split(key, 7 + depth)

        def embed_state(key):
            key_state, key_level = jr.split(key)
            state = jr.normal(key_state, (features.size, width)) / jnp.sqrt(features.size)
            level = POSITION_SCALE * jr.normal(key_level, (denoising_steps + 1, width))
            return jnp.concatenate([state, level])

        self.embed_z = jr.normal(keys[0], (latent_size, width)) / jnp.sqrt(latent_size)
        self.embed_z_bias = POSITION_SCALE * jr.normal(keys[1], (width,))
        self.embed_q = embed_state(keys[2])
        self.embed_p = embed_state(keys[3])
        self.position_q = POSITION_SCALE * jr.normal(keys[4], (block_size, width))
        self.position_p = POSITION_SCALE * jr.normal(keys[5], (block_size, width))
        self.layers = tuple(
            TransformerLayer(
                width=width, heads=heads, activation=activation, layer_norm=layer_norm, key=key
            )
            for key in keys[7:]
        )
        self.readout_norm = Norm(width) if layer_norm else None
        self.readout = jr.normal(keys[6], (width,)) / width
        self.features = features
        self.denoising_steps = denoising_steps

    @property
    def tokens(self) -> int:
        """Of one sample: z, and a q and a p for every state of the block."""
        return 1 + 2 * self.position_q.shape[0]

    def __call__(
        self,
        Q: Float[Array, "n b d"],
        P: Float[Array, "n b d"],
        level: NoiseLevel,
        z: Float[Array, "n k"],
    ) -> Float[Array, " n"]:
        n, b, _ = Q.shape
        width = self.readout.shape[0]
        z_token = z @ self.embed_z + self.embed_z_bias
        q_tokens = self._embed(self.features(Q), level.q, self.embed_q, self.position_q)
        p_tokens = self._embed(self.features.momenta(P), level.p, self.embed_p, self.position_p)
        x = jnp.concatenate([z_token[None], q_tokens, p_tokens])
        assert x.shape == (1 + 2 * b, n, width)
        for i, layer in enumerate(self.layers):
            x = layer(x, only_first=i + 1 == len(self.layers))
        return _linear(x[0], self.readout[:, None], 0.0, self.readout_norm)[:, 0]

    def _embed(
        self,
        states: Float[Array, "n b f"],
        alpha: Float[Array, "n b"],
        weight: Float[Array, "token_features width"],
        position: Float[Array, "b width"],
    ) -> Float[Array, "b n width"]:
        x = jnp.concatenate([states, noise_hats(alpha, self.denoising_steps)], axis=-1)
        x = jnp.swapaxes(x, 0, 1)
        b, n, size = x.shape
        return (x.reshape(b * n, size) @ weight).reshape(b, n, -1) + position[:, None]
