"""Refining a trained model on its own paths: many steps at once instead of one.

One step of noisy measurements says little: the noise of two neighbouring states drowns the change
between them, and a network learns the noise as motion. Over many steps the motion grows and the
noise does not. Here the model's path over long windows is laid through the measurements, weights
and start states moving together (multiple shooting, maximum likelihood with unknown noise).
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int

from dhn.blocks import StateBlock
from dhn.models.contract import AbstractForecaster, weights_dtype


class Stretch(NamedTuple):
    """Windows of measured states `(w, T, d)`, which of them are known, and their codes."""

    states: StateBlock
    known: Bool[Array, "w T"]
    rows: Int[Array, " w"]
    """The trajectory, and with it the code, of each window."""


def stretches(
    states: StateBlock, known: Bool[np.ndarray, "n T"], length: int, start: int
) -> Stretch | None:
    """Windows of `length` states, each beginning where the last one is half over.

    A window needs its first `start` states and half of all known.
    """
    n, total, _ = states.q.shape
    length = min(length, total)
    first = np.unique(np.append(np.arange(0, total - length + 1, max(length // 2, 1)), total - length))
    rows, begin = (x.ravel() for x in np.meshgrid(np.arange(n), first, indexing="ij"))
    time = begin[:, None] + np.arange(length)
    there = known[rows[:, None], time]
    good = there[:, :start].all(1) & (there.mean(1) >= 0.5)
    if not good.any():
        return None
    rows, time = rows[good], time[good]
    cut = StateBlock(*(x[rows[:, None], time] for x in states))
    return Stretch(cut, jnp.asarray(known[rows[:, None], time]), jnp.asarray(rows))


def roll(model: AbstractForecaster, start: StateBlock, z: Float[Array, "w k"], steps: int):
    """The path `(w, context + steps, d)` from these start states."""
    length = model.context_length

    def body(context, key):
        new = model.advance(context, z, key)
        both = jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis=1), context, new)
        return both.at(slice(-length, None)), new

    count = -(-steps // model.step_length)
    _, new = jax.lax.scan(body, start, jr.split(jr.key(0), count))
    path = jax.tree.map(
        lambda a, b: jnp.concatenate(
            [a, jnp.moveaxis(b, 0, 1).reshape(a.shape[0], -1, a.shape[-1])], axis=1
        ),
        start,
        new,
    )
    return path.at(slice(0, length + steps))


def refine(
    model: AbstractForecaster,
    data: Stretch,
    codes: Float[np.ndarray, "n k"],
    noise: Float[np.ndarray, "2 d"],
    *,
    steps: int,
    learning_rate: float = 1e-3,
    batch_size: int = 32,
    seed: int = 0,
) -> AbstractForecaster:
    """Move the weights, and a start state for each window, so that paths meet the measurements.

    Minimises `½ Σ log(mean r² + noise²)` over q and p of every coordinate: the likelihood of
    residuals `r` whose size is not known, only that it is no smaller than the noise.
    """
    dtype = weights_dtype(model)
    weights, static = eqx.partition(model, eqx.is_inexact_array)
    length, total = model.context_length, data.states.q.shape[1]
    states = jax.tree.map(lambda x: jnp.asarray(np.nan_to_num(x), dtype), data.states)
    floor = jnp.asarray(np.maximum(noise, 1e-5), dtype) ** 2
    z = jnp.asarray(codes, dtype)[data.rows]
    scale = jnp.sqrt(floor)[:, None, None]
    offsets = jnp.zeros((2, len(data.rows), length, states.q.shape[-1]), dtype)
    count = len(data.rows)
    batch = min(batch_size, count)

    def loss(parameters, pick):
        weights, offsets = parameters
        model = eqx.combine(weights, static)
        moved = offsets[:, pick] * scale
        start = StateBlock(states.q[pick, :length] + moved[0], states.p[pick, :length] + moved[1])
        path = roll(model, start, z[pick], total - length)
        weight = data.known[pick][..., None].astype(dtype)
        mean = [
            (weight * (a - b[pick]) ** 2).sum((0, 1)) / weight.sum()
            for a, b in zip(path, states, strict=True)
        ]
        return 0.5 * jnp.log(jnp.stack(mean) + floor).mean()

    schedule = optax.cosine_decay_schedule(learning_rate, steps, 0.01)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule))
    # Start states are counted in noise levels, weights are of order one tenth.
    speeds = optax.partition(
        {"weights": optimiser, "starts": optax.adam(lambda step: 30 * schedule(step))},
        ("weights", "starts"),
    )
    del speeds

    @eqx.filter_jit
    def run(parameters, state, key):
        def body(carry, key):
            parameters, state = carry
            pick = jr.permutation(key, count)[:batch]
            value, gradient = jax.value_and_grad(loss)(parameters, pick)
            updates, state = optimiser.update(gradient, state, parameters)
            updates = (updates[0], 30 * updates[1])
            return (optax.apply_updates(parameters, updates), state), value

        (parameters, _), values = jax.lax.scan(body, (parameters, state), jr.split(key, steps))
        return parameters, values

    parameters = (weights, offsets)
    (weights, _), values = run(parameters, optimiser.init(parameters), jr.key(seed))
    refine.values = np.asarray(values)
    return eqx.combine(weights, static)
