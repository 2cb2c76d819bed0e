"""Truths about the transformer as scalar network."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from dhn.blocks import NoiseLevel
from dhn.errors import UserError
from dhn.models.config import NetworkConfig
from dhn.models.networks.features import StateFeatures
from dhn.models.networks.product import product
from dhn.models.networks.transformer import TransformerNetwork, noise_hats


def make(*, block_size=2, layer_norm=False, width=16, heads=4, depth=2):
    return TransformerNetwork(
        NetworkConfig(
            kind="transformer", width=width, depth=depth, heads=heads, layer_norm=layer_norm
        ),
        block_size=block_size,
        features=StateFeatures((None, None)),
        latent_size=3,
        denoising_steps=10,
        key=jr.key(0),
    )


def inputs(n=6, b=2):
    keys = jr.split(jr.key(1), 5)
    Q, P = jr.normal(keys[0], (n, b, 2)), jr.normal(keys[1], (n, b, 2))
    level = NoiseLevel(jr.uniform(keys[2], (n, b)), jr.uniform(keys[3], (n, b)))
    return Q, P, level, jr.normal(keys[4], (n, 3))


def test_noise_hats_are_one_hot_on_the_ladder_and_linear_between():
    ladder = jnp.linspace(0.0, 1.0, 11)
    np.testing.assert_allclose(noise_hats(ladder, 10), np.eye(11), atol=1e-5)
    between = noise_hats(jnp.array([0.33]), 10)[0]
    np.testing.assert_allclose(between[3:5], [0.7, 0.3], atol=1e-5)
    assert float(jnp.abs(between).sum()) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("layer_norm", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_sample_depends_on_itself_alone(layer_norm):
    network, (Q, P, level, z) = make(layer_norm=layer_norm), inputs()
    whole = network(Q, P, level, z)
    single = network(Q[2:3], P[2:3], NoiseLevel(level.q[2:3], level.p[2:3]), z[2:3])
    np.testing.assert_allclose(whole[2], single[0], rtol=1e-5, atol=1e-6)


def test_every_input_reaches_the_scalar():
    network, (Q, P, level, z) = make(depth=1), inputs()

    def total(Q, P, level, z):
        return network(Q, P, level, z).sum()

    for gradient in jax.tree.leaves(jax.grad(total, argnums=(0, 1, 2, 3))(Q, P, level, z)):
        assert bool(jnp.all(jnp.abs(gradient).reshape(6, -1).max(axis=1) > 0))


def test_tokens_are_told_apart_by_position_only():
    """Swapping two states and their positions leaves the scalar: attention sees a set."""
    network, (Q, P, level, z) = make(), inputs()
    swap = np.array([1, 0])
    swapped = (Q[:, swap], P[:, swap], NoiseLevel(level.q[:, swap], level.p[:, swap]), z)
    assert not np.allclose(network(*swapped), network(Q, P, level, z), rtol=1e-3)
    moved = eqx.tree_at(
        lambda x: (x.position_q, x.position_p),
        network,
        (network.position_q[swap], network.position_p[swap]),
    )
    np.testing.assert_allclose(moved(*swapped), network(Q, P, level, z), rtol=1e-4, atol=1e-6)


def test_width_must_be_a_multiple_of_heads():
    with pytest.raises(UserError, match="multiple of its heads; got width=18, heads=4"):
        make(width=18)


def derivatives(multiply):
    """First and second order, forward and reverse, under jit and vmap."""
    x, weight = jr.normal(jr.key(0), (6, 4)), jr.normal(jr.key(1), (4, 7))

    def scalar(x, weight):
        return jnp.sum(jnp.tanh(multiply(jnp.tanh(multiply(x, weight)), weight.T)))

    def slope(x, weight):
        return jnp.sum(jax.grad(scalar)(x, weight) ** 2)

    return {
        "reverse over reverse": jax.jit(jax.grad(slope, argnums=(0, 1)))(x, weight),
        "forward over reverse": jax.jvp(lambda w: jax.grad(scalar)(x, w), (weight,), (weight,)),
        "hessian": jax.jacfwd(lambda x: jax.grad(scalar)(x, weight))(x),
        "vmap of rows": jax.vmap(lambda x: multiply(x[None], weight))(x),
        "vmap of weights": jax.vmap(jax.grad(scalar, 1))(x[:, None], jnp.stack([weight] * 6)),
    }


def test_product_has_the_derivatives_of_matmul():
    ours, truth = derivatives(product), derivatives(jnp.matmul)
    for name in truth:
        for a, b in zip(jax.tree.leaves(ours[name]), jax.tree.leaves(truth[name]), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5, err_msg=name)
