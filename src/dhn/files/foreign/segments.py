"""Long runs into trajectories: cutting, and dividing by time."""

import itertools
from collections.abc import Sequence

import numpy as np

from dhn.files.foreign.grid import Gridded
from dhn.files.foreign.run import Run
from dhn.trajectories.segments import SEGMENT


def cut(run: Gridded, length: int, hop: int) -> tuple[list[Gridded], int, int]:
    """Segments of `length` states, `hop` apart, each with at least half of its states known.

    Also how many segments were left out for lack of measurements, and the states behind the last.
    """
    starts = range(0, len(run) - length + 1, hop)
    found, skipped = [], 0
    for number, start in enumerate(starts):
        segment = run.take(slice(start, start + length), f"{run.id}{SEGMENT}{number}")
        if segment.known.mean() >= 0.5:
            found.append(segment)
        else:
            skipped += 1
    covered = starts[-1] + length if len(starts) else 0
    return found, skipped, len(run) - covered


def divide(run: Run, fractions: Sequence[float]) -> list[Run]:
    """`run` in consecutive pieces of time; every row is in exactly one."""
    inner = run.t[0] + np.cumsum(fractions)[:-1] * (run.t[-1] - run.t[0])
    edges = [0, *np.searchsorted(run.t, inner).tolist(), len(run)]
    return [run.take(np.arange(a, b)) for a, b in itertools.pairwise(edges)]
