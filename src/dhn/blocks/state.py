"""`StateBlock`: a run of states, coordinates and momenta side by side."""

from typing import Any, NamedTuple

from jaxtyping import Array, Bool, Float


class StateBlock(NamedTuple):
    """Coordinates and momenta of consecutive states; leading axes are batch axes.

    JAX arrays inside compiled functions, NumPy arrays on the host.
    """

    q: Float[Any, "*batch time d"]
    p: Float[Any, "*batch time d"]

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
