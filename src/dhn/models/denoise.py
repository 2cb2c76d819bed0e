"""Denoising inference (paper, appendix C): from noise, or a first guess, to a clean window."""

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Key

from dhn.blocks import Known, NoiseLevel, StateBlock, corrupt, noise_levels, select
from dhn.models.config import DenoisingConfig
from dhn.models.stage import AbstractStage


def denoise(
    stage: AbstractStage,
    window: StateBlock,
    known: Known,
    z: Float[Array, "n k"],
    key: Key[Array, ""],
    config: DenoisingConfig,
) -> StateBlock:
    """Fill the unknown tokens of each window; known ones come back bit for bit.

    So do states that neither block holds (`s > b`), of which the model says nothing.

    `start="noise"`: all unknown tokens share one noise level, which falls from 1 to 0; at each
    step the network predicts the clean window, which is noised again to the next lower level.
    `start="persistence"`: the window's own values are the first guess and the updates are iterated
    without noise, as fixed-point iterations of the two Hamiltonians.
    """
    spec, dtype = stage.spec, window.q.dtype
    known = Known(*(part.at[:, spec.between].set(True) for part in known))

    def told(alpha):
        return NoiseLevel(jnp.where(known.q, 0.0, alpha), jnp.where(known.p, 0.0, alpha))

    def refine(states, alpha_now, alpha_next, key):
        clean = stage.predict(states, told(alpha_now), z)
        if config.start == "noise":
            clean = _renoise(clean, told(alpha_next), key, config.temperature)
        return select(known, window, clean)

    ladder = noise_levels(config.steps, dtype)
    if config.start == "noise":
        key, start_key = jr.split(key)
        # From zeros: what an unknown token holds must not matter, not even when it is NaN.
        nothing = jax.tree.map(jnp.zeros_like, window)
        states = _renoise(nothing, told(ladder[-1]), start_key, config.temperature)
        states = select(known, window, states)
        schedule = (ladder[1:][::-1], ladder[:-1][::-1])
    else:
        states = window
        # Told to be almost clean: the guess is close, and level 0 would mark the token as known.
        schedule = (jnp.full(config.steps, 0.1, dtype), jnp.zeros(config.steps, dtype))

    def body(states, step):
        alpha_now, alpha_next, key = step
        return refine(states, alpha_now, alpha_next, key), None

    states, _ = jax.lax.scan(body, states, (*schedule, jr.split(key, config.steps)))
    return states


def _renoise(states, level, key, temperature):
    noise = corrupt(key, jax.tree.map(jnp.zeros_like, states), level)
    return StateBlock(
        (1 - level.q[..., None]) * states.q + temperature * noise.q,
        (1 - level.p[..., None]) * states.p + temperature * noise.p,
    )
