"""Solving the implicit equation of a block Hamiltonian, for a whole batch at once."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Float

MAX_ITERATIONS = 64


def solve_fixed_point(
    update: Callable[[Array], Array], guess: Float[Array, "n b d"]
) -> Float[Array, "n b d"]:
    """`x = update(x)` to round-off; differentiable by the implicit function theorem.

    Sample `i` of `update(x)` must depend on sample `i` of `x` alone. The iteration converges when
    the derivative of `update` is below one; for `h⁺` that is its mixed derivative, of the order of
    what changes over one lag (an oscillator needs frequency · lag < π/3). A batch stops when its
    worst member does, or after `MAX_ITERATIONS`, whatever has been reached by then.
    """
    precision = 4 * float(jnp.finfo(guess.dtype).eps)

    def iterate(residual, guess):
        return optx.fixed_point(
            lambda x, _: x - residual(x),
            optx.FixedPointIteration(rtol=precision, atol=precision, norm=optx.max_norm),
            guess,
            max_steps=MAX_ITERATIONS,
            throw=False,
        ).value

    return jax.lax.custom_root(lambda x: x - update(x), guess, iterate, _solve_samples)


def _solve_samples(
    linear: Callable[[Array], Array], y: Float[Array, "n b d"]
) -> Float[Array, "n b d"]:
    """Solve `linear(x) = y` sample by sample.

    The Jacobian of a batch is block diagonal. Probing all samples with the same unit vector reads
    one column of every block at once, so the cost grows with the batch and not with its cube.
    """
    n, b, d = y.shape
    units = jnp.broadcast_to(
        jnp.eye(b * d, dtype=y.dtype).reshape(b * d, 1, b, d), (b * d, n, b, d)
    )
    columns = jax.vmap(linear)(units).reshape(b * d, n, b * d)
    matrices = jnp.moveaxis(columns, 0, -1)
    return jnp.linalg.solve(matrices, y.reshape(n, b * d, 1)).reshape(n, b, d)
