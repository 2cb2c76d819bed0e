"""Stage by stage, the states between known ones are those of the oscillator."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from exact_oscillator import exact_model, exact_states

from dhn.reproduction.rolling import double_resolution


def test_two_doublings_find_the_oscillator():
    """Every fourth state is known; each stage fills the middles that its spacing belongs to."""
    with jax.enable_x64(True):
        model = exact_model(2, 1, linked=False, spacings=(4, 2, 1))
        truth, z = exact_states(0, 17)
        known = (np.arange(17) % 4 == 0)[:, None]
        path = jax.tree.map(lambda x: jnp.where(known, x, jnp.nan), truth)
        config = model.config.inference
        half = double_resolution(model.stages[1], config, path, z, jr.key(0))
        np.testing.assert_allclose(half.q[:, ::2], truth.q[:, ::2], atol=1e-10)
        assert np.isnan(half.q[:, 1::2]).all(), "finer states belong to the next stage"
        whole = double_resolution(model.stages[2], config, half, z, jr.key(0))
        for found, exact in zip(whole, truth, strict=True):
            np.testing.assert_allclose(found, exact, atol=1e-10)
