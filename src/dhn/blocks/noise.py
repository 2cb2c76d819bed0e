"""Noise on unknown states: `x̃ = (1 - α) x + α ε` with one α per state token (paper, Eq. 13-14)."""

import jax
import jax.numpy as jnp
import jax.random as jr
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Key

from dhn.blocks.state import Known, NoiseLevel, StateBlock


def noise_levels(denoising_steps: int, dtype: DTypeLike | None = None) -> Float[Array, " levels"]:
    """The ladder `0 = α_0 < ... < α_N = 1`."""
    return jnp.linspace(0.0, 1.0, denoising_steps + 1, dtype=dtype)


def draw_noise_level(
    key: Key[Array, ""], known: Known, denoising_steps: int, dtype: DTypeLike | None = None
) -> NoiseLevel:
    """An independent level from `α_1 .. α_N` for every unknown token; 0 for known ones."""
    ladder = noise_levels(denoising_steps, dtype)
    key_q, key_p = jr.split(key)

    def draw(key, known):
        level = ladder[jr.randint(key, known.shape, 1, denoising_steps + 1)]
        return jnp.where(known, 0.0, level)

    return NoiseLevel(draw(key_q, known.q), draw(key_p, known.p))


def corrupt(key: Key[Array, ""], states: StateBlock, level: NoiseLevel) -> StateBlock:
    """Noise every token at exactly its own level."""
    key_q, key_p = jr.split(key)

    def mix(key, x, alpha):
        alpha = alpha[..., None]
        return (1 - alpha) * x + alpha * jr.normal(key, x.shape, x.dtype)

    return StateBlock(mix(key_q, states.q, level.q), mix(key_p, states.p, level.p))


def no_noise(states: StateBlock) -> NoiseLevel:
    """Level 0 for every token of these states."""
    return jax.tree.map(lambda x: jnp.zeros(x.shape[:-1], x.dtype), NoiseLevel(states.q, states.p))


def select(known: Known, if_known: StateBlock, otherwise: StateBlock) -> StateBlock:
    """Token by token: the first where known, else the second."""
    return StateBlock(
        jnp.where(known.q[..., None], if_known.q, otherwise.q),
        jnp.where(known.p[..., None], if_known.p, otherwise.p),
    )
