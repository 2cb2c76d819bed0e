"""Angles that enter as sine and cosine: H becomes periodic and stays a function of the angle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_oscillator import cast

from dhn.blocks import NoiseLevel
from dhn.models import DHNConfig, DHNModel, ModelContext, NetworkConfig
from dhn.models.networks.features import StateFeatures
from dhn.models.registry import draw_weights

UNIT = 0.7
"""Scaled units per radian of the first coordinate, an angle; the second is a length."""


def test_features_are_sine_cosine_and_plain_coordinates():
    features = StateFeatures((UNIT, None))
    q = jnp.asarray([[0.35, 2.0], [-1.4, 3.0]])
    expected = np.stack([np.sin(q[:, 0] / UNIT), np.cos(q[:, 0] / UNIT), q[:, 1]], -1)
    np.testing.assert_allclose(features(q), expected, atol=1e-6)
    assert features.size == 3
    np.testing.assert_array_equal(features.momenta(q), np.pad(np.asarray(q), [(0, 0), (0, 1)]))


def test_without_angles_nothing_is_changed():
    features = StateFeatures((None, None))
    q = jnp.ones((2, 2))
    assert features.size == 2
    assert features(q) is q and features.momenta(q) is q


@pytest.mark.parametrize("kind", ["mlp", pytest.param("transformer", marks=pytest.mark.slow)])
def test_h_is_periodic_in_the_angle_alone_and_its_gradient_is_right(kind):
    with jax.enable_x64(True):
        config = DHNConfig(
            block_size=2,
            angles="periodic",
            latent_size=3,
            network=NetworkConfig(kind=kind, width=8, depth=1),
        )
        context = ModelContext(2, 0.1, (True, False), (UNIT, 1.0), (0.5,))
        draw = np.random.default_rng(0)
        Q, P, step = (draw.normal(size=(3, 2, 2)) for _ in range(3))
        Q, P, step, z = cast((Q, P, step, draw.normal(size=(3, 3))), "float64")

        @jax.jit
        def evaluate(key):
            right = DHNModel.build(config, context, key).stages[0].right
            level = NoiseLevel(*(jnp.zeros((3, 2)),) * 2)

            def h(Q):
                return right.network(Q, P, level, z)

            def moved(i, by):
                return h(Q.at[:, 1, i].add(by))

            small = 1e-5
            slope = (h(Q + small * step) - h(Q - small * step)) / (2 * small)
            dQ = right.right_update(Q, P, level, z)[1] - P
            turned = right.right_update(Q.at[:, 0, 0].add(-4 * jnp.pi * UNIT), P, level, z)[1] - P
            turns = moved(0, 2 * jnp.pi * UNIT), moved(0, 1.0), moved(1, 2 * jnp.pi * UNIT)
            return h(Q), turns, slope, right.scale * (slope * 0 + 1), dQ, turned

        here, (whole, part, other), slope, scale, dQ, turned = evaluate(jax.random.key(0))
        np.testing.assert_allclose(whole, here, atol=1e-13)
        assert (np.abs(part - here) > 1e-4).all(), "but it does depend on the angle"
        assert (np.abs(other - here) > 1e-4).all(), "and is not periodic in a length"
        # The derivative by the angle, not by its sine or cosine.
        np.testing.assert_allclose((dQ * step).sum((1, 2)), scale * slope, rtol=1e-7)
        np.testing.assert_allclose(turned, dQ, atol=1e-12)


def test_only_angles_are_made_periodic_and_only_on_request():
    context = ModelContext(2, 0.1, (True, False), (UNIT, 2.0), (0.5,))
    for angles, periods in (("periodic", (UNIT, None)), ("raw", (None, None))):
        config = DHNConfig(angles=angles, network=NetworkConfig(width=4, depth=1))
        model = draw_weights(DHNModel, config, context, jax.random.key(0))
        assert model.stages[0].right.network.features.periods == periods
