"""Forecast: slide a model forward over trajectories, all at once."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, Key

from dhn.blocks import Code, Codes, StateBlock
from dhn.codes.batches import in_batches
from dhn.errors import UserError
from dhn.models.compiling import solving_jit
from dhn.models.contract import AbstractForecaster, weights_dtype
from dhn.reconstruct.question import States

ADVANCES = 32
"""Steps per compiled call: a longer forecast calls it again instead of compiling anew."""


def roll_out(
    model: AbstractForecaster,
    context: StateBlock,
    z: Code,
    key: Key[Array, ""],
    call: Int[Array, ""],
) -> tuple[StateBlock, StateBlock]:
    """The advances of one call: the last context, and all new states."""

    def body(context, key):
        new = model.advance(context, z, key)
        joined = jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis=1), context, new)
        return joined.at(slice(-model.context_length, None)), new

    keys = jr.split(jr.fold_in(key, call), ADVANCES)
    context, new = jax.lax.scan(body, context, keys)
    return context, jax.tree.map(
        lambda x: jnp.moveaxis(x, 0, 1).reshape(x.shape[1], -1, x.shape[-1]), new
    )


_slide = solving_jit(roll_out)


def forecast(
    model: AbstractForecaster,
    context: StateBlock,
    codes: Codes,
    steps: int,
    key: Key[Array, ""],
    *,
    batch_size: int = 1024,
) -> StateBlock:
    """The `steps` states after `context`, of which the last `context_length` are used (scaled)."""
    length, stride = model.context_length, model.step_length
    if context.q.shape[1] < length:
        raise UserError(
            f"a forecast starts from {length} states, but only {context.q.shape[1]} were given. "
            f"Observe at least {length}."
        )
    if stride < 1:
        raise UserError("this model's stride 0 moves nothing; train with a stride of 1 or more.")
    calls = -(-steps // (stride * ADVANCES))

    def run(part):
        states, z = part
        found = []
        for call in range(calls):
            states, new = _slide(model, states, z, key, jax.device_put(np.int32(call)))
            found.append(jax.tree.map(np.asarray, new))
        joined = jax.tree.map(lambda *x: np.concatenate(x, axis=1), *found)
        return joined.at(slice(0, steps))

    dtype = weights_dtype(model)
    start = context.at(slice(-length, None))
    arrays = jax.tree.map(lambda x: np.asarray(x, dtype), (start, codes))
    return in_batches(run, arrays, batch_size)


def with_tail(
    model: AbstractForecaster, states: Float[np.ndarray, "n span m"], codes: Codes, T: int
) -> States:
    """States up to `T`: beyond the last known number the most probable path is the model's own."""
    missing = T - states.shape[1]
    if missing <= 0:
        return states
    tail = forecast(model, StateBlock.of(states), codes, missing, jr.key(0))
    return np.concatenate([states, np.concatenate([tail.q, tail.p], axis=-1)], axis=1)
