"""Segments of one run, and which trajectories share a latent code."""

import numpy as np
from jaxtyping import Int

from dhn.trajectories.container import Trajectories

SEGMENT = "/seg"
"""Stands between a run's id and the number of a segment in it: `run0/seg3`."""


def run_of(id: str) -> str:
    """`run0/seg3` -> `run0`."""
    return id.rpartition(SEGMENT)[0] or id


def shared_codes(ids: tuple[str, ...], by: str) -> tuple[str, ...]:
    """The field `code_group` for trajectories that share codes by "run", "all" or not ("own").

    Arguments:
        ids: Of the trajectories.
        by: "own", "run" (segments of one run share) or "all".

    Returns:
        One label a trajectory, or nothing if each has its own code.
    """
    if by == "own":
        return ()
    return tuple(run_of(x) if by == "run" else "all" for x in ids)


def code_rows(data: Trajectories) -> Int[np.ndarray, " n"]:
    """Row of the codebook that each trajectory uses: 0, 1, ... in order of appearance."""
    labels = data.code_group or data.ids
    order = {label: k for k, label in enumerate(dict.fromkeys(labels))}
    return np.array([order[x] for x in labels], dtype=np.int64)
