"""The Legendre transform between velocities and momenta, by automatic differentiation.

Both directions are one problem: find `x` with `∇f(x) = target`. For a Lagrangian `f = L(q, ·)`
takes velocities to momenta; for a Hamiltonian `f = H(q, ·)` takes momenta to velocities.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from dhn.systems.newton import find_root

_UNROLLED = 8  # up to this many coordinates elimination is unrolled into element-wise work


def solve_definite(matrix: Float[Array, "d d"], vector: Float[Array, " d"]) -> Float[Array, " d"]:
    """Solve `matrix @ x = vector` for a symmetric positive (or negative) definite matrix.

    Gaussian elimination needs no pivoting for definite matrices. Unrolled, it stays element-wise
    under `vmap`, so XLA fuses it; a batched LAPACK call would dominate a simulation's time.
    """
    d = vector.shape[0]
    if d > _UNROLLED:
        return jnp.linalg.solve(matrix, vector)
    a = [[matrix[i, j] for j in range(d)] for i in range(d)]
    b = [vector[i] for i in range(d)]
    for k in range(d):
        for i in range(k + 1, d):
            factor = a[i][k] / a[k][k]
            for j in range(k + 1, d):
                a[i][j] = a[i][j] - factor * a[k][j]
            b[i] = b[i] - factor * b[k]
    x = [jnp.zeros_like(vector[0])] * d
    for i in reversed(range(d)):
        x[i] = (b[i] - sum(a[i][j] * x[j] for j in range(i + 1, d))) / a[i][i]
    return jnp.stack(x)


def invert_gradient(
    f: Callable[[Array], Array], target: Float[Array, " d"], *, quadratic: bool
) -> Float[Array, " d"]:
    """Find `x` with `∇f(x) = target`, for `f` with a definite Hessian; NaN where there is none.

    For quadratic `f` one Newton step from zero is exact.
    """
    gradient = jax.grad(f)
    origin = jnp.zeros_like(target)
    if quadratic:
        return solve_definite(jax.hessian(f)(origin), target - gradient(origin))
    x, found = find_root(lambda x: gradient(x) - target, origin, solve_definite)
    return jnp.where(found, x, jnp.nan)
