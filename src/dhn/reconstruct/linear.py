"""Linear least squares along time: block tridiagonal, with a border for the latent code.

The unknowns are increments: `x_0 .. x_{K-1}` of size `B` each, and `c` of size `r` that all of them
share. The objective of each trajectory is

    Σ_k |W_k^½ (x_k - y_k)|² + Σ_k |A_k x_k + B_k x_{k+1} + C_k c + e_k|² + |R c - s|²

`solve_steps` eliminates the states one after the other by Cholesky factors: fast, but it squares
the condition number, which the next Gauss-Newton iteration mends. `smooth` does the same with
orthogonal transformations (a square-root information smoother) and returns covariances accurate to
round-off of the increments.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Terms(NamedTuple):
    """The linearised terms of `n` trajectories, time first."""

    A: Float[Array, "J n m B"]
    B: Float[Array, "J n m B"]
    C: Float[Array, "J n m r"]
    e: Float[Array, "J n m"]
    """`J = K - 1` terms that tie each state to the next."""
    weight: Float[Array, "K n B"]
    """`W_k`, a diagonal: the inverse variance of a direct measurement, 0 where there is none."""
    misfit: Float[Array, "K n B"]
    """`y_k`: the measurement minus the current state."""
    prior_root: Float[Array, "n r r"]
    prior_misfit: Float[Array, "n r"]


class Step(NamedTuple):
    """Increments, and by how much they lower the objective if the problem is linear."""

    x: Float[Array, "K n B"]
    c: Float[Array, "n r"]
    promise: Float[Array, " n"]
    code_hessian: Float[Array, "n r r"]
    """Precision of `c` once the states are eliminated."""


class Smoothed(NamedTuple):
    """Increments with square roots of their posterior covariances."""

    x: Float[Array, "K n B"]
    c: Float[Array, "n r"]
    x_root: Float[Array, "K n B f"]
    """`x_root @ x_root.T` is the covariance of each state; `f = B + r`."""
    c_root: Float[Array, "n r r"]


def _transpose(x: Array) -> Array:
    return jnp.swapaxes(x, -1, -2)


def solve_steps(terms: Terms, damping: Float[Array, " n"]) -> Step:
    """The increments that minimise the objective, damped as in Levenberg-Marquardt.

    Arguments:
        terms: The linearised terms.
        damping: Share of the diagonal of the normal equations that is added to it.

    Returns:
        Increments and the promised decrease of half the objective.
    """
    n, r = terms.prior_misfit.shape
    B = terms.weight.shape[-1]
    dtype = terms.e.dtype
    tiny = jnp.finfo(dtype).tiny ** 0.5

    def damped(normal):
        """Normal equations with the right-hand side as a last column."""
        size = normal.shape[0]
        return normal * (1 + damping * jnp.eye(size, size + 1, dtype=dtype)[..., None])

    def measured(weight, misfit, size):
        """Direct measurements of the first `B` of `size` unknowns."""
        places = jnp.eye(size, B, dtype=dtype)[..., None] * weight
        sides = jnp.pad(weight * misfit, [(0, size - B), (0, 0)])[:, None]
        none = jnp.zeros((size, size - B, n), dtype)
        return damped(jnp.concatenate([places, none, sides], axis=1))

    def eliminate(known, now):
        tie, weight, misfit = now
        size = 2 * B + r
        # What is known of `[x_k, c]`, written for `[x_k, x_{k+1}, c]`.
        none = jnp.zeros((B + r, B, n), dtype)
        apart = jnp.concatenate([known[:, :B], none, known[:, B:]], axis=1)
        none = jnp.zeros((B, size + 1, n), dtype)
        apart = jnp.concatenate([apart[:B], none, apart[B:]])
        normal = (tie[:, :size, None] * tie[:, None]).sum(0)
        rows, rest = _eliminated(apart + damped(normal) + measured(weight, misfit, size), B)
        return rest, rows

    prior = jnp.concatenate([terms.prior_root, terms.prior_misfit[..., None]], axis=-1)
    prior = damped(jnp.moveaxis(_transpose(terms.prior_root) @ prior, 0, -1))
    start = jnp.pad(prior, [(B, 0), (B, 0), (0, 0)])
    start = start + tiny * jnp.eye(B + r, B + r + 1, dtype=dtype)[..., None]
    tie = jnp.concatenate([terms.A, terms.B, terms.C, -terms.e[..., None]], axis=-1)
    tie, weight, misfit = (jnp.moveaxis(x, 1, -1) for x in (tie, terms.weight, terms.misfit))
    known, kept = jax.lax.scan(eliminate, start, (tie, weight[:-1], misfit[:-1]))
    known = known + measured(weight[-1], misfit[-1], B + r)
    rows, corner = _eliminated(known, B)
    code_rows, _ = _eliminated(corner, r)
    c = _substituted(code_rows, jnp.zeros((0, n), dtype))
    last = _substituted(rows, c)

    def substitute(x, rows):
        x = _substituted(rows, jnp.concatenate([x, c]))
        return x, x

    _, x = jax.lax.scan(substitute, last, kept, reverse=True)
    x = jnp.moveaxis(jnp.concatenate([x, last[None]]), -1, 1)
    promise = (kept[:, :, -1] ** 2).sum((0, 1)) + (rows[:, -1] ** 2).sum(0)
    promise = promise + (code_rows[:, -1] ** 2).sum(0)
    return Step(x, c.T, promise / 2, jnp.moveaxis(corner[:, :r], -1, 0))


def _eliminated(
    normal: Float[Array, "k w n"], count: int
) -> tuple[Float[Array, "count w n"], Float[Array, "l v n"]]:
    """The first unknowns of normal equations eliminated by Cholesky factors.

    The batch comes last and steps are written out, which takes a quarter of the time of LAPACK
    calls for matrices as small as these.

    Arguments:
        normal: A symmetric matrix and its right-hand side, `w = k + 1` columns.
        count: Unknowns to eliminate.

    Returns:
        Triangular rows of these unknowns, and the equations of the others.
    """
    rows = []
    for j in range(count):
        row = normal[0] / jnp.sqrt(normal[0, 0])
        rows.append(jnp.pad(row, [(j, 0), (0, 0)]))
        normal = normal[1:, 1:] - row[1:-1, None] * row[1:]
    return jnp.stack(rows), normal


def _substituted(
    rows: Float[Array, "count w n"], later: Float[Array, "l n"]
) -> Float[Array, "count n"]:
    """The unknowns of triangular rows, given those that come after them."""
    found = later
    for j in reversed(range(len(rows))):
        one = (rows[j, -1] - (rows[j, j + 1 : -1] * found).sum(0)) / rows[j, j]
        found = jnp.concatenate([one[None], found])
    return found[: len(rows)]


def _upper(rows: Float[Array, "n rows columns"]) -> Float[Array, "n columns columns"]:
    """`R` of a QR decomposition, with as many rows as columns."""
    n, height, width = rows.shape
    if height < width:
        rows = jnp.concatenate([rows, jnp.zeros((n, width - height, width), rows.dtype)], axis=1)
    return jnp.linalg.qr(rows, mode="r")


def _measured(weight: Float[Array, "n B"], misfit: Float[Array, "n B"]) -> tuple[Array, Array]:
    """Rows of direct measurements and their right-hand sides."""
    root = jnp.sqrt(weight)
    return jnp.eye(root.shape[1], dtype=root.dtype) * root[:, None, :], (root * misfit)[..., None]


def advance_root(
    known: Float[Array, "n f w"],
    A: Float[Array, "n m B"],
    B: Float[Array, "n m B"],
    C: Float[Array, "n m r"],
    e: Float[Array, "n m"],
    weight: Float[Array, "n B"],
    misfit: Float[Array, "n B"],
) -> tuple[Float[Array, "n f w"], Float[Array, "n B v"]]:
    """Take in the measurements of a state and its ties to the next one, and eliminate it.

    Arguments:
        known: Triangular rows over `[x_k, c, right-hand side]` that summarise everything before.
        A, B, C, e, weight, misfit: The terms of this state, as in `Terms`.

    Returns:
        The same summary for the next state, and the rows `[x_k, x_{k+1}, c, right-hand side]` that
        give `x_k` from it.
    """
    n, size = weight.shape
    r = C.shape[-1]
    rows, target = _measured(weight, misfit)
    zero = jnp.zeros((n, known.shape[1], size), known.dtype)
    before = jnp.concatenate([known[..., :size], zero, known[..., size:]], axis=-1)
    none = jnp.zeros((n, size, size + r), known.dtype)
    here = jnp.concatenate([rows, none, target], axis=-1)
    tie = jnp.concatenate([A, B, C, -e[..., None]], axis=-1)
    R = _upper(jnp.concatenate([before, here, tie], axis=1))
    return R[:, size : 2 * size + r, size:], R[:, :size]


def smooth(terms: Terms) -> Smoothed:
    """The exact solution with covariances, by orthogonal transformations alone.

    Arguments:
        terms: The linearised terms.

    Returns:
        Increments, and square roots of the covariances of every state and of `c`.
    """
    n, r = terms.prior_misfit.shape
    B = terms.weight.shape[-1]
    dtype = terms.e.dtype
    start = jnp.concatenate(
        [jnp.zeros((n, r, B), dtype), terms.prior_root, terms.prior_misfit[..., None]], axis=-1
    )
    start = jnp.concatenate([start, jnp.zeros((n, B, B + r + 1), dtype)], axis=1)
    now = (terms.A, terms.B, terms.C, terms.e, terms.weight[:-1], terms.misfit[:-1])
    known, kept = jax.lax.scan(lambda known, now: advance_root(known, *now), start, now)
    rows, target = _measured(terms.weight[-1], terms.misfit[-1])
    here = jnp.concatenate([rows, jnp.zeros((n, B, r), dtype), target], axis=-1)
    R = _upper(jnp.concatenate([known, here], axis=1))[:, : B + r]
    # A direction that nothing determines keeps a finite, very large variance.
    joint_root = _inverse_upper(R[..., : B + r])
    joint = (joint_root @ R[..., -1:])[..., 0]
    x_last, c = joint[:, :B], joint[:, B:]

    def substitute(carry, kept):
        x, root = carry
        own = _inverse_upper(kept[..., :B])
        gain = -own @ kept[..., B : 2 * B + r]
        state = jnp.concatenate([x, c], axis=1)[..., None]
        new = (gain @ state + own @ kept[..., -1:])[..., 0]
        top = jnp.concatenate([gain @ root, own], axis=-1)
        bottom = jnp.concatenate([root[:, B:], jnp.zeros((n, r, B), dtype)], axis=-1)
        joined = jnp.concatenate([top, bottom], axis=1)
        root = _transpose(_upper(_transpose(joined))[:, : B + r])
        return (new, root), (new, root[:, :B])

    _, (x, x_root) = jax.lax.scan(substitute, (x_last, joint_root), kept, reverse=True)
    x = jnp.concatenate([x, x_last[None]])
    x_root = jnp.concatenate([x_root, joint_root[None, :, :B]])
    return Smoothed(x, c, x_root, _transpose(_upper(_transpose(joint_root[:, B:]))[:, :r]))


def _inverse_upper(R: Float[Array, "n k k"]) -> Float[Array, "n k k"]:
    """Inverse of a triangular matrix; a zero on the diagonal becomes a very large variance."""
    size = R.shape[-1]
    diagonal = jnp.einsum("naa->na", R)
    least = jnp.finfo(R.dtype).eps ** 2
    lift = jnp.where(jnp.abs(diagonal) < least, least, 0.0)
    R = R + lift[:, None, :] * jnp.eye(size, dtype=R.dtype)
    eye = jnp.broadcast_to(jnp.eye(size, dtype=R.dtype), R.shape)
    return jax.lax.linalg.triangular_solve(R, eye, left_side=True, lower=False)
