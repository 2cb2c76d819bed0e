"""Levenberg-Marquardt for many small independent problems at once."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

TOLERANCE = 1e-4
"""A row is done when the next step would lower its objective by less than this share."""


class Solution(NamedTuple):
    x: Float[Array, "n r"]
    objective: Float[Array, " n"]
    hessian: Float[Array, "n r r"]
    """Gauss-Newton's: of half the objective, at the solution."""


def levenberg_marquardt(
    residuals: Callable[[Float[Array, "n r"]], Float[Array, "n m"]],
    start: Float[Array, "n r"],
    max_iterations: int | Int[Array, ""],
) -> Solution:
    """Minimise `sum(residuals(x)²)` for each row; row `i` of the residuals sees row `i` of x only.

    Derivatives are taken forward, one direction after the other, so memory does not grow with the
    number of unknowns. A row that cannot improve waits, with growing damping, for the others.
    """
    n, r = start.shape
    tangents = jnp.broadcast_to(jnp.eye(r, dtype=start.dtype)[:, None, :], (r, n, r))

    def evaluate(x):
        # Linearised once: implicit solves inside the residuals are not repeated per direction.
        value, push = jax.linearize(residuals, x)
        jacobian = jax.lax.map(push, tangents)
        hessian = jnp.einsum("anm,bnm->nab", jacobian, jacobian)
        return (value**2).sum(1), hessian, jnp.einsum("anm,nm->na", jacobian, value)

    def iterate(carry):
        """Look at `trial`, move there if it is better, and choose the next one.

        The residuals stand in the program once, which halves the time to compile it.
        """
        at, trial, promise, damping, count, _ = carry
        value, hessian, gradient = evaluate(trial)
        better = (value < at.objective) | (count == 0)
        at = jax.tree.map(
            lambda new, old: jnp.where(better.reshape(n, *[1] * (new.ndim - 1)), new, old),
            _Point(trial, value, hessian, gradient),
            at,
        )
        damping = jnp.where(count == 0, 1e-2, damping * jnp.where(better, 0.2, 8.0))
        # By the predicted decrease, since the actual one contains round-off.
        moving = (promise > TOLERANCE) & (damping < 1e4)
        diagonal = jnp.maximum(jnp.einsum("naa->na", at.hessian), 1e-12)
        damped = at.hessian + damping[:, None, None] * jax.vmap(jnp.diag)(diagonal)
        step = jnp.linalg.solve(damped, at.gradient[..., None])[..., 0]
        promise = (step * at.gradient).sum(1) / at.objective
        return at, at.x - step, promise, damping, count + 1, moving.any()

    nowhere = jnp.full(n, jnp.inf, start.dtype)
    at = _Point(start, nowhere, jnp.zeros((n, r, r), start.dtype), jnp.zeros_like(start))
    first = (at, start, nowhere, nowhere, 0, jnp.array(True))
    at, *_ = jax.lax.while_loop(lambda c: (c[4] <= max_iterations) & c[5], iterate, first)
    return Solution(at.x, at.objective, at.hessian)


class _Point(NamedTuple):
    x: Float[Array, "n r"]
    objective: Float[Array, " n"]
    hessian: Float[Array, "n r r"]
    gradient: Float[Array, "n r"]
