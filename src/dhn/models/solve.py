"""Solving the implicit equation of a block Hamiltonian, for a whole batch at once."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from dhn.blocks import Block

MAX_ITERATIONS = 64  # of the fixed point
MAX_NEWTON = 16  # steps
CLOSE = 64
"""Residuals of so many units in the last place need no more of Newton's steps."""


class FixedPoint(NamedTuple):
    """What `solve_fixed_point` found, and for which samples it is a solution."""

    value: Block
    converged: Bool[Array, " n"]

    @property
    def or_nan(self) -> Block:
        """The solutions; not a number where there is none, so that no caller can mistake it."""
        return jnp.where(self.converged[:, None, None], self.value, jnp.nan)


def solve_fixed_point(update: Callable[[Array], Array], guess: Block) -> FixedPoint:
    """`x = update(x)` to round-off; differentiable by the implicit function theorem.

    Sample `i` of `update(x)` must depend on sample `i` of `x` alone. Plain iteration converges
    when the derivative of `update` is below one; for `h⁺` that is its mixed derivative, of the
    order of what changes over one lag (an oscillator needs frequency · lag < π/3). A batch stops
    when its worst member does. Where `MAX_ITERATIONS` are not enough, Newton's method takes over
    from the guess. Samples whose residual is still large then are not `converged`.
    """
    precision = float(jnp.finfo(guess.dtype).eps)

    def iterate(residual, guess):
        found, done = _repeat(residual, guess, 4 * precision)
        x = _newton(residual, guess, found, done)
        failed = jax.lax.cond(
            done,
            lambda: jnp.zeros((x.shape[0], 1, 1), bool),
            lambda: _wrong(x, residual(x), precision**0.5),
        )
        # As numbers, since booleans have no derivative to be zero.
        return x, failed[:, 0, 0].astype(x.dtype)

    def residual(x):
        return x - update(x)

    x, failed = jax.lax.custom_root(residual, guess, iterate, _solve_samples, has_aux=True)
    return FixedPoint(x, failed == 0)


def _wrong(x: Block, residual: Block, tolerance: float) -> Bool[Array, "n 1 1"]:
    """Samples whose residual is large beside the state, or not a number."""
    size = 1 + jnp.abs(x).max((1, 2), keepdims=True)
    return ~(jnp.abs(residual).max((1, 2), keepdims=True) <= tolerance * size)


def _repeat(
    residual: Callable[[Array], Array], guess: Block, tolerance: float
) -> tuple[Block, Bool[Array, ""]]:
    """`x - residual(x)` again and again, and whether the batch came to rest."""

    def step(carry):
        x, _, count = carry
        moved = x - residual(x)
        change = jnp.abs(moved - x) / (tolerance * (1 + jnp.abs(moved)))
        return moved, jnp.max(change), count + 1

    def moving(carry):
        _, change, count = carry
        return ~(change < 1) & (count < MAX_ITERATIONS)  # also where one is not a number

    start = guess, jnp.array(jnp.inf, guess.dtype), 0
    x, change, _ = jax.lax.while_loop(moving, step, start)
    return x, change < 1


def _newton(
    residual: Callable[[Array], Array], guess: Block, x: Block, done: Bool[Array, ""]
) -> Block:
    """Finish those samples of `x` whose residual is not small; nothing happens if `done`."""
    tolerance = CLOSE * float(jnp.finfo(x.dtype).eps)

    def step(carry):
        x, _, count = carry
        r = residual(x)
        # What plain iteration has driven off begins again.
        x = jnp.where((count == 0) & _wrong(x, r, tolerance), guess, x)
        r, linear = jax.linearize(residual, x)
        moved = x - _solve_samples(linear, r)
        x = jnp.where(_wrong(x, r, tolerance) & jnp.isfinite(moved), moved, x)
        return x, ~_wrong(x, residual(x), tolerance).any(), count + 1

    start = (x, done, jnp.zeros((), jnp.int32))
    return jax.lax.while_loop(lambda c: ~c[1] & (c[2] < MAX_NEWTON), step, start)[0]


def _solve_samples(linear: Callable[[Array], Array], y: Block) -> Block:
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
