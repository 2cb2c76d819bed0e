"""From rows to states: at their own times, or on a uniform grid.

Without a time step the rows stay as they were measured. If their times are those of a regular
clock, lost rows become states without numbers; else every row keeps its own time.

With a time step the rows are brought onto that grid, without claiming more than was measured. A
grid state is *copied* where a measurement lies on it (to 1e-6 of a step), *resampled* where the
nearest measurement is at most half a step away (half a sampling step or half a grid step, whichever
is less), *interpolated* where it is further off but inside a stretch without holes, and *missing*
inside a hole (three and a half sampling steps or more). The first two are `known`.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import final

import numpy as np
from jaxtyping import Float, Int

from dhn.errors import UserError
from dhn.files.foreign.options import FASTEST, SLOWEST, ImportOptions
from dhn.files.foreign.recording import COPIED, INTERPOLATED, MISSING, RESAMPLED, Run
from dhn.trajectories.noise_level import noise_level
from dhn.trajectories.segments import SEGMENT

COPY = 1e-6  # of a grid step: a measurement this near is taken as it is
REGULAR = 1e-3  # of a sampling step: times this near to a regular clock's are taken as its own
_DECIMALS = 9  # of written times, at most
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
    first, last = (
        np.ceil((t[0] - anchor) / dt - _OUTSIDE),
        np.floor((t[-1] - anchor) / dt + _OUTSIDE),
    )
    states = last - first + 1
    if not states <= _ROOM * len(t) + 1000:  # it may be infinite
        i = int(np.argmax(np.diff(t)))
        raise UserError(
            f"{place}: time jumps from {t[i]:.10g} to {t[i + 1]:.10g}, "
            f"{states:.6g} steps of {dt:.4g} for {len(t)} rows; mend the times (a change of "
            f"unit?), give a larger time step (dt), or cut the run there (gap)."
        )
    return np.arange(int(first), int(max(last, first)) + 1)


def is_regular(times: Sequence[Float[np.ndarray, " _"]], step: float) -> bool:
    """Whether all times are those of one clock with this step, up to the rounding of decimals."""
    t = np.concatenate(times)
    written = next(
        (k for k in range(_DECIMALS) if np.allclose(t * 10**k, np.round(t * 10**k), 0, 1e-3)), None
    )
    # Half a unit of the last decimal at both ends of an interval.
    rounding = 0.0 if written is None else 1.02 * 10.0**-written
    if rounding > 0.5 * step:
        rounding = 0.0
    for one in times:
        off = (one - one[0]) / step
        if np.abs(off - np.round(off)).max() > max(REGULAR, rounding / step):
            return False
    return True


def nearest(t: Float[np.ndarray, " N"], at: Float[np.ndarray, " M"]) -> Int[np.ndarray, " M"]:
    """Index of the sample nearest to each time of `at`, the earlier of two."""
    right = np.clip(np.searchsorted(t, at), 0, len(t) - 1)
    left = np.maximum(right - 1, 0)
    return np.where(np.abs(t[left] - at) <= np.abs(t[right] - at), left, right)


def interpolate(
    t: Float[np.ndarray, " N"], x: Float[np.ndarray, "N d"], at: Float[np.ndarray, " M"]
) -> Float[np.ndarray, "M d"]:
    """A cubic spline; where times are too uneven for one, cubics without overshoot."""
    if len(t) < 4:
        return np.stack([np.interp(at, t, column) for column in x.T], axis=-1)
    from scipy.interpolate import CubicSpline, PchipInterpolator

    steps = np.diff(t)
    if steps.min() >= 0.25 * np.median(steps):
        return CubicSpline(t, x)(at)
    # A spline would swing between noisy samples that lie close together.
    return np.asarray(PchipInterpolator(t, x)(np.clip(at, t[0], t[-1])))


@final
@dataclasses.dataclass(frozen=True)
class Plan:
    """How runs become states; settled on the training part alone."""

    step: float
    """The sampling step of the data."""
    dt: float
    own_times: bool
    """Whether states stay at the times of the rows, because no regular clock made them."""
    resample: bool
    """Whether the user asked for a grid of another step."""
    noise: Float[np.ndarray, "2 d"]
    """Standard deviations of q and of p (or v); NaN where there is no such number."""


def make_plan(runs: list[Run], everything: list[Run], options: ImportOptions) -> Plan:
    """Time step and noise, from the complete rows of the training part `runs`."""
    step = sampling_step([x.t for x in runs])
    pieces = [(run, part) for run in runs for part in stretches(run.t, step)]
    times = [run.t[part] for run, part in pieces]

    def noise(key: str) -> Float[np.ndarray, " d"]:
        if getattr(runs[0], key) is None:
            return np.full(runs[0].q.shape[1], np.nan)
        columns = [getattr(run, key)[part].T for run, part in pieces]
        return np.array([noise_level(times, x) for x in zip(*columns, strict=True)])

    if not 1 / FASTEST <= step <= 1 / SLOWEST:
        raise UserError(
            f"rows are {step:.3g} s apart, and {1 / FASTEST:g} to {1 / SLOWEST:g} s are possible; "
            f"is the time column (or the file's own rate) the right one, and its unit?"
        )
    resample = options.dt is not None
    return Plan(
        step=step,
        dt=options.dt or step,
        own_times=not resample and not is_regular([x.t for x in everything], step),
        resample=resample,
        noise=np.stack([noise("q"), noise("v" if runs[0].p is None else "p")]),
    )


def to_states(run: Run, plan: Plan, anchor: float, after: int | None = None) -> Run:
    """The states of a run: at its own times, or at `anchor + k dt` with k > `after`."""
    if plan.own_times:
        return dataclasses.replace(run, kind=np.where(_measured(run), COPIED, MISSING))
    k = grid_indices(run.t, anchor, plan.dt, f"run {run.id!r}")
    k = k if after is None else k[k > after]
    if plan.resample:
        return _resampled(run.complete(), plan, anchor + k * plan.dt)
    return _at_ticks(run, plan, anchor, k)


def _measured(run: Run) -> np.ndarray:
    """(N,) rows in which something was measured."""
    arrays = [x for x in (run.q, run.v, run.p) if x is not None]
    return np.any([np.isfinite(x).any(-1) for x in arrays], axis=0)


def _at_ticks(run: Run, plan: Plan, anchor: float, k: Int[np.ndarray, " M"]) -> Run:
    """One state a tick of the clock; ticks without a row hold no number."""
    place = np.round((run.t - anchor) / plan.dt).astype(np.int64) - (k[0] if len(k) else 0)
    inside = (place >= 0) & (place < len(k))
    kind = np.full(len(k), MISSING)
    kind[place[inside]] = np.where(_measured(run)[inside], COPIED, MISSING)

    def spread(x: np.ndarray | None) -> np.ndarray | None:
        if x is None:
            return None
        states = np.full((len(k), x.shape[1]), np.nan)
        states[place[inside]] = x[inside]
        return states

    q, v, p = (spread(x) for x in (run.q, run.v, run.p))
    assert q is not None  # a run has positions
    return Run(run.id, anchor + k * plan.dt, q, v, p, run.lengths, kind=kind)


def _resampled(run: Run, plan: Plan, at: Float[np.ndarray, " M"]) -> Run:
    """`run`, whose rows are complete, at the times `at`."""
    arrays = {
        key: np.full((len(at), run.q.shape[1]), np.nan)
        for key in ("q", "v", "p")
        if getattr(run, key) is not None
    }
    kind = np.full(len(at), MISSING)
    reach = 0.5 * min(plan.dt, plan.step) * (1 + 1e-9)
    for part in stretches(run.t, plan.step):
        t = run.t[part]
        # Two stretches lie too far apart to reach the same state.
        low, high = t[0] - _OUTSIDE * plan.dt, t[-1] + _OUTSIDE * plan.dt
        rows = np.flatnonzero((at >= low) & (at <= high) & (kind == MISSING))
        if not len(rows):
            continue
        here = at[rows]
        closest = nearest(t, here)
        off = np.abs(t[closest] - here)
        exact = off <= COPY * plan.dt
        kind[rows] = np.where(exact, COPIED, np.where(off <= reach, RESAMPLED, INTERPOLATED))
        for key, array in arrays.items():
            source = getattr(run, key)[part]
            array[rows] = np.where(exact[:, None], source[closest], interpolate(t, source, here))
    q, v, p = (arrays.get(key) for key in ("q", "v", "p"))
    assert q is not None  # a run has positions
    return Run(run.id, at, q, v, p, run.lengths, kind=kind)


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
