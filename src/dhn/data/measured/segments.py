"""Long runs into trajectories: cutting, dividing by time, and who shares a latent code."""

import itertools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from dhn.data.measured.grid import Gridded
from dhn.data.measured.run import Run
from dhn.data.trajectories import Trajectories

CODES = "codes"
"""Entry of `Trajectories.meta`: "own", "run" or "all"."""
SEGMENT = "/seg"
"""Stands between a run's id and the number of a segment in it: `run0/seg3`."""


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


def run_of(id: str) -> str:
    """`run0/seg3` -> `run0`."""
    return id.rpartition(SEGMENT)[0] or id


def is_measured(data: Trajectories) -> bool:
    """Whether the data come from `dhn import`."""
    return CODES in data.meta


def code_groups(data: Trajectories) -> Int[np.ndarray, " n"]:
    """Row of the codebook that each trajectory uses: 0, 1, ... in order of appearance.

    Trajectories that nobody said anything about have a code of their own.
    """
    shared = data.meta.get(CODES, "own")
    if shared == "all":
        return np.zeros(len(data), dtype=np.int64)
    labels = [run_of(x) if shared == "run" else x for x in data.ids]
    order = {label: k for k, label in enumerate(dict.fromkeys(labels))}
    return np.array([order[x] for x in labels], dtype=np.int64)
