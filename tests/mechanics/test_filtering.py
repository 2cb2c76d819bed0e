"""The filter and the smoother against Gaussian algebra with full matrices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from dhn.mechanics.filtering import Rows, iterate, run_filter, smooth
from dhn.mechanics.layout import Layout

STIFFNESS, VISCOUS, STEP, COUNT = 1.3, 0.2, 0.15, 40
WHITE, KICK, SLOW, SLOW_TIME = 0.05, 0.1, 0.08, 3.0


@pytest.fixture(scope="module")
def oscillator():
    """A damped oscillator: coefficients, rows with losses, and the exact joint distribution."""
    layout = Layout((False,))
    theta = np.zeros(layout.size)
    values = {
        "stiffness": STIFFNESS, "viscous": VISCOUS, "log_white": np.log(WHITE),
        "log_kick": np.log(KICK), "log_slow": np.log(SLOW), "log_slow_time": np.log(SLOW_TIME),
    }  # fmt: skip
    for name, value in values.items():
        theta[layout.slices[name]] = value
    rng = np.random.default_rng(0)
    seen = (rng.random((COUNT, 1)) > 0.2) * 1.0
    step = np.full(COUNT, STEP)
    step[0] = 0.0
    spread = np.array([0.3, 0.5])
    a = np.array([[0.0, 1.0], [-STIFFNESS, -VISCOUS]]) * STEP
    # Order four of the exponential series, which is what Runge-Kutta does to a linear system.
    f = np.eye(3)
    f[:2, :2] = sum(np.linalg.matrix_power(a, k) / np.prod(range(1, k + 1)) for k in range(5))
    f[2, 2] = np.exp(-STEP / SLOW_TIME)
    q = np.zeros((3, 3))
    q[:2, :2] = KICK**2 * np.array([[STEP**3 / 3, STEP**2 / 2], [STEP**2 / 2, STEP]])
    q[2, 2] = SLOW**2 * (1 - f[2, 2] ** 2)
    blocks, first = [], np.diag([*spread**2, SLOW**2])
    for _ in range(COUNT):
        blocks.append(first)
        first = f @ first @ f.T + q
    joint = np.zeros((COUNT, 3, COUNT, 3))
    for i in range(COUNT):
        for j in range(i, COUNT):
            joint[j, :, i] = np.linalg.matrix_power(f, j - i) @ blocks[i]
            joint[i, :, j] = joint[j, :, i].T
    mean = np.array([1.0, -0.4, 0.0])
    means = np.stack([np.linalg.matrix_power(f, k) @ mean for k in range(COUNT)])
    y = means[:, :1] + rng.normal(size=(COUNT, 1)) * 0.1
    with jax.enable_x64(True):
        rows = Rows(*(jnp.asarray(x) for x in (step, y, seen, mean, spread)))
    return layout, theta, rows, means, joint.reshape(3 * COUNT, 3 * COUNT)


def observed(rows, means, joint):
    """Rows of the readings among all states, their mean and covariance."""
    at = np.flatnonzero(np.asarray(rows.seen)[:, 0])
    h = np.zeros((len(at), 3 * COUNT))
    h[np.arange(len(at)), 3 * at] = h[np.arange(len(at)), 3 * at + 2] = 1.0
    return (
        h,
        np.asarray(rows.y)[at, 0],
        h @ means.ravel(),
        h @ joint @ h.T + WHITE**2 * np.eye(len(at)),
    )


def test_the_likelihood_is_that_of_the_joint_normal_distribution(oscillator):
    layout, theta, rows, means, joint = oscillator
    with jax.enable_x64(True):
        found = run_filter(layout, jnp.asarray(theta), rows, np.ones(1), 1)
        e, s = np.asarray(found.innovation), np.asarray(found.variance)
    used = np.asarray(found.used) > 0
    value = -0.5 * (e**2 / s + np.log(2 * np.pi * s))[used].sum()
    _, y, mean, covariance = observed(rows, means, joint)
    assert used.sum() == len(y)
    assert value == pytest.approx(multivariate_normal(mean, covariance).logpdf(y), abs=1e-9)


def test_the_smoother_is_the_conditional_distribution(oscillator):
    layout, theta, rows, means, joint = oscillator
    with jax.enable_x64(True):
        found = smooth(run_filter(layout, jnp.asarray(theta), rows, np.ones(1), 1))
        again = iterate(layout, jnp.asarray(theta), rows, np.ones(1), 1, 3)[1:]
    h, y, mean, covariance = observed(rows, means, joint)
    gain = joint @ h.T @ np.linalg.inv(covariance)
    wanted = means.ravel() + gain @ (y - mean)
    spread = joint - gain @ h @ joint
    for got, got_covariance in (found, again):  # a linear system needs no second pass
        np.testing.assert_allclose(np.ravel(got), wanted, atol=1e-9)
        blocks = spread.reshape(COUNT, 3, COUNT, 3)[np.arange(COUNT), :, np.arange(COUNT)]
        np.testing.assert_allclose(got_covariance, blocks, atol=1e-9)


def test_an_outlier_is_gated_and_a_full_turn_is_none():
    layout = Layout((True,))
    theta = np.zeros(layout.size)
    theta[layout.slices["sine"]] = 1.0
    for name, value in (("log_white", 0.01), ("log_kick", 0.01), ("log_slow", 1e-6)):
        theta[layout.slices[name]] = np.log(value)
    count = 30
    step = np.full(count, 0.2)
    step[0] = 0.0
    y = 0.3 * np.cos(np.cumsum(step))[:, None]
    y[20:] += 2 * np.pi
    y[10] += 0.5
    arrays = (step, y, np.ones((count, 1)), np.array([0.3, 0.0, 0.0]), np.array([0.1, 0.1]))
    with jax.enable_x64(True):
        rows = Rows(*(jnp.asarray(x) for x in arrays))
        found = run_filter(layout, jnp.asarray(theta), rows, np.ones(1), 1)
    gated = np.asarray(found.gated)[:, 0]
    assert np.flatnonzero(gated).tolist() == [10]
    assert abs(found.mean[-1, 0] - 0.3 * np.cos(step.sum())) < 0.02
