"""Noise on unknown states: `x̃ = (1 - α) x + α ε` with one α per state token (paper, Eq. 11-12)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Key

from dhn.blocks.state import Known, NoiseLevel, StateBlock

SMALLEST_SIGMA, LARGEST_SIGMA = 0.01, 1.0
"""Range of `corrupt_nearby`, in typical changes: from what inference must still refine to a guess
that is off by a whole step."""


def noise_levels(denoising_steps: int, dtype: DTypeLike | None = None) -> Float[Array, " levels"]:
    """The ladder `0 = α_0 < ... < α_N = 1`."""
    return jnp.linspace(0.0, 1.0, denoising_steps + 1, dtype=dtype)


def unknown_level(known: Known, alpha: Float[Array, "*#batch"]) -> NoiseLevel:
    """One level for all unknown tokens, or for those of each window, (n, 1); 0 for known ones."""
    return NoiseLevel(jnp.where(known.q, 0.0, alpha), jnp.where(known.p, 0.0, alpha))


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


def draw_any_level(key: Key[Array, ""], known: Known, dtype: DTypeLike | None = None) -> NoiseLevel:
    """A level from all of (0, 1] for every unknown token (authors' code); 0 for known ones."""
    key_q, key_p = jr.split(key)

    def draw(key, known):
        return jnp.where(known, 0.0, 1.0 - jr.uniform(key, known.shape, dtype or float))

    return NoiseLevel(draw(key_q, known.q), draw(key_p, known.p))


def rung_above(level: NoiseLevel, denoising_steps: int) -> NoiseLevel:
    """Each level rounded up to the ladder: what the authors' network is conditioned on.

    Their code counts the share of signal, `1 - α`, and rounds that down. Only clean tokens have 0.
    """
    return jax.tree.map(lambda x: jnp.ceil(x * denoising_steps) / denoising_steps, level)


def corrupt(key: Key[Array, ""], states: StateBlock, level: NoiseLevel) -> StateBlock:
    """Noise every token at exactly its own level."""
    key_q, key_p = jr.split(key)

    def mix(key, x, alpha):
        alpha = alpha[..., None]
        return (1 - alpha) * x + alpha * jr.normal(key, x.shape, x.dtype)

    return StateBlock(mix(key_q, states.q, level.q), mix(key_p, states.p, level.p))


class Nearby(NamedTuple):
    """Windows whose unknown tokens were moved by `σ` typical changes."""

    states: StateBlock
    level: NoiseLevel
    """`σ / (1 + σ)` for unknown tokens, 0 for known ones."""
    weight: Float[Array, " n"]
    """`(1 + σ/σ_min)^-2`: about one over the variance, so that no size of noise rules the loss."""


def corrupt_nearby(key: Key[Array, ""], states: StateBlock, known: Known, change: float) -> Nearby:
    """Move the unknown tokens of each window by noise of one size, log-uniform in `σ`.

    Instead of pure noise at one end, the starts that inference meets: a guess that is off by up to
    one typical `change`.
    """
    key_size, key_noise = jr.split(key)
    q, p = states
    low, high = jnp.log(SMALLEST_SIGMA), jnp.log(LARGEST_SIGMA)
    sigma = jnp.exp(jr.uniform(key_size, q.shape[:1], q.dtype, low, high))
    drawn = change * sigma[:, None, None] * jr.normal(key_noise, (2, *q.shape), q.dtype)

    def move(x, step, known):
        return jnp.where(known[..., None], x, x + step)

    moved = StateBlock(move(q, drawn[0], known.q), move(p, drawn[1], known.p))
    level = unknown_level(known, (sigma / (1 + sigma))[:, None])
    return Nearby(moved, level, (1 + sigma / SMALLEST_SIGMA) ** -2)


def no_noise(states: StateBlock) -> NoiseLevel:
    """Level 0 for every token of these states."""
    return jax.tree.map(lambda x: jnp.zeros(x.shape[:-1], x.dtype), NoiseLevel(states.q, states.p))


def select(known: Known, if_known: StateBlock, otherwise: StateBlock) -> StateBlock:
    """Token by token: the first where known, else the second."""
    return StateBlock(
        jnp.where(known.q[..., None], if_known.q, otherwise.q),
        jnp.where(known.p[..., None], if_known.p, otherwise.p),
    )
