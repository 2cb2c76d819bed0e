"""Paths: the model rolled out through a whole stretch of measurements.

One-step equations fitted to noisy states are biased, since both ends of a step carry noise and a
step moves little. A path has its noise on one side only: it starts wherever it meets the
measurements best, and everything after the start is the model's own doing.
"""

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from dhn.blocks import StateBlock
from dhn.models.contract import AbstractForecaster
from dhn.models.stage import LinkedStage, stage_residuals

SMALLEST = 1e-6
"""Distances below this, in scaled units, are none."""
NEWTON = 2
"""Steps of Newton's method before the one that is differentiated."""
FARTHEST = 1.0
"""Scaled units that a step of Newton's method may move a state."""


def roll_out(
    model: AbstractForecaster, context: StateBlock, z: Float[Array, "n k"], keys: Key[Array, " s"]
) -> tuple[StateBlock, StateBlock]:
    """One advance for each key: the last context, and all new states."""

    def body(context, key):
        new = model.advance(context, z, key)
        joined = jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis=1), context, new)
        return joined.at(slice(-model.context_length, None)), new

    context, new = jax.lax.scan(body, context, keys)
    return context, jax.tree.map(
        lambda x: jnp.moveaxis(x, 0, 1).reshape(x.shape[1], -1, x.shape[-1]), new
    )


def path_from(
    model: AbstractForecaster, start: StateBlock, z: Float[Array, "n k"], states: int
) -> StateBlock:
    """`states` states beginning with `start`, which has as many as one step needs."""
    steps = -(-(states - model.context_length) // model.step_length)
    _, new = roll_out(model, start, z, jr.split(jr.key(0), steps))
    path = jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis=1), start, new)
    return path.at(slice(0, states))


def path_residuals(
    stage: LinkedStage,
    window: StateBlock,
    z: Float[Array, "n k"],
    noise: Float[Array, "*L 2 d"],
) -> Float[Array, "n L 2 d"]:
    """Measurements minus the path that meets them best, in units of the noise.

    Newton's method for all states of a path at once, beginning with the measured ones: the
    one-step equations are linearised at every state side by side, and what they leave is carried
    on from state to state by small matrices. No implicit equation is solved on the way, and the
    network sees large batches. Derivatives are taken by the last step's equations alone, which is
    exact where the steps before have converged; nor by the start, at whose best value the
    residuals do not change to first order in their squares' sum.
    """
    measured = jnp.stack(window, axis=2)
    still = jax.lax.stop_gradient((stage, measured, z, noise))
    path = jax.lax.fori_loop(
        0, NEWTON, lambda _, path: _nearer(still[0], path, *still[1:]), still[1]
    )
    return (measured - _nearer(stage, jax.lax.stop_gradient(path), measured, z, noise)) / noise


def _nearer(
    stage: LinkedStage,
    path: Float[Array, "n L 2 d"],
    measured: Float[Array, "n L 2 d"],
    z: Float[Array, "n k"],
    noise: Float[Array, "*L 2 d"],
) -> Float[Array, "n L 2 d"]:
    """One step of Newton's method from `path`, with the start that suits the measurements best."""
    n, states = path.shape[:2]
    size = path[0, 0].size
    pairs = jnp.stack([path[:, :-1], path[:, 1:]], axis=2).reshape(-1, 2, *path.shape[2:])
    codes = jnp.repeat(z, states - 1, axis=0)

    def equations(pairs):
        block = StateBlock(pairs[:, :, 0], pairs[:, :, 1])
        return stage_residuals(stage, block, codes)

    units = jnp.eye(2 * size, dtype=path.dtype).reshape(2 * size, 1, *pairs.shape[1:])
    left, push = jax.linearize(equations, pairs)
    slopes = jax.vmap(lambda unit: push(jnp.broadcast_to(unit, pairs.shape)))(units)
    slopes = jax.lax.stop_gradient(jnp.moveaxis(slopes, 0, -1))
    inverse = -jnp.linalg.inv(slopes[..., size:])
    carry = (inverse @ slopes[..., :size]).reshape(n, states - 1, size, size)
    left = (inverse @ left[..., None]).reshape(n, states - 1, size)

    def step(before, now):
        turn, shift = before
        carry, left = now
        turn, shift = carry @ turn, (carry @ shift[..., None])[..., 0] + left
        return (turn, shift), (turn, shift)

    first = (
        jnp.broadcast_to(jnp.eye(size, dtype=path.dtype), (n, size, size)),
        jnp.zeros_like(left[:, 0]),
    )
    _, after = jax.lax.scan(step, first, (jnp.moveaxis(carry, 1, 0), jnp.moveaxis(left, 1, 0)))
    turns, shifts = jax.tree.map(
        lambda x, xs: jnp.moveaxis(jnp.concatenate([x[None], xs]), 0, 1), first, after
    )
    start = jax.lax.stop_gradient(
        _best_start(measured - path - shifts.reshape(path.shape), turns, noise)
    )
    moved = shifts + (turns @ start[:, None, :, None])[..., 0]
    return path + jnp.clip(moved.reshape(path.shape), -FARTHEST, FARTHEST)


def _best_start(
    misses: Float[Array, "n L 2 d"], turns: Float[Array, "n L m m"], noise: Float[Array, "*L 2 d"]
) -> Float[Array, "n m"]:
    """The change of the first state that makes the misses least, in units of the noise."""
    n, states, size = turns.shape[:3]
    weight = jnp.broadcast_to(1 / noise, misses.shape).reshape(n, states, size)
    columns = turns * weight[..., None]
    normal = jnp.einsum("nlma,nlmb->nab", columns, columns)
    normal += 1e-6 * jnp.einsum("naa->n", normal)[:, None, None] * jnp.eye(size)
    right = jnp.einsum("nlma,nlm->na", columns, misses.reshape(n, states, size) * weight)
    return jnp.linalg.solve(normal, right[..., None])[..., 0]


def path_loss(
    stage: LinkedStage,
    window: StateBlock,
    z: Float[Array, "n k"],
    noise: Float[Array, "2 d"],
) -> Float[Array, ""]:
    """Root mean square distance of paths to the measurements, geometric mean of all coordinates.

    So a coordinate that is measured ten times more precisely counts as much as the others.
    """
    noise = jax.lax.stop_gradient(noise)
    misses = path_residuals(stage, window, z, noise) * noise
    return jnp.exp(0.5 * jnp.log(jnp.mean(misses**2, axis=(0, 1)) + SMALLEST**2).mean())
