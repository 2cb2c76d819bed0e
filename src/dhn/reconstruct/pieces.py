"""A long run as overlapping pieces, and the pieces joined to one run again.

One path from the first state to the last loses the phase after many periods: the smallest error of
a frequency grows with time. Pieces of a few periods do not, and where they overlap they are faded
into each other.
"""

import numpy as np
from jaxtyping import Bool, Float, Int

ENOUGH = 4
"""Known states that a piece must have."""


def piece_starts(known: Bool[np.ndarray, "n T"], length: int) -> tuple[Int[np.ndarray, " m"], int]:
    """First states of pieces, and their length: at least `length`, longer where gaps are wide."""
    states = known.shape[1]
    while length < states:
        last = states - length
        starts = np.linspace(0, last, 1 + -(-last // max(length // 2, 1))).round().astype(int)
        counted = np.concatenate([np.zeros((len(known), 1), int), known.cumsum(1)], axis=1)
        if (counted[:, starts + length] - counted[:, starts]).min() >= ENOUGH:
            return starts, length
        length *= 2
    return np.zeros(1, int), states


def cut(x: np.ndarray, starts: Int[np.ndarray, " m"], length: int) -> np.ndarray:
    """(n, T, ...) to (n * m, length, ...), the pieces of one trajectory side by side."""
    return np.concatenate([x[row, None, first : first + length] for row in range(len(x))
                           for first in starts])  # fmt: skip


def join(
    pieces: Float[np.ndarray, "nm length d"], starts: Int[np.ndarray, " m"], states: int
) -> Float[np.ndarray, "n T d"]:
    """The weighted mean of all pieces; a piece weighs least at its ends."""
    length = pieces.shape[1]
    pieces = pieces.reshape(-1, len(starts), *pieces.shape[1:])
    ramp = np.minimum(np.arange(1, length + 1), np.arange(length, 0, -1)).astype(float)[:, None]
    total = np.zeros((len(pieces), states, pieces.shape[-1]))
    weight = np.zeros((states, 1))
    for number, first in enumerate(starts):
        total[:, first : first + length] += ramp * pieces[:, number]
        weight[first : first + length] += ramp
    return total / weight
