"""Truths about the trainable baselines before any training, and equal parameter counts."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from dhn.blocks import StateBlock
from dhn.errors import UserError
from dhn.models import DHNConfig, ModelContext, NetworkConfig
from dhn.models.registry import build_model, count_parameters, draw_weights, planned_parameters
from dhn.reproduction.baselines import (
    CNNConfig,
    CNNModel,
    HNNConfig,
    NeighbourConfig,
    NeighbourModel,
    VanillaConfig,
    VanillaModel,
    matched_width,
)
from dhn.reproduction.baselines.cnn import Convolution
from dhn.reproduction.baselines.upsampler import linear_upsample

CONTEXT = ModelContext(
    dim=2,
    time_step=0.1,
    angles=(True, False),
    radian=(0.7, 1.0),
    changes=(0.1, 0.2, 0.4, 0.8, 1.2),
)
CODES = VanillaConfig().latent_size


def states(n, length, seed=0) -> StateBlock:
    q, p = np.random.default_rng(seed).normal(size=(2, n, length, 2)).astype(np.float32)
    return StateBlock(jnp.asarray(q), jnp.asarray(p))


def test_shifted_products_are_a_convolution():
    x = np.random.default_rng(1).normal(size=(2, 9, 3)).astype(np.float32)
    layer = Convolution(5, 3, 4, jr.key(0))
    padded = np.pad(x, ((0, 0), (2, 2), (0, 0)), mode="edge")
    expected = jax.lax.conv_general_dilated(
        padded, layer.weight, (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC")
    )
    np.testing.assert_allclose(layer(jnp.asarray(x)), expected, atol=1e-5)


def test_a_fresh_cnn_is_linear_interpolation():
    model = draw_weights(CNNModel, CNNConfig(width=8), CONTEXT, jr.key(0))
    sparse = states(3, 17)
    filled = model.upsample(sparse, jnp.zeros((3, 1)), 4)
    grid, fine = np.arange(17.0), np.arange(65) / 4
    for said, known in zip(filled, sparse, strict=True):
        assert said.shape == (3, 65, 2)
        for i in range(3):
            for j in range(2):
                expected = np.interp(fine, grid, known[i, :, j])
                np.testing.assert_allclose(said[i, :, j], expected, atol=1e-6)


def test_the_papers_cnn_starts_from_nothing_but_keeps_known_states():
    model = draw_weights(CNNModel, CNNConfig(width=8, residual=False), CONTEXT, jr.key(0))
    sparse = states(3, 17)
    filled = model.upsample(sparse, jnp.zeros((3, 1)), 4)
    line = linear_upsample(sparse.q, 4)
    assert (filled.q[:, ::4] == sparse.q).all()
    assert jnp.abs(filled.q - line)[:, 1::4].max() > 0.1


def test_a_cnn_sees_both_sides_of_a_gap_only_nearby():
    """Three layers of kernel 7 reach nine states to each side, no further."""
    model = draw_weights(CNNModel, CNNConfig(width=8, depth=3, residual=False), CONTEXT, jr.key(0))
    sparse = states(1, 17)
    z = jnp.zeros((1, 1))
    moved = StateBlock(sparse.q.at[0, 8].add(1.0), sparse.p)
    change = jnp.abs(model.upsample(moved, z, 4).q - model.upsample(sparse, z, 4).q).max((0, 2))
    touched = np.flatnonzero(change > 1e-5)
    # The moved state's straight lines end three states to either side of it.
    assert touched.min() >= 32 - 3 - 9 and touched.max() <= 32 + 3 + 9
    assert touched.min() < 32 - 3 and touched.max() > 32 + 3


def test_a_cnn_refuses_another_factor():
    model = draw_weights(CNNModel, CNNConfig(width=8), CONTEXT, jr.key(0))
    with pytest.raises(UserError, match="trained to refine 4 times; got factor=8"):
        model.upsample(states(1, 5), jnp.zeros((1, 1)), 8)
    with pytest.raises(ValueError, match="kernel must be odd"):
        CNNConfig(kernel=4)


@pytest.mark.parametrize("guess", ["linear", "hermite"])
def test_neighbours_meet_the_known_states(guess):
    """As the fraction goes to 0 or 1 the state goes to the neighbour, whatever the weights."""
    model = draw_weights(NeighbourModel, NeighbourConfig(width=8, guess=guess), CONTEXT, jr.key(0))
    first, last = (jnp.concatenate(states(5, 1, s), axis=-1)[:, 0] for s in (1, 2))
    z = jnp.ones((5, CODES))
    for fraction, expected in ((0.0, first), (1.0, last)):
        said = model._between(first, last, jnp.full(5, fraction), 4, z)
        np.testing.assert_allclose(said, expected, atol=1e-6)


def test_hermite_neighbours_have_one_slope_at_a_known_state():
    """The curve before a state and the curve after it meet with the same derivative."""
    model = draw_weights(
        NeighbourModel, NeighbourConfig(width=8, guess="hermite"), CONTEXT, jr.key(0)
    )
    a, b, c = (jnp.concatenate(states(1, 1, s), axis=-1)[:, 0] for s in (1, 2, 3))
    z = jnp.ones((1, CODES))

    def slope(first, last, fraction):
        curve = lambda u: model._between(first, last, u, 4, z)  # noqa: E731
        return jax.jvp(curve, (jnp.full(1, fraction),), (jnp.ones(1),))[1]

    np.testing.assert_allclose(slope(a, b, 1.0), slope(b, c, 0.0), rtol=1e-4, atol=1e-6)


def test_neighbours_fill_any_factor():
    model = draw_weights(NeighbourModel, NeighbourConfig(width=8), CONTEXT, jr.key(0))
    sparse, z = states(3, 5), jnp.ones((3, CODES))
    for factor in (2, 3, 16):
        filled = model.upsample(sparse, z, factor)
        assert filled.q.shape == (3, 4 * factor + 1, 2)
        one = model._between(
            jnp.concatenate(sparse, -1)[:, 1],
            jnp.concatenate(sparse, -1)[:, 2],
            jnp.full(3, 1 / factor),
            factor,
            z,
        )
        np.testing.assert_allclose(jnp.concatenate(filled, -1)[:, factor + 1], one, atol=1e-6)


def test_a_vanilla_network_that_says_nothing_stands_still():
    model = draw_weights(VanillaModel, VanillaConfig(width=8, context=4), CONTEXT, jr.key(0))
    silent = jax.tree.map(lambda x: x * 0 if eqx.is_inexact_array(x) else x, model)
    context = states(3, 4)
    after = silent.advance(context, jnp.zeros((3, CODES)), jr.key(0))
    assert (after.q == context.q[:, -1:]).all() and (after.p == context.p[:, -1:]).all()


@pytest.mark.parametrize("network", ["resnet", pytest.param("transformer", marks=pytest.mark.slow)])
def test_a_vanilla_network_uses_all_its_context(network):
    config = VanillaConfig(network=network, width=8, context=4)
    model = draw_weights(VanillaModel, config, CONTEXT, jr.key(0))
    context, z = states(1, 4), jnp.zeros((1, CODES))
    slopes = jax.grad(lambda c: model.advance(c, z, jr.key(0)).q.sum())(context)
    assert (jnp.abs(slopes.q).max((0, 2)) > 0).all()
    assert (jnp.abs(slopes.p).max((0, 2)) > 0).all()


def test_a_transformer_needs_a_width_that_its_heads_divide():
    with pytest.raises(UserError, match="multiple of its heads; got width=10, heads=4"):
        draw_weights(
            VanillaModel, VanillaConfig(network="transformer", width=10), CONTEXT, jr.key(0)
        )


@pytest.mark.parametrize(
    "config",
    [
        HNNConfig(),
        HNNConfig(network=NetworkConfig(kind="transformer", depth=2)),
        VanillaConfig(depth=1),
        VanillaConfig(depth=2),
        VanillaConfig(network="transformer"),
        VanillaConfig(context=8),
        CNNConfig(),
        NeighbourConfig(),
        DHNConfig(block_size=4, stride=2, linked=False),
    ],
    ids=lambda c: c.kind,
)
def test_counts_are_matched_within_ten_percent(config):
    wanted = planned_parameters(DHNConfig(), CONTEXT)
    matched = matched_width(config, CONTEXT, wanted)
    assert type(matched) is type(config)
    assert abs(planned_parameters(matched, CONTEXT) / wanted - 1) < 0.1


def test_counting_by_hand():
    config = VanillaConfig(width=5, depth=1, latent_size=3)
    count = count_parameters(build_model(config, CONTEXT, jr.key(0)))
    assert count == planned_parameters(config, CONTEXT)
    assert count == (7 * 5 + 5) + (25 + 5 + 25) + (5 * 4 + 4)
