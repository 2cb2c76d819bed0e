"""Recordings that go on after the motion has come to rest."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from dhn.files.foreign.recording import Run

_STILL = 1.5  # times the noise: rows that vary by less show no motion
_MOVES = 10.0  # times the noise: a run that varies by less never moved
_MANY = 0.1  # share of a run; a shorter rest does no harm
_BLOCK = 0.01  # share of a run over which the size of a motion is averaged
_NAMED = 3  # runs that a warning lists


def rest_warnings(runs: Sequence[Run], noise: Float[np.ndarray, " d"]) -> list[str]:
    """A warning if runs end with a rest.

    Parts of a split that lie in it have nothing to choose or to test by, and the dry friction that
    holds a pendulum at rest is not the one that slows it.

    Arguments:
        runs: All rows, on the clock of their file.
        noise: Standard deviation of each coordinate's noise.

    Returns:
        One warning or none.
    """
    ends = [(run.id, end) for run in runs if (end := _end_of_motion(run, noise)) is not None]
    if not ends:
        return []
    listed = ", ".join(f"{label} after {end:.4g} s" for label, end in ends[:_NAMED])
    more = f" and {len(ends) - _NAMED} more runs" if len(ends) > _NAMED else ""
    return [
        f"no motion beyond the noise: {listed}{more}; rows at rest teach and test nothing, end "
        f"before them (to {max(end for _, end in ends):.4g})"
    ]


def _end_of_motion(run: Run, noise: np.ndarray) -> float | None:
    """The time from which on nothing moves."""
    run = run.complete()
    fewest, block = int(_MANY * len(run)), max(int(_BLOCK * len(run)), 4)
    if fewest < block or not (run.q.std(0) > _MOVES * noise).any():
        return None
    away = np.cumsum((run.q - run.q[-fewest:].mean(0))[::-1] ** 2, axis=0)
    size = np.sqrt((away[block:] - away[:-block]) / block)  # about the rest, block by block
    still = int(np.argmax((size > _STILL * noise).any(-1)))
    return float(run.t[len(run) - still]) if still > fewest else None
