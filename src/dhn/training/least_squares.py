"""Levenberg-Marquardt for many small independent problems at once."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

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
    max_iterations: int,
) -> Solution:
    """Minimise `sum(residuals(x)²)` for each row; row `i` of the residuals sees row `i` of x only.

    Derivatives are taken forward, one direction after the other, so memory does not grow with the
    number of unknowns. A row that cannot improve waits, with growing damping, for the others.
    """
    n, r = start.shape
    tangents = jnp.broadcast_to(jnp.eye(r, dtype=start.dtype)[:, None, :], (r, n, r))

    def objective(x):
        return (residuals(x) ** 2).sum(1)

    def linearise(x):
        # Linearised once: implicit solves inside the residuals are not repeated per direction.
        value, push = jax.linearize(residuals, x)
        jacobian = jax.lax.map(push, tangents)
        hessian = jnp.einsum("anm,bnm->nab", jacobian, jacobian)
        return hessian, jnp.einsum("anm,nm->na", jacobian, value)

    def iterate(carry):
        x, best, damping, count, _ = carry
        hessian, gradient = linearise(x)
        diagonal = jnp.maximum(jnp.einsum("naa->na", hessian), 1e-12)
        damped = hessian + damping[:, None, None] * jax.vmap(jnp.diag)(diagonal)
        step = jnp.linalg.solve(damped, gradient[..., None])[..., 0]
        value = objective(x - step)
        better = value < best
        x = jnp.where(better[:, None], x - step, x)
        # What the linear model promises, not what round-off grants, tells whether to go on.
        promise = (step * gradient).sum(1) / best
        moving = (promise > TOLERANCE) & (damping < 1e3)
        damping = jnp.where(better, damping * 0.2, damping * 8.0)
        return x, jnp.where(better, value, best), damping, count + 1, moving.any()

    first = (start, objective(start), jnp.full(n, 1e-2, start.dtype), 0, jnp.array(True))
    x, best, *_ = jax.lax.while_loop(lambda c: (c[3] < max_iterations) & c[4], iterate, first)
    return Solution(x, best, linearise(x)[0])
