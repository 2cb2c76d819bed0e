"""Paths: the model rolled out through a whole stretch of measurements.

One-step equations fitted to noisy states are biased, since both ends of a step carry noise and a
step moves little. A path has its noise on one side only: it starts wherever it meets the
measurements best, and everything after the start is the model's own doing.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from dhn.blocks import StateBlock
from dhn.models.contract import AbstractForecaster

SMALLEST = 1e-6
"""Distances below this, in scaled units, are none."""


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
    model: AbstractForecaster,
    window: StateBlock,
    z: Float[Array, "n k"],
    noise: Float[Array, "*L 2 d"],
) -> Float[Array, "n L 2 d"]:
    """Measurements minus the path that meets them best, in units of the noise.

    The start is found by one Gauss-Newton step from the measured one. There the residuals do not
    change with the start to first order in their squares' sum, so no derivative is taken by it.
    """
    length, states = model.context_length, window.q.shape[1]
    fixed = jax.lax.stop_gradient((eqx.filter(model, eqx.is_inexact_array), z, noise))
    still = eqx.combine(fixed[0], model)
    measured = jnp.stack(window, axis=2)

    def residuals(model, start, z, noise):
        path = path_from(model, StateBlock(start[:, :, 0], start[:, :, 1]), z, states)
        return (measured - jnp.stack(path, axis=2)) / noise

    start = measured[:, :length]
    n = start.shape[0]
    size = start[0].size
    value, push = jax.linearize(lambda x: residuals(still, x, *fixed[1:]), start)
    units = jnp.broadcast_to(
        jnp.eye(size, dtype=start.dtype).reshape(size, 1, *start.shape[1:]), (size, *start.shape)
    )
    columns = jax.lax.map(push, units).reshape(size, n, -1)
    normal = jnp.einsum("anm,bnm->nab", columns, columns)
    normal += 1e-6 * jnp.einsum("naa->n", normal)[:, None, None] * jnp.eye(size)
    right = jnp.einsum("anm,nm->na", columns, value.reshape(n, -1))
    shift = jnp.linalg.solve(normal, right[..., None])[..., 0]
    best = jax.lax.stop_gradient(start - shift.reshape(start.shape))
    return residuals(model, best, z, noise)


def path_loss(
    model: AbstractForecaster,
    window: StateBlock,
    z: Float[Array, "n k"],
    noise: Float[Array, "2 d"],
) -> Float[Array, ""]:
    """Root mean square distance of paths to the measurements, geometric mean of all coordinates.

    So a coordinate that is measured ten times more precisely counts as much as the others.
    """
    noise = jax.lax.stop_gradient(noise)
    misses = path_residuals(model, window, z, noise) * noise
    return jnp.exp(0.5 * jnp.log(jnp.mean(misses**2, axis=(0, 1)) + SMALLEST**2).mean())
