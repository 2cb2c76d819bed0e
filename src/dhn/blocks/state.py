"""`StateBlock`: a run of states, coordinates and momenta side by side."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float

Block = Float[Array, "n b d"]
"""Coordinates or momenta of `n` blocks of `b` states, as networks and Hamiltonians take them."""
Code = Float[Array, "n k"]
"""One latent code for each of `n` windows or trajectories."""
Codes = Float[np.ndarray, "n k"]
"""The same on the host."""


class StateBlock(NamedTuple):
    """Coordinates and momenta of consecutive states; leading axes are batch axes.

    JAX arrays inside compiled functions, NumPy arrays on the host.
    """

    q: Float[Any, "*batch time d"]
    p: Float[Any, "*batch time d"]

    @classmethod
    def of(cls, states: Any) -> "StateBlock":
        """From states `[q, p]`, which stand along the last axis (2d)."""
        d = states.shape[-1] // 2
        return cls(states[..., :d], states[..., d:])

    def at(self, times: slice) -> "StateBlock":
        """The states at these positions of the time axis."""
        return StateBlock(self.q[..., times, :], self.p[..., times, :])


class Known(NamedTuple):
    """Which q-tokens and which p-tokens of a window are known; True is known."""

    q: Bool[Array, "*batch time"]
    p: Bool[Array, "*batch time"]


class NoiseLevel(NamedTuple):
    """The noise level of every q-token and p-token of a window: 0 is clean, 1 is pure noise."""

    q: Float[Array, "*batch time"]
    p: Float[Array, "*batch time"]

    def at(self, times: slice) -> "NoiseLevel":
        return NoiseLevel(self.q[..., times], self.p[..., times])
