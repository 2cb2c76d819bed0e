"""Fit mechanics to positions: a start, the likelihood, and groups that validation keeps."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dhn.errors import UserError
from dhn.mechanics.bands import calibrated
from dhn.mechanics.history import held_back
from dhn.mechanics.layout import GROUPS, MOMENT, REST
from dhn.mechanics.model import MechanicalModel
from dhn.mechanics.predicting import Mechanics
from dhn.mechanics.reach import reach
from dhn.mechanics.scoring import drawn
from dhn.mechanics.searching import Candidate, Search
from dhn.mechanics.windows import OBSERVED
from dhn.systems import System
from dhn.trajectories import Trajectories

HELD_BACK = 0.15
"""Share of every run that chooses groups where no validation part is given."""
DIMENSIONS = 6
"""More coordinates than that compile for minutes."""
DRAWS = 8  # of the coefficients, for the widths of bands


def fit_mechanics(
    train: Trajectories,
    validation: Trajectories | None = None,
    *,
    budget: float | None = None,
    progress: Callable[[str], None] | None = None,
    observe: int = OBSERVED,
    systems: str | None = None,
    groups: tuple[str, ...] | None = None,
    system: System | None = None,
    params: Mapping[str, Any] | None = None,
) -> MechanicalModel:
    """Learn mass matrix, potential, friction, sensor and noise from positions alone.

    Arguments: train: runs with positions q, NaN where lost, at their own times; validation: later
        parts of the same runs, or other runs, that choose what is kept (by default the last
        15 % of every run); budget: seconds, after which no further group is tried; progress:
        called with a line for every stage; observe: positions that a forecast will start from;
        systems: "one" for all runs, "each" for coefficients of their own, by default whichever
        validation prefers; groups: names of `GROUPS` that may be added, by default all;
        system: whose equations take the place of mass matrix and potential; params: of it, a
        number that holds a parameter or a pair that bounds it.
    Returns: the fitted model.
    """
    begun = time.monotonic()
    _check(train, systems, groups, system)
    if validation is None:
        train, validation = held_back(train, HELD_BACK)
    search = Search(
        train, validation, observe, begun + (np.inf if budget is None else budget),
        progress or (lambda _: None), system, params or {},
    )  # fmt: skip
    best = search.first(systems)
    best = search.forward(best, tuple(x for x in GROUPS if groups is None or x in groups))
    if groups is None or REST in groups:
        best = search.rest(best)
    best = search.last(search.apart(best, systems))
    if groups is None or REST in groups:
        best = search.rest(best, own=True)
    if groups is None or MOMENT in groups:
        best = search.moment(best)
    return _model(search, best, time.monotonic() - begun)


def _model(search: Search, best: Candidate, seconds: float) -> MechanicalModel:
    """The result with its bands."""
    mechanics = Mechanics(
        search.layout, search.scale, best.scored.theta, search.start.width, search.wandering
    )
    measured, fitted = best.scored.measured, best.scored.entries.size
    asked = (search.windows, search.systems(best.each, search.windows))
    bands = calibrated(
        mechanics,
        asked,
        (search.training, search.systems(best.each, search.training)),
        float(np.sqrt((measured + fitted) / max(measured - fitted, 1))),
        drawn(best.scored, search.layout, DRAWS),
    )
    columns = best.scored.entries.columns
    errors = np.zeros_like(best.scored.theta)
    for run in range(len(errors)):
        places = best.scored.entries.places(run)
        errors[run, columns] = np.sqrt(np.diag(best.scored.covariance)[places])
    return MechanicalModel(
        mechanics=mechanics,
        systems=search.names if best.each else (),
        standard_errors=errors,
        bands=bands,
        groups=best.groups,
        stages=tuple(search.stages),
        gated=best.scored.gated,
        measured=best.scored.measured,
        seconds=seconds,
        observed=search.observe,
        valid_until=reach(mechanics, bands, *asked).summary(search.unit),
    )


def _check(
    train: Trajectories, systems: str | None, groups: tuple[str, ...] | None, system: System | None
) -> None:
    if system is not None and system.angle_flags != train.angles:
        raise UserError(
            f"system '{system.name}' has the coordinates {', '.join(system.coordinates)} with the "
            f"angles {', '.join(system.angles) or 'none'}; the data have {', '.join(train.names)} "
            f"with angles={train.angles}. Import them alike."
        )
    if train.dim > DIMENSIONS:
        raise UserError(
            f"mechanics fit up to {DIMENSIONS} coordinates; got {train.dim}. Choose fewer."
        )
    if systems not in (None, "one", "each"):
        raise UserError(f'systems must be "one", "each" or None; got {systems!r}.')
    for name in groups or ():
        if name not in (*GROUPS, REST, MOMENT):
            known = ", ".join((*GROUPS, REST, MOMENT))
            raise UserError(f"there is no group {name!r}; they are {known}.")
