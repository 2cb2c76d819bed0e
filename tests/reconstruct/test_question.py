"""Measurements between states of the grid."""

import jax
import numpy as np

from dhn.reconstruct.question import STENCIL, interpolate_path


def test_polynomials_are_interpolated_exactly():
    """Up to the degree that the stencil determines, at the ends as well as in the middle."""
    draw = np.random.default_rng(0)
    times, fraction = np.arange(12), draw.uniform(size=(3, 11, 2))
    power = draw.normal(size=(3, STENCIL, 4))

    def exact(t):
        return sum(power[:, k][:, None] * (t[..., None] / 10) ** k for k in range(STENCIL))

    path = exact(np.broadcast_to(times, (3, 12)))
    with jax.enable_x64(True):
        found = np.asarray(interpolate_path(path, fraction))
    for j in range(2):
        np.testing.assert_allclose(found[:, :, j], exact(times[:-1] + fraction[..., j]), atol=1e-12)
