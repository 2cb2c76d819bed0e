"""Levenberg-Marquardt against problems whose answers are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dhn.codes.least_squares import TOLERANCE, levenberg_marquardt


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def valley(x):
    """Rosenbrock's: (1, 1) at the end of a bent valley; and one residual that no x removes."""
    return jnp.stack([10 * (x[:, 1] - x[:, 0] ** 2), 1 - x[:, 0], jnp.full(x.shape[0], 0.5)], 1)


def test_rows_are_solved_independently_of_each_other():
    starts = jnp.array([[-1.2, 1.0], [2.0, -3.0], [1.0, 1.0]])
    found = jax.jit(lambda x: levenberg_marquardt(valley, x, 100))(starts)
    np.testing.assert_allclose(found.x, 1.0, atol=0.01)
    np.testing.assert_allclose(found.objective, 0.25, rtol=TOLERANCE)
    alone = jax.jit(lambda x: levenberg_marquardt(valley, x, 100))(starts[:1])
    np.testing.assert_allclose(found.x[:1], alone.x, atol=0.01)
    # Half of (10 (y - x²))² + (1 - x)² at (1, 1).
    np.testing.assert_allclose(found.hessian[0], [[401.0, -200.0], [-200.0, 100.0]], rtol=0.02)


def test_a_linear_problem_is_solved_to_the_tolerance():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(20, 4)), rng.normal(size=20)
    found = levenberg_marquardt(lambda x: x @ a.T - b, jnp.zeros((1, 4)), 30)
    best, (rest,), *_ = np.linalg.lstsq(a, b)
    np.testing.assert_allclose(found.x[0], best, atol=1e-3)
    np.testing.assert_allclose(found.objective[0], rest, rtol=TOLERANCE)


def test_never_worse_than_the_start():
    """Also where the linear model promises what does not come, and where one step is allowed."""
    start = jnp.array([[-1.2, 1.0], [30.0, 0.0]])
    before = (valley(start) ** 2).sum(1)
    for most in (0, 1, 3):
        after = levenberg_marquardt(valley, start, most)
        assert np.all(after.objective <= before)
        np.testing.assert_allclose(after.objective, (valley(after.x) ** 2).sum(1))
