"""The paper's solver for any pattern of known numbers: denoise a whole trajectory at once.

All windows of the trajectory are denoised side by side with one falling noise level, and estimates
of the same state are averaged after every round. Forecast, completion, interpolation and gaps
differ in what is known, not in how they are solved.
"""

from typing import NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from dhn.blocks import Code, Codes, Known, StateBlock, unknown_level
from dhn.errors import UserError
from dhn.models.config import DenoisingConfig
from dhn.models.contract import weights_dtype
from dhn.models.denoise import falling_levels, renoiser
from dhn.models.dhn import DHNModel
from dhn.models.stage import AbstractStage

DECAY = 2.0
"""Weight of a window's estimate per state that it is nearer to known ones, as a power of e. With
equal weights information diffuses, in a number of rounds that grows with the square of a gap; with
these it advances by one stride a round."""
ROUNDS_PER_STATE = 16
"""Clean rounds at most, for each state of the trajectory; whole states need about 4."""
SETTLED = 64
"""Rounds end when no state changes by more than so many units in the last place."""


@final
class Denoised(NamedTuple):
    """Whole trajectories, and for which of them the rounds came to rest."""

    states: StateBlock
    settled: Bool[np.ndarray, " n"]


def denoise_trajectories(
    model: DHNModel, states: StateBlock, known: StateBlock, codes: Codes, key: Key[Array, ""]
) -> Denoised:
    """Find the unknown numbers of trajectories; known ones come back as they are.

    Two networks start from noise if the configuration's inference does; otherwise, and for linked
    models, from straight lines between known numbers. The levels fall as in a single window, and
    clean rounds go on until nothing changes.

    What the equations do not determine step by step is not found: positions alone, for one, leave
    momenta open that `H⁺` and `H⁻` only hand back and forth. Such trajectories do not settle.

    **Arguments**: `states` (n, T, d), scaled; what unknown numbers hold does not matter. `known`,
    booleans (n, T, d) for q and for p. `codes` (n, k).

    **Returns**: states (n, T, d), and whether each trajectory settled, (n,).
    """
    stage = model.finest
    length, reach = states.q.shape[1], (stage.spec.window_length - 1) * stage.spacing
    if length <= reach:
        raise UserError(
            f"denoising needs trajectories of at least {reach + 1} states, one window of this "
            f"model; got {length}. Use longer ones, or a model with smaller blocks."
        )
    dtype = weights_dtype(model)
    known = StateBlock(*(np.asarray(part, bool) for part in known))
    guess = [
        np.asarray(straight_lines(np.asarray(x, np.float64), part), dtype)
        for x, part in zip(states, known, strict=True)
    ]
    found, settled = _solve(
        stage,
        model.config.inference,
        jax.tree.map(jnp.asarray, StateBlock(*guess)),
        jax.tree.map(jnp.asarray, known),
        jnp.asarray(codes, dtype),
        key,
    )
    kept = [np.where(part, truth, x) for part, truth, x in zip(known, states, found, strict=True)]
    return Denoised(StateBlock(*kept), np.asarray(settled))


def straight_lines(
    x: Float[np.ndarray, "n T d"], known: Bool[np.ndarray, "n T d"]
) -> Float[np.ndarray, "n T d"]:
    """Each number over time: straight between known ones, constant beyond, 0 if none is known."""
    found = np.zeros_like(x)
    time = np.arange(x.shape[1])
    for i, j in np.argwhere(known.any(1)):
        here = known[i, :, j]
        found[i, :, j] = np.interp(time, time[here], x[i, here, j])
    return found


def _nearness(known: StateBlock, places: np.ndarray) -> Float[Array, "n w L"]:
    """Minus the number of states to the nearest known one, for every state of every window.

    A state with half of its numbers known counts as half a step farther away. All alike if nothing
    is known.
    """
    share = (known.q.mean(-1) + known.p.mean(-1)) / 2
    time = jnp.arange(share.shape[1])
    distance = jnp.abs(time[:, None] - time[None])
    far = jnp.where(share > 0, 1 - share, jnp.inf)
    nearness = -(distance[None] + far[:, None]).min(-1)
    return jnp.where(jnp.isfinite(nearness), nearness, 0.0)[:, places]


