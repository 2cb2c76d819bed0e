"""Fitting codes where the training set's lie along a curve."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dhn.blocks import StateBlock
from dhn.codes.autodecode import CodePrior, autodecode, inverse_root, local_gaussian
from dhn.models.contract import WindowShape

NOISE, STATES = 0.1, 4


class Shown(eqx.Module):
    """Every state is the code, up to noise, and one direction is hardly seen."""

    sight: Float[Array, " 3"]

    @property
    def window_shapes(self):
        return (WindowShape(1, 1),)

    def stage_residuals(self, stage, window, z):
        return (window.q[:, 0] - z * self.sight).reshape(len(z), -1)


def curve(t):
    return np.stack([t, t**2, np.sin(3 * t)], axis=1)


def fitted(codes, truth, rng):
    model = Shown(jnp.array([1.0, 1.0, 0.02]))
    q = truth[:, None] * np.asarray(model.sight) + NOISE * rng.normal(size=(len(truth), STATES, 3))
    known = np.ones(q.shape[:2], bool)
    return autodecode(model, StateBlock(q, q), known, CodePrior.fit(codes, NOISE)).codes


def test_the_curve_tells_what_the_states_do_not():
    """The third number follows from the first two: a bent curve, which one Gaussian misses."""
    with jax.enable_x64(True):
        truth = curve(np.linspace(-0.9, 0.9, 40))
        # 63 codes are too few for local Gaussians, 512 are enough.
        few, many = (
            fitted(curve(np.linspace(-1, 1, count)), truth, np.random.default_rng(0))
            for count in (63, 512)
        )
    far, near = (np.sqrt(np.mean((z - truth) ** 2, axis=0)) for z in (few, many))
    assert np.all(near < far) and near[2] < 0.5 * far[2]
    assert near[2] < 0.2


def test_a_code_beyond_the_curve_is_not_pulled_back():
    """Twice as far out as any training code: the states decide where they can see."""
    with jax.enable_x64(True):
        truth = np.array([[2.0, 4.0, 0.0], [-2.0, 4.0, 0.0]])
        codes = fitted(curve(np.linspace(-1, 1, 512)), truth, np.random.default_rng(1))
    assert np.all(np.abs(codes - truth)[:, :2] < 0.3)


def test_only_a_distance_beyond_its_own_uncertainty_stretches_the_gaussian():
    others = 0.1 * np.random.default_rng(0).normal(size=(512, 2))
    code = jnp.array([[1.0, 0.0]])  # ten standard deviations away
    widths = []
    for hessian in (0.1, 1e6):  # a standard deviation of three, and of a thousandth
        _, root = local_gaussian(code, hessian * jnp.eye(2)[None], jnp.asarray(others))
        widths.append(np.sqrt(np.linalg.inv(root[0].T @ root[0])[0, 0]))
    assert widths[0] < 0.3 and widths[1] > 0.5


class Winding(eqx.Module):
    """States tell the code twice: roughly, and exactly but for whole turns."""

    turns: Float[Array, ""]

    @property
    def window_shapes(self):
        return (WindowShape(1, 1),)

    def shown(self, z):
        return jnp.concatenate(
            [z, 0.05 * jnp.sin(self.turns * z), 0.05 * jnp.cos(self.turns * z)], axis=1
        )

    def stage_residuals(self, stage, window, z):
        return window.q[:, 0] - self.shown(z)


def test_narrow_valleys_are_found_among_the_training_codes():
    """Turns so narrow that a search from one end of the codes goes astray."""
    with jax.enable_x64(True):
        model, truth = (
            Winding(jnp.array(120.0)),
            np.random.default_rng(0).uniform(-0.9, 0.9, (200, 1)),
        )
        q = np.repeat(np.asarray(model.shown(truth))[:, None], STATES, axis=1)
        prior = CodePrior.fit(np.linspace(-1, 1, 1024)[:, None], 1e-4)
        codes = autodecode(model, StateBlock(q, q), np.ones(q.shape[:2], bool), prior).codes
    np.testing.assert_allclose(codes, truth, atol=1e-4)


def test_the_root_of_a_nearly_singular_covariance_is_finite_and_right():
    """Directions of very different size, in single precision, as codes along a curve have them."""
    draw = np.random.default_rng(0)
    turn, _ = np.linalg.qr(draw.normal(size=(6, 6)))
    sharp = (turn * np.logspace(0, 9, 6)) @ turn.T
    inner = np.eye(6) + 0.5 * np.outer(turn[0], turn[0])
    scales = np.logspace(-3, 3, 6)
    both = np.stack([sharp, scales[:, None] * inner * scales])
    roots = np.asarray(inverse_root(jnp.asarray(both, jnp.float32)))
    assert np.isfinite(roots).all()
    inverse = scales[:, None] * (roots[1].T @ roots[1]) * scales
    np.testing.assert_allclose(inverse @ inner, np.eye(6), atol=1e-3)
