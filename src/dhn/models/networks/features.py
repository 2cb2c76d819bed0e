"""What a network sees of a coordinate: itself, or sine and cosine where it is an angle."""

from typing import final

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


@final
class StateFeatures(eqx.Module):
    """Coordinates as they are, except angles, which enter as sine and cosine.

    H stays a function of the angle, so its derivative still is a generalised force; it only
    becomes periodic. Momenta are never angles.
    """

    periods: tuple[float | None, ...] = eqx.field(static=True)
    """For each coordinate, network units per radian if it enters periodically, else None."""

    @property
    def size(self) -> int:
        """Features per token (momenta are padded to the same number)."""
        return len(self.periods) + sum(unit is not None for unit in self.periods)

    def __call__(self, q: Float[Array, "*batch d"]) -> Float[Array, "*batch f"]:
        if all(unit is None for unit in self.periods):
            return q
        columns = []
        for i, unit in enumerate(self.periods):
            x = q[..., i]
            columns += [x] if unit is None else [jnp.sin(x / unit), jnp.cos(x / unit)]
        return jnp.stack(columns, axis=-1)

    def momenta(self, p: Float[Array, "*batch d"]) -> Float[Array, "*batch f"]:
        padding = self.size - p.shape[-1]
        return p if padding == 0 else jnp.pad(p, [(0, 0)] * (p.ndim - 1) + [(0, padding)])
