"""The paper's loss written the obvious way in JAX: the reference that `step.py` divides by.

One sample at a time under `vmap`, attention as batched matrix products, noise levels and positions
looked up in tables, the whole batch differentiated at once. It takes the weights of a
`dhn` model, so that both compute the same numbers (tests/models/test_fast_path.py).
"""

import jax
import jax.numpy as jnp

from dhn.blocks import corrupt, draw_known, draw_noise_level, get_mask
from dhn.models.dhn import DHNModel
from dhn.models.networks.scalar import get_activation
from dhn.models.networks.transformer import TransformerNetwork


def layer_norm(x, norm):
    x = x - x.mean(axis=-1, keepdims=True)
    return x / jnp.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5) * norm.gain + norm.shift


def attention(layer, queries, tokens):
    """`(m, width)` queries on `(t, width)` tokens of one sample."""
    heads = layer.heads

    def split(x):
        return x.reshape(x.shape[0], heads, -1).swapaxes(0, 1)

    q = split(queries @ layer.query + layer.query_bias)
    fused = tokens @ layer.key_value + layer.key_value_bias
    k, v = (split(x) for x in jnp.split(fused, 2, axis=1))
    scores = q @ k.swapaxes(1, 2) / jnp.sqrt(q.shape[-1])
    mixed = jax.nn.softmax(scores, axis=-1) @ v
    return mixed.swapaxes(0, 1).reshape(queries.shape) @ layer.out + layer.out_bias


def scalar(network: TransformerNetwork, Q, P, level_q, level_p, z):
    """The transformer's value for one sample. `level_*` are rungs of the ladder, integers."""
    levels, (bias_z, bias_q, bias_p) = network.embed_level, network.embed_bias
    tokens = [(z @ network.embed_z + bias_z + network.position_z + levels[0])[None]]
    for x, level, embed, bias, position in (
        (network.features(Q), level_q, network.embed_q, bias_q, network.position_q),
        (network.features.momenta(P), level_p, network.embed_p, bias_p, network.position_p),
    ):
        tokens.append(x @ embed + bias + levels[level] + position)
    x = jnp.concatenate(tokens)
    for i, layer in enumerate(network.layers):
        queries = x[:1] if i + 1 == len(network.layers) else x
        x = queries + attention(layer, queries, x)
        x = x if layer.attention_norm is None else layer_norm(x, layer.attention_norm)
        hidden = get_activation(layer.activation)(x @ layer.up + layer.up_bias)
        x = x + hidden @ layer.down.T + layer.down_bias
        x = x if layer.mlp_norm is None else layer_norm(x, layer.mlp_norm)
    return x[0] @ network.readout


def errors(stage, window, inputs, level, z):
    """All four outputs of one window minus the truth (equations 8 to 10)."""
    source, target = stage.spec.source, stage.spec.target

    def gradients(hamiltonian, Q, P, level_q, level_p):
        def value(Q, P):
            return hamiltonian.scale * scalar(hamiltonian.network, Q, P, level_q, level_p, z)

        return jax.grad(value, argnums=(0, 1))(Q, P)

    Q, P = inputs.q[source], inputs.p[target]
    dQ, dP = gradients(stage.right, Q, P, level.q[source], level.p[target])
    right_q, right_p = Q + dP - window.q[target], P + dQ - window.p[source]
    Q, P = inputs.q[target], inputs.p[source]
    dQ, dP = gradients(stage.left, Q, P, level.q[target], level.p[source])
    left_q, left_p = Q - dP - window.q[source], P - dQ - window.p[target]
    return right_q, right_p, left_q, left_p


def loss(model: DHNModel, windows, codes, key):
    """Equation loss and denoising loss, with the random draws of `DHNModel.losses`."""
    (stage,), (window,), (z,) = model.stages, windows, codes
    config, (key,) = model.config, jax.random.split(key, 1)
    key = jax.random.fold_in(key, 0)
    key_mask, key_level, key_noise = jax.random.split(key, 3)
    known = draw_known(key_mask, get_mask(config.mask), stage.spec, z.shape[0])
    alpha = draw_noise_level(key_level, known, config.denoising_steps)
    noised = corrupt(key_noise, window, alpha)
    level = jax.tree.map(lambda x: jnp.round(x * config.denoising_steps).astype(int), alpha)
    clean = jax.tree.map(jnp.zeros_like, level)

    every = jax.vmap(lambda *x: errors(stage, *x))
    equation = sum(jnp.mean(x**2) for x in every(window, window, clean, z))
    source, target = stage.spec.source, stage.spec.target
    known = (known.q[:, target], known.p[:, source], known.q[:, source], known.p[:, target])
    denoising = 0.0
    for error, given in zip(every(window, noised, level, z), known, strict=True):
        unknown = ~given[..., None] & jnp.ones(error.shape, bool)
        total = jnp.where(unknown, error**2, 0.0).sum()
        denoising += total / jnp.maximum(unknown.sum(), 1)
    weights = (config.equation_weight, config.denoising_weight)
    return (weights[0] * equation + weights[1] * denoising) / stage.scale**2
