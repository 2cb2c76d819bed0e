"""The optimisers' updates have the sizes that one learning rate for all of them relies on."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from dhn.models import DHNConfig, DHNModel, ModelContext, NetworkConfig
from dhn.models.registry import draw_weights
from dhn.training.config import TrainingConfig
from dhn.training.step import make_optimiser


def first_update(kind):
    draw = np.random.default_rng(0)
    shapes = {"stacked": (2, 16, 16), "inputs": (5, 16), "bias": (5,)}
    gradients = {name: draw.normal(size=shape) for name, shape in shapes.items()}
    gradients = jax.tree.map(lambda x: jnp.asarray(0.01 * x, jnp.float32), gradients)
    weights = jax.tree.map(jnp.zeros_like, gradients)
    optimiser = make_optimiser(TrainingConfig(optimiser=kind))
    return gradients, optimiser.update(gradients, optimiser.init(weights), weights)[0]


def test_muon_moves_stacked_matrices_evenly_in_all_directions():
    gradients, updates = first_update("muon")
    for gradient, update in zip(gradients["stacked"], updates["stacked"], strict=True):
        uneven, even = (np.linalg.svd(x, compute_uv=False) for x in (gradient, update))
        assert even.max() / even.min() < 2 < uneven.max() / uneven.min()
        # Downhill is subtracted by the training step, as with Adam.
        assert np.vdot(gradient, update) > 0
        assert 0.1 < np.sqrt(np.mean(update**2)) < 0.3


@pytest.mark.parametrize("name", ["inputs", "bias"])
def test_muon_leaves_vectors_and_narrow_matrices_to_adam(name):
    gradients, updates = first_update("muon")
    adam = optax.scale_by_adam(nesterov=True)
    expected, _ = adam.update(gradients[name], adam.init(gradients[name]))
    np.testing.assert_allclose(updates[name], expected, rtol=1e-4)


@pytest.mark.parametrize("block_size", [1, 2, 4])
def test_the_input_embedding_goes_to_adam_at_every_block_size(block_size):
    """At b = 2 it is as wide as a hidden matrix, but its rows still are different things."""
    network = NetworkConfig(width=16, depth=1)
    config = DHNConfig(block_size=block_size, network=network, latent_size=8)
    context = ModelContext(2, 0.1, (False, False), (1.0, 1.0), (0.1,))
    model = draw_weights(DHNModel, config, context, jax.random.key(0))
    weights = eqx.filter(model, eqx.is_inexact_array)
    draw = np.random.default_rng(0)
    gradients = jax.tree.map(lambda x: jnp.asarray(draw.normal(size=x.shape), x.dtype), weights)
    optimiser = make_optimiser(TrainingConfig(optimiser="muon", clip=0.0))
    updates, _ = optimiser.update(gradients, optimiser.init(weights), weights)
    adam = optax.scale_by_adam(nesterov=True)
    expected, _ = adam.update(gradients, adam.init(weights))
    found, expected = (x.stages[0].right.network for x in (updates, expected))
    np.testing.assert_allclose(found.embed, expected.embed, rtol=1e-3)
    assert not np.allclose(found.weights, expected.weights, rtol=0.1), "hidden ones are Muon's"
