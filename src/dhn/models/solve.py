"""Solving the implicit equation of a block Hamiltonian, for a whole batch at once."""

from collections.abc import Callable

import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Float

MAX_ITERATIONS = 64


def solve_fixed_point(
    update: Callable[[Array], Array], guess: Float[Array, "n b d"]
) -> Float[Array, "n b d"]:
    """`x = update(x)` to round-off; differentiable by the implicit function theorem.

    The mixed derivative of `h⁺` is of order (frequency · lag)², so plain iteration gains digits
    at every pass for any lag that a forecast uses. A batch stops when its worst member does.
    """
    precision = 4 * float(jnp.finfo(guess.dtype).eps)
    solution = optx.fixed_point(
        lambda x, _: update(x),
        optx.FixedPointIteration(rtol=precision, atol=precision, norm=optx.max_norm),
        guess,
        max_steps=MAX_ITERATIONS,
        throw=False,
    )
    return solution.value
