"""What the trainable interpolation baselines share: filling in states between known ones."""

import abc

import jax.numpy as jnp
from jaxtyping import Array, Float

from dhn.blocks import Code, StateBlock
from dhn.models.contract import AbstractModel, ModelContext


class AbstractUpsampler(AbstractModel):
    """A model that refines a grid of states."""

    @property
    @abc.abstractmethod
    def uses_code(self) -> bool:
        """Whether a code has any effect on the states between."""

    @abc.abstractmethod
    def upsample(self, sparse: StateBlock, z: Code, factor: int) -> StateBlock:
        """From `m` states to `(m - 1) * factor + 1`; the known ones come back bit for bit."""


def as_upsampler(model: AbstractModel) -> AbstractUpsampler | None:
    """The same model, if it refines a grid of states in one pass."""
    return model if isinstance(model, AbstractUpsampler) else None


def linear_upsample(x: Float[Array, "n m d"], factor: int) -> Float[Array, "n T d"]:
    """Straight lines between neighbouring states."""
    n, m, d = x.shape
    fraction = (jnp.arange(factor, dtype=x.dtype) / factor)[:, None]
    between = x[:, :-1, None] * (1 - fraction) + x[:, 1:, None] * fraction
    return jnp.concatenate([between.reshape(n, (m - 1) * factor, d), x[:, -1:]], axis=1)


def bend(context: ModelContext, steps: int) -> float:
    """Typical distance of a trajectory from its chord over so many grid steps.

    An oscillation of amplitude one that changes by `c` over the lag bends away from the chord by
    about `c²/4` where it bends most.
    """
    return min(1.0, context.change(steps) ** 2 / 4)
