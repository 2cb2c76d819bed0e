"""Segments of one run, and which trajectories share a latent code."""

import numpy as np
from jaxtyping import Int

from dhn.trajectories.container import Trajectories

CODES = "codes"
"""Entry of `Trajectories.meta`: "own", "run" or "all"."""
SEGMENT = "/seg"
"""Stands between a run's id and the number of a segment in it: `run0/seg3`."""


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
