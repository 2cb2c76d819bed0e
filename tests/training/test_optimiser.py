"""The optimisers' updates have the sizes that one learning rate for all of them relies on."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

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
