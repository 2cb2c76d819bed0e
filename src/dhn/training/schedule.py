"""Learning rate over the run: linear warm-up, then a cosine down to almost nothing."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from dhn.training.config import TrainingConfig


def learning_rate(
    config: TrainingConfig, step: Int[Array, ""], total_steps: Int[Array, ""]
) -> Float[Array, ""]:
    """As a fraction of the peak. The length is a traced number, so a budget can set it late."""
    warm = jnp.minimum((step + 1) / max(config.warmup, 1), 1.0)
    progress = jnp.clip(step / jnp.maximum(total_steps, 1), 0.0, 1.0)
    floor = config.final_learning_rate
    return warm * (floor + (1 - floor) * 0.5 * (1 + jnp.cos(jnp.pi * progress)))
