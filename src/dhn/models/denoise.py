"""Denoising inference (paper, Eq. 19-20, appendix C): from noise or a guess to a clean window."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.random as jr
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Key

from dhn.blocks import Code, Known, NoiseLevel, StateBlock, corrupt, select, unknown_level
from dhn.models.config import DenoisingConfig
from dhn.models.stage import AbstractStage


def falling_levels(config: DenoisingConfig, dtype: DTypeLike) -> Float[Array, " rounds"]:
    """The level of each round: `1, ..., 1/N` and then 0 as often as `clean_rounds`."""
    noisy = jnp.arange(config.noisy_rounds, 0, -1, dtype=dtype) / max(config.noisy_rounds, 1)
    return jnp.concatenate([noisy, jnp.zeros(config.clean_rounds, dtype)])


def renoiser(
    key: Key[Array, ""], level: NoiseLevel, config: DenoisingConfig
) -> Callable[[StateBlock], StateBlock]:
    """Noise to these levels, `(1 - α) x + α ε`; ε is scaled by the temperature."""
    if config.noisy_rounds == 0:
        return lambda states: states

    def renoise(states):
        noise = corrupt(key, jax.tree.map(jnp.zeros_like, states), level)
        return StateBlock(
            (1 - level.q[..., None]) * states.q + config.temperature * noise.q,
            (1 - level.p[..., None]) * states.p + config.temperature * noise.p,
        )

    return renoise


def first_guess(window: StateBlock, known: Known, config: DenoisingConfig) -> StateBlock:
    """What the rounds start from: the window's own values, or nothing if noise replaces them."""
    if config.noisy_rounds == 0:
        return window
    # What an unknown token holds must not matter then, not even when it is NaN.
    return select(known, window, jax.tree.map(jnp.zeros_like, window))


def denoise(
    stage: AbstractStage,
    window: StateBlock,
    known: Known,
    z: Code,
    key: Key[Array, ""],
    config: DenoisingConfig,
) -> StateBlock:
    """Fill the unknown tokens of each window; known ones come back bit for bit.

    So do states that neither block holds (`s > b`), about which the model predicts nothing.

    All unknown tokens share one level, which falls from 1 to 0. At each round they are noised to
    that level and the networks, conditioned on it, predict the clean window. The last rounds are
    clean: fixed-point iterations of the two Hamiltonians. Without noisy rounds the window's own
    values are the first guess.

    **Arguments**: `window` (n, L, d); `known` (n, L); `z` (n, k).

    **Returns**: (n, L, d).
    """
    known = Known(*(part.at[:, stage.spec.between].set(True) for part in known))

    def body(states, now):
        alpha, key = now
        level = unknown_level(known, alpha)
        before, between = (renoiser(k, level, config) for k in jr.split(key))
        clean = stage.predict(before(states), known, level, z, between)
        return select(known, window, clean), None

    levels = falling_levels(config, window.q.dtype)
    start = first_guess(window, known, config)
    states, _ = jax.lax.scan(body, start, (levels, jr.split(key, len(levels))))
    return states
