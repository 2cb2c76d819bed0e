"""The forecasts by which error bands are set: of states that training did not see."""

import numpy as np

from dhn.estimator.artifact import Artifact
from dhn.models.contract import WindowShape
from dhn.training.prepare import usable_states
from dhn.training.validation import choose_split
from dhn.trajectories.container import Trajectories
from dhn.trajectories.origins import origins
from dhn.trajectories.segments import is_measured

OBSERVED = 16
"""States that a forecast is usually made from."""
FORECASTS = 64
"""So many are enough."""


def held_out(made: Artifact, train: Trajectories) -> Trajectories | None:
    """The trajectories that training kept aside, if it did."""
    known = usable_states(train)
    split = choose_split(
        known, made.model.training_shapes, made.training.validation, made.training.seed
    )
    rows = np.flatnonzero(split.held_out & known.all(1))
    return train[rows] if len(rows) else None


def rehearsal(
    held: Trajectories, shapes: tuple[WindowShape, ...], observe: int | None = None
) -> tuple[Trajectories, int] | None:
    """Windows to be forecast, and how many of their states are seen; None if they are too short.

    Long measured runs are forecast from many starting points, others from their beginning. The
    last window of the model, on which a code can be fitted, is known in all of them.
    """
    start_from = max(shape.reach for shape in shapes) + 1
    observe = max(start_from, observe or min(OBSERVED, held.states // 4))
    if observe >= held.states:
        return None
    if is_measured(held):
        ahead = max(1, 2 * (held.states - observe) // 3)
        return origins(held, observe, ahead, start_from=start_from, most=FORECASTS), observe
    known = np.asarray(held.known)[:, observe - start_from : observe].all(1)
    return (held[np.flatnonzero(known)[:FORECASTS]], observe) if known.any() else None
