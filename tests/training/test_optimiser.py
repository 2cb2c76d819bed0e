"""The optimisers' updates have the sizes that one learning rate for all of them relies on."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from dhn.training.config import TrainingConfig
from dhn.training.step import make_optimiser


def first_update(kind):
    draw = np.random.default_rng(0)
    gradients = {"stacked": draw.normal(size=(2, 6, 6)), "bias": draw.normal(size=5)}
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


def test_muon_leaves_vectors_to_adam():
    gradients, updates = first_update("muon")
    adam = optax.scale_by_adam(nesterov=True)
    expected, _ = adam.update(gradients["bias"], adam.init(gradients["bias"]))
    np.testing.assert_allclose(updates["bias"], expected, rtol=1e-4)
