"""From rows to a uniform grid of times, without claiming more than was measured.

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
from jaxtyping import Float, Int

from dhn.errors import UserError
from dhn.files.foreign.derivative import (
    Filter,
    choose_filter,
    differentiate,
    local_fit,
    nearest,
    noise_level,
)
from dhn.files.foreign.options import ImportOptions
from dhn.files.foreign.recording import COPIED, INTERPOLATED, MISSING, RESAMPLED, Run
from dhn.trajectories.segments import SEGMENT

COPY = 1e-6  # of a grid step: a measurement this near is taken as it is
HOLE = 3.5  # sampling steps without a row
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
class Plan:
    """How runs come onto the grid; settled on the training part alone."""

    step: float
    """The sampling step of the data."""
    dt: float
    filters: tuple[Filter, ...]
    """One a coordinate, for velocities that were not measured and for smoothing."""
    velocity_filters: tuple[Filter, ...] = ()
    """The same for measured velocities."""
    smooth: bool = False
    derive: bool = True
    """Whether velocities are to be computed."""
    keep_times: bool = False
    """Whether states stay at the times of the rows, instead of a uniform grid."""
    velocities: str = "measured"
    """Where velocities come from, in words."""
    noise: Float[np.ndarray, "2 d"] | None = None
    """Standard deviations of q and of p (or v) on the grid; NaN where there is no such number."""


def make_plan(runs: list[Run], options: ImportOptions) -> Plan:
    """Time step, filters and noise, from the complete rows of the training part `runs`."""
    step = sampling_step([x.t for x in runs])
    pieces = [(run, part) for run in runs for part in stretches(run.t, step)]
    times = [run.t[part] for run, part in pieces]
    dimensions = range(runs[0].q.shape[1])

    def filters_of(key: str) -> tuple[tuple[Filter, ...], np.ndarray]:
        """Filters of q, v or p, and the noise that they leave."""
        columns = [[getattr(run, key)[part][:, k] for run, part in pieces] for k in dimensions]
        noise = np.array([noise_level(times, x) for x in columns])
        found = tuple(choose_filter(times, columns[k], noise[k]) for k in dimensions)
        return found, noise * _gain(times, found) if options.smooth and key != "p" else noise

    filters, q_noise = filters_of("q")
    velocity_filters: tuple[Filter, ...] = ()
    derive = runs[0].v is None and runs[0].p is None and not options.positions_only
    velocities, p_noise = "none", np.full(len(dimensions), np.nan)
    if derive:
        fits = sorted({f"degree {x.order} over {x.window} samples" for x in filters})
        velocities = f"local polynomials, {' and '.join(fits)}, chosen by the noise"
        p_noise = np.array([x.error for x in filters])
    if runs[0].v is not None:
        velocity_filters, p_noise = filters_of("v")
        velocities = "measured, smoothed" if options.smooth else "measured"
    if runs[0].p is not None:
        p_noise = filters_of("p")[1]
    return Plan(
        step, options.dt or step, filters, velocity_filters, options.smooth, derive,
        options.keep_times, velocities, np.stack([q_noise, p_noise]),
    )  # fmt: skip


def _gain(times: list[np.ndarray], filters: tuple[Filter, ...]) -> np.ndarray:
    """How much of the noise a smoothed value keeps, in the middle of the longest stretch."""
    t = max(times, key=len)
    middle = t[len(t) // 2 :][:1]
    return np.array([local_fit(t, t, middle, x.window, x.order)[1][0, 0] for x in filters])


def to_grid(run: Run, plan: Plan, anchor: float, after: int | None = None) -> Run:
    """`run` at the times `anchor + k dt`, with k > `after`, or at its own times."""
    if plan.keep_times:
        return _at_own_times(run, plan)
    k = grid_indices(run.t, anchor, plan.dt, f"run {run.id!r}")
    k = k if after is None else k[k > after]
    return _evaluate(run, plan, anchor + k * plan.dt)


def _at_own_times(run: Run, plan: Plan) -> Run:
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
    return dataclasses.replace(found, kind=np.where(whole, found.kind, MISSING), **arrays)


def _evaluate(run: Run, plan: Plan, at: Float[np.ndarray, " M"]) -> Run:
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
        closest = nearest(t, here)
        off = np.abs(t[closest] - here)
        exact = off <= COPY * plan.dt
        near = np.where(off <= reach, RESAMPLED, INTERPOLATED)
        kind[rows] = np.where(exact, COPIED, near)
        for array, source in ((q, run.q), (v, run.v), (p, run.p)):
            if array is not None and source is not None:
                values = interpolate(t, source[part], here)
                array[rows] = np.where(exact[:, None], source[part][closest], values)
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
    return Run(run.id, at, q, v, p, run.lengths, kind=kind, uncertain=uncertain)


def cut(run: Run, length: int, hop: int) -> tuple[list[Run], int, int]:
    """Segments of `length` states, `hop` apart, each with at least half of its states known.

    Also how many segments were left out for lack of measurements, and the states behind the last.
    """
    starts = range(0, len(run) - length + 1, hop)
    found = [
        run.take(slice(start, start + length), f"{run.id}{SEGMENT}{number}")
        for number, start in enumerate(starts)
    ]
    known = [x for x in found if x.known.mean() >= 0.5]
    covered = starts[-1] + length if len(starts) else 0
    return known, len(found) - len(known), len(run) - covered
