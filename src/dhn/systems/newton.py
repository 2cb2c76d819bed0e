"""Newton's method to round-off, differentiable to any order by the implicit function theorem."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

_HALVINGS = 12  # of a step before it is given up
_LIMIT = 50  # of the steps


def find_root(
    residual: Callable[[Array], Array],
    guess: Float[Array, " n"],
    solve: Callable[[Array, Array], Array] = jnp.linalg.solve,
) -> tuple[Float[Array, " n"], Bool[Array, ""]]:
    """`x` with `residual(x) = 0` near `guess`, and whether it was found.

    A step that does not shrink the residual is halved; if no halving shrinks it either, the
    iteration ends. It is found if the last full step was negligible: convergence is quadratic,
    so a step of eps^0.6 leaves an error below eps. Derivatives come from the implicit function
    theorem: neither their cost nor their accuracy depends on the number of iterations.
    """

    def iterate(f, x):
        def size(x):
            return jnp.max(jnp.abs(f(x)))

        def advance(carry):
            x, error, _, _, count = carry
            step = solve(jax.jacfwd(f)(x), -f(x))

            def shorten(trial):
                scale = 0.5 * trial[0]
                return scale, size(x + scale * step)

            # A NaN must count as "not smaller", hence the negated comparison.
            scale, new = jax.lax.while_loop(
                lambda trial: ~(trial[1] < error) & (trial[0] > 0.5**_HALVINGS) & (error > 0),
                shorten,
                (jnp.ones((), x.dtype), size(x + step)),
            )
            better = new < error
            negligible = jnp.max(jnp.abs(step)) <= tolerance * (1 + jnp.max(jnp.abs(x)))
            x = jnp.where(better, x + scale * step, x)
            return x, jnp.where(better, new, error), better, negligible, count + 1

        tolerance = jnp.finfo(x.dtype).eps ** 0.6
        start = (x, size(x), jnp.array(True), jnp.array(False), jnp.array(0))
        x, _, _, found, _ = jax.lax.while_loop(
            lambda carry: carry[2] & ~carry[3] & (carry[4] < _LIMIT), advance, start
        )
        # custom_root carries tangents of whatever solve returns, so this cannot be a bool.
        return x, found.astype(x.dtype)

    def tangent_solve(linear, y):
        return solve(jax.jacfwd(linear)(jnp.zeros_like(y)), y)

    x, found = jax.lax.custom_root(residual, guess, iterate, tangent_solve, has_aux=True)
    return x, jax.lax.stop_gradient(found) > 0
