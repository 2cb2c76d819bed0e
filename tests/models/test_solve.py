"""Implicit equations: solved to round-off, differentiated exactly, sample by sample."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dhn.models.solve import solve_fixed_point


def draw(shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


def cosine(x, c):
    """A contraction that couples the entries of a sample, not the samples."""
    return c + 0.25 * jnp.cos(x + x.sum((1, 2), keepdims=True) / 4)


def solve(c):
    return solve_fixed_point(lambda x: cosine(x, c), jnp.zeros_like(c)).value


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_the_fixed_point_is_found_to_round_off(precision):
    with jax.enable_x64(precision == "float64"):
        c = draw((7, 2, 2)).astype(precision)
        x = jax.jit(solve)(c)
        assert x.dtype == precision
        np.testing.assert_allclose(x, cosine(x, c), atol=10 * np.finfo(precision).eps, rtol=0)


def test_an_affine_equation_has_its_closed_solution():
    with jax.enable_x64(True):
        c = draw((3, 1, 2))
        x = jax.jit(lambda c: solve_fixed_point(lambda x: c - 0.3 * x, jnp.zeros_like(c)).value)(c)
        np.testing.assert_allclose(x, c / 1.3, atol=1e-15)


def test_derivatives_are_exact_in_both_modes():
    """Against central differences, though the contraction is slow (about a half with each pass)."""
    with jax.enable_x64(True):
        c, direction, weight = draw((4, 2, 2)), draw((4, 2, 2), 1), draw((4, 2, 2), 2)
        plain = jax.jit(solve)
        step = 1e-5
        difference = (plain(c + step * direction) - plain(c - step * direction)) / (2 * step)
        tangent = jax.jit(lambda c, v: jax.jvp(solve, (c,), (v,))[1])(c, direction)
        np.testing.assert_allclose(tangent, difference, atol=1e-9)
        gradient = jax.jit(jax.grad(lambda c: (weight * solve(c)).sum()))(c)
        np.testing.assert_allclose(
            (gradient * direction).sum(), (weight * tangent).sum(), atol=1e-12
        )


def test_second_derivatives_pass_through():
    """HNNs train through implicit integrators of a field that is a gradient itself."""
    with jax.enable_x64(True):
        c, v, step = draw((2, 1, 2)), draw((2, 1, 2), 1), 1e-5
        slope = jax.jit(jax.grad(lambda c: (solve(c) ** 3).sum()))
        curvature = jax.jit(
            lambda c: jax.jvp(jax.grad(lambda c: (solve(c) ** 3).sum()), (c,), (v,))
        )
        difference = (slope(c + step * v) - slope(c - step * v)) / (2 * step)
        np.testing.assert_allclose(curvature(c)[1], difference, atol=1e-7)


def test_derivatives_do_not_grow_with_the_square_of_the_batch():
    """A Jacobian of the whole batch would need 64 times the memory for 8 times the samples."""

    def memory(n):
        tangent = jax.jit(lambda c: jax.jvp(solve, (c,), (c,)))
        compiled = tangent.lower(jax.ShapeDtypeStruct((n, 2, 2), jnp.float32)).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert memory(1024) < 12 * memory(128)


def test_vmapped_and_plain_solves_agree():
    with jax.enable_x64(True):
        c = draw((4, 2, 2))
        mapped = jax.jit(jax.vmap(lambda c: solve(c[None])[0]))(c)
        np.testing.assert_allclose(mapped, jax.jit(solve)(c), atol=1e-14)


def test_newton_finishes_what_iteration_cannot():
    """`x = c - 3 tanh(x)` repels plain iteration from everywhere but its solution."""
    with jax.enable_x64(True):
        c = draw((5, 1, 2))

        def found(c):
            return solve_fixed_point(lambda x: c - 3 * jnp.tanh(x), jnp.zeros_like(c)).value

        x = jax.jit(found)(c)
        np.testing.assert_allclose(x, c - 3 * jnp.tanh(x), atol=1e-13)
        slope = jax.jit(lambda c: jax.jvp(found, (c,), (jnp.ones_like(c),))[1])(c)
        np.testing.assert_allclose(slope, 1 / (1 + 3 / jnp.cosh(x) ** 2), rtol=1e-12)


def test_samples_that_converge_are_left_alone():
    with jax.enable_x64(True):
        c = draw((2, 1, 1))
        factor = jnp.array([0.1, 4.0])[:, None, None]
        x = jax.jit(lambda c: solve_fixed_point(lambda x: c - factor * x, jnp.zeros_like(c)).value)(
            c
        )
        np.testing.assert_allclose(x, c / (1 + factor), atol=1e-14)


def test_what_has_no_solution_is_not_converged_and_not_a_number():
    """`x = exp(x) + 1` has none; its neighbour in the batch, `x = -exp(x)`, has one."""
    with jax.enable_x64(True):

        def update(x):
            return jnp.stack([jnp.exp(x[0]) + 1, -jnp.exp(x[1])])

        found = jax.jit(lambda: solve_fixed_point(update, jnp.zeros((2, 1, 1))))()
        np.testing.assert_array_equal(found.converged, [False, True])
        assert np.isnan(found.or_nan[0]).all()
        np.testing.assert_allclose(found.or_nan[1], -0.5671432904097838, atol=1e-14)
