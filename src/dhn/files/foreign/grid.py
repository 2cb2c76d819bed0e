"""Onto a uniform grid of times, without claiming more than was measured.

A grid state is *copied* where a measurement lies on it (to 1e-6 of a step), *resampled* where the
nearest measurement is at most half a step away (half a sampling step or half a grid step,
whichever is less), *interpolated* where it is further off but inside a stretch without holes, and
*missing* inside a hole (three and a half sampling steps or more). The first two are `known`.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from dhn.errors import UserError
from dhn.files.foreign.derivative import Filter, differentiate
from dhn.files.foreign.local import local_fit
from dhn.files.foreign.run import Run

COPY = 1e-6
HOLE = 3.5
_OUTSIDE = 0.1  # of a grid step: how far a state may lie before the first measurement of a stretch
_ROOM = 50  # a grid with this many times more states than rows comes from a wrong time column


def sampling_step(times: Sequence[Float[np.ndarray, " _"]]) -> float:
    """The step of the clock behind the times: rounding, jitter and holes do not move it."""
    steps = np.concatenate([np.diff(t) for t in times])
    usual = float(np.median(steps))
    # Each step is a whole number of clock ticks; the tick follows by least squares over all.
    ticks = np.maximum(np.round(steps / usual), 1)
    regular = np.abs(steps / usual - ticks) < 0.25
    if regular.mean() < 0.9:
        return usual
    near = ticks <= HOLE
    return float(steps[near & regular].sum() / ticks[near & regular].sum())


def stretches(t: Float[np.ndarray, " N"], step: float) -> list[slice]:
    """Parts of a run without holes."""
    starts = [0, *(np.flatnonzero(np.diff(t) >= HOLE * step) + 1).tolist(), len(t)]
    return [slice(a, b) for a, b in itertools.pairwise(starts)]


def grid_indices(
    t: Float[np.ndarray, " N"], anchor: float, dt: float, place: str = "this run"
) -> Int[np.ndarray, " M"]:
    """Whole numbers k such that `anchor + k dt` covers the times."""
    first = int(np.ceil((t[0] - anchor) / dt - _OUTSIDE))
    last = int(np.floor((t[-1] - anchor) / dt + _OUTSIDE))
    if last - first + 1 > _ROOM * len(t) + 1000:
        i = int(np.argmax(np.diff(t)))
        raise UserError(
            f"{place}: time jumps from {t[i]:.10g} to {t[i + 1]:.10g}, {last - first + 1} steps of "
            f"{dt:.4g} for {len(t)} rows; mend the times (a change of unit?), give a larger "
            f"time step (dt), or cut the run there (gap)."
        )
    return np.arange(first, max(last, first) + 1)


def interpolate(
    t: Float[np.ndarray, " N"], x: Float[np.ndarray, "N d"], at: Float[np.ndarray, " M"]
) -> Float[np.ndarray, "M d"]:
    """A cubic spline; where times are too uneven for one, local cubic fits."""
    if len(t) < 4:
        return np.stack([np.interp(at, t, column) for column in x.T], axis=-1)
    steps = np.diff(t)
    if steps.min() >= 0.25 * np.median(steps):
        from scipy.interpolate import CubicSpline

        return CubicSpline(t, x)(at)
    # A spline would swing between noisy samples that lie close together.
    return np.stack([local_fit(t, column, at, 7, 3)[0][0] for column in x.T], axis=-1)


@final
@dataclasses.dataclass(frozen=True)
class Gridded:
    """One run on the grid; `kind` is 0 missing, 1 interpolated, 2 resampled, 3 copied."""

    id: str
    t: Float[np.ndarray, " M"]
    q: Float[np.ndarray, "M d"]
    v: Float[np.ndarray, "M d"] | None
    p: Float[np.ndarray, "M d"] | None
    kind: Int[np.ndarray, " M"]
    uncertain: Bool[np.ndarray, " M"]
    """Computed velocities near an end of a stretch."""
    lengths: np.ndarray | None = None

    @property
    def known(self) -> Bool[np.ndarray, " M"]:
        return (self.kind >= 2) & ~self.uncertain

    def __len__(self) -> int:
        return len(self.t)

    def take(self, index: slice | np.ndarray, id: str | None = None) -> "Gridded":
        """The states at `index`."""
        names = ("t", "q", "v", "p", "kind", "uncertain")
        fields = {k: getattr(self, k) for k in names}
        picked = {k: None if x is None else x[index] for k, x in fields.items()}
        return dataclasses.replace(self, id=id or self.id, **picked)


@final
@dataclasses.dataclass(frozen=True)
class Plan:
    """How runs come onto the grid; settled on the training part alone."""

    step: float
    """The sampling step of the data."""
    dt: float
    filters: tuple[Filter, ...]
    """One a coordinate, for velocities that were not measured and for smoothing."""
    velocity_filters: tuple[Filter, ...] = ()
    smooth: bool = False
    derive: bool = True
    """Whether velocities are to be computed."""
    keep_times: bool = False
    """Whether states stay at the times of the rows, instead of a uniform grid."""


def to_grid(run: Run, plan: Plan, anchor: float, after: int | None = None) -> Gridded:
    """`run` at the times `anchor + k dt`, with k > `after`, or at its own times."""
    if plan.keep_times:
        return _at_own_times(run, plan)
    k = grid_indices(run.t, anchor, plan.dt, f"run {run.id!r}")
    k = k if after is None else k[k > after]
    return _evaluate(run, plan, anchor + k * plan.dt)


def _at_own_times(run: Run, plan: Plan) -> Gridded:
    """One state a row; what is missing in a row stays missing."""
    found = _evaluate(run.complete(), plan, run.t)
    whole = np.isin(run.t, run.complete().t)
    blank = np.full(run.q.shape, np.nan)
    measured = {"q": run.q, "v": run.v, "p": run.p}
    arrays = {k: getattr(found, k) for k in measured}
    for key, array in arrays.items():
        if array is not None:
            source = blank if measured[key] is None else measured[key]
            arrays[key] = np.where(whole[:, None], array, source)
    return dataclasses.replace(found, kind=np.where(whole, found.kind, 0), **arrays)


def _evaluate(run: Run, plan: Plan, at: Float[np.ndarray, " M"]) -> Gridded:
    """`run`, whose rows are complete, at the times `at`."""
    states, d = len(at), run.q.shape[1]
    q = np.full((states, d), np.nan)
    v = np.full((states, d), np.nan) if plan.derive or run.v is not None else None
    p = None if run.p is None else np.full((states, d), np.nan)
    kind = np.zeros(states, dtype=np.int64)
    uncertain = np.zeros(states, dtype=bool)
    reach = 0.5 * min(plan.dt, plan.step) * (1 + 1e-9)
    for part in stretches(run.t, plan.step):
        t = run.t[part]
        # Two stretches lie too far apart to reach the same state.
        low, high = t[0] - _OUTSIDE * plan.dt, t[-1] + _OUTSIDE * plan.dt
        rows = np.flatnonzero((at >= low) & (at <= high) & (kind == 0))
        if not len(rows):
            continue
        here = at[rows]
        nearest = _nearest(t, here)
        off = np.abs(t[nearest] - here)
        exact = off <= COPY * plan.dt
        kind[rows] = np.where(exact, 3, np.where(off <= reach, 2, 1))
        for array, source in ((q, run.q), (v, run.v), (p, run.p)):
            if array is not None and source is not None:
                values = interpolate(t, source[part], here)
                array[rows] = np.where(exact[:, None], source[part][nearest], values)
        if plan.derive or plan.smooth:
            for c, chosen in enumerate(plan.filters):
                value, slope, edge = differentiate(t, run.q[part][:, c], here, chosen)
                if plan.smooth:
                    q[rows, c] = value
                if plan.derive and v is not None:
                    v[rows, c] = slope
                    uncertain[rows] |= edge
        if plan.smooth and run.v is not None and v is not None:
            for c, chosen in enumerate(plan.velocity_filters):
                v[rows, c] = differentiate(t, run.v[part][:, c], here, chosen)[0]
    if v is not None:
        uncertain |= (kind > 0) & ~np.isfinite(v).all(-1)
    return Gridded(run.id, at, q, v, p, kind, uncertain, run.lengths)


def _nearest(t: np.ndarray, at: np.ndarray) -> np.ndarray:
    right = np.clip(np.searchsorted(t, at), 1, max(len(t) - 1, 1))
    right = np.minimum(right, len(t) - 1)
    left = np.maximum(right - 1, 0)
    return np.where(np.abs(t[left] - at) <= np.abs(t[right] - at), left, right)