def _weights(nearness: Float[Array, "n w L"], between: slice) -> Float[Array, "n w L"]:
    """How much each window's estimate of a state counts: the more, the nearer it is to known ones.

    A window is as near as the nearest of its other states. States between the blocks have none.
    """
    itself = jnp.eye(nearness.shape[-1], dtype=bool)
    others = jnp.where(itself, -jnp.inf, nearness[:, :, None]).max(-1)
    return jnp.exp(DECAY * (others - nearness)).at[:, :, between].set(0.0)


@eqx.filter_jit
def _solve(
    stage: AbstractStage,
    config: DenoisingConfig,
    states: StateBlock,
    known: StateBlock,
    z: Code,
    key: Key[Array, ""],
) -> tuple[StateBlock, Bool[Array, " n"]]:
    n, length, _ = states.q.shape
    dtype = states.q.dtype
    places = stage.places(length)
    nearness = _nearness(known, places)
    weights = _weights(nearness, stage.spec.between).astype(dtype)
    # Without fixed states H⁻ would undo what H⁺ did: all but the farthest states are held.
    held = (nearness > nearness.min(-1, keepdims=True)).reshape(-1, places.shape[1])
    truth = states
    codes = jnp.repeat(z, len(places), axis=0)

    def cut(tree):
        shape = (n * len(places), places.shape[1])
        return jax.tree.map(lambda x: x[:, places].reshape(*shape, *x.shape[2:]), tree)

    def keep(known, truth, x):
        return jax.tree.map(jnp.where, known, truth, x)

    def average(estimates, before):
        def mean(x, old):
            x = x.reshape(n, *places.shape, -1)
            # A linked model's equation may have no solution where the guess is still poor.
            w = jnp.where(jnp.isfinite(x), weights[..., None], 0.0)
            total = jnp.zeros_like(old).at[:, places].add(w * jnp.where(w > 0, x, 0.0))
            count = jnp.zeros_like(old).at[:, places].add(w)
            return jnp.where(count > 0, total / jnp.where(count > 0, count, 1.0), old)

        return jax.tree.map(mean, estimates, before)

    tokens = Known(known.q.all(-1), known.p.all(-1))
    held_tokens = Known(*(part | held for part in cut(tokens)))
    held_numbers = jax.tree.map(lambda part: part | held[..., None], cut(known))

    def one_round(states, alpha, key):
        first, second = jr.split(key)
        level = unknown_level(tokens, alpha)
        noised = keep(known, truth, renoiser(first, level, config)(states))
        windows, levels = cut(noised), cut(level)
        again = renoiser(second, levels, config)
        estimates = stage.predict(
            windows, held_tokens, levels, codes,
            lambda newest: keep(held_numbers, windows, again(newest)),
        )  # fmt: skip
        return keep(known, truth, average(estimates, states))

    def noisy(states, now):
        return one_round(states, *now), None

    levels = falling_levels(config, dtype)[: config.noisy_rounds]
    key, clean_key = jr.split(key)
    states, _ = jax.lax.scan(noisy, states, (levels, jr.split(key, len(levels))))
    tolerance = SETTLED * float(jnp.finfo(dtype).eps)

    def clean(carry):
        states, _, count = carry
        new = one_round(states, jnp.zeros((), dtype), clean_key)
        change = [
            jnp.abs(a - b).max((1, 2)) / (1 + jnp.abs(a).max((1, 2)))
            for a, b in zip(new, states, strict=True)
        ]
        return new, jnp.maximum(*change), count + 1

    def moving(carry):
        _, change, count = carry
        rest = (count >= config.clean_rounds) & (change <= tolerance).all()
        return ~rest & (count < ROUNDS_PER_STATE * length)

    start = (states, jnp.full(n, jnp.inf, dtype), jnp.zeros((), jnp.int32))
    states, change, _ = jax.lax.while_loop(moving, clean, start)
    return states, change <= tolerance
