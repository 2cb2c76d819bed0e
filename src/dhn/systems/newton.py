"""Newton's method to round-off, differentiable to any order by the implicit function theorem."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

LinearSolve = Callable[[Float[Array, "n n"], Float[Array, " n"]], Float[Array, " n"]]

_HALVINGS = 12


def find_root(
    residual: Callable[[Array], Array],
    guess: Float[Array, " n"],
    solve: LinearSolve = jnp.linalg.solve,
    *,
    limit: int = 50,
) -> tuple[Float[Array, " n"], Bool[Array, ""]]:
    """`x` with `residual(x) = 0` near `guess`, and whether it was found.

    A step that does not shrink the residual is halved; when no halving shrinks it either, the
    residual is at round-off (found) or the iteration is stuck (not found). Derivatives come from
    the implicit function theorem, so neither their cost nor their accuracy depends on the
    number of iterations.
    """

    def iterate(f, x):
        size = lambda x: jnp.max(jnp.abs(f(x)))  # noqa: E731

        def shorten(carry):
            x, step, _, scale = carry
            return x, step, size(x + 0.5 * scale * step), 0.5 * scale

        def advance(carry):
            x, error, _, count = carry
            step = solve(jax.jacfwd(f)(x), -f(x))
            # A NaN must count as "not smaller", hence the negated comparisons.
            _, _, new, scale = jax.lax.while_loop(
                lambda c: ~(c[2] < error) & (c[3] > 0.5**_HALVINGS) & (error > 0),
                shorten,
                (x, step, size(x + step), jnp.ones((), x.dtype)),
            )
            better = new < error
            return (
                jnp.where(better, x + scale * step, x),
                jnp.where(better, new, error),
                better,
                count + 1,
            )

        x, _, _, _ = jax.lax.while_loop(
            lambda c: c[2] & (c[1] > 0) & (c[3] < limit),
            advance,
            (x, size(x), jnp.array(True), jnp.array(0)),
        )
        # The length of one more step is the error in x itself, whatever the residual's units.
        last = jnp.max(jnp.abs(solve(jax.jacfwd(f)(x), f(x))))
        tolerance = jnp.finfo(x.dtype).eps ** 0.75 * (1 + jnp.max(jnp.abs(x)))
        return x, (last <= tolerance).astype(x.dtype)

    def tangent_solve(linear, y):
        return solve(jax.jacfwd(linear)(jnp.zeros_like(y)), y)

    x, found = jax.lax.custom_root(residual, guess, iterate, tangent_solve, has_aux=True)
    return x, jax.lax.stop_gradient(found) > 0
