"""Time step, noise and filters of an import, estimated on the training part alone."""

import dataclasses
from typing import final

import numpy as np

from dhn.files.foreign.derivative import Filter, choose_filter
from dhn.files.foreign.grid import Plan, sampling_step, stretches
from dhn.files.foreign.local import local_fit
from dhn.files.foreign.noise import noise_level
from dhn.files.foreign.options import ImportOptions
from dhn.files.foreign.run import Run


@final
@dataclasses.dataclass(frozen=True)
class Levels:
    """Noise of what will be in the trajectories, and where velocities come from."""

    q: np.ndarray
    v: np.ndarray
    p: np.ndarray | None
    velocities: str
    velocity_from_data: bool
    filters: tuple[Filter, ...]


def make_plan(runs: list[Run], options: ImportOptions) -> tuple[Plan, Levels]:
    """From the complete rows of the training part, so that nothing depends on the test part."""
    runs = [x.complete() for x in runs]
    step = sampling_step([x.t for x in runs])
    dt = options.dt or step
    pieces = [(run, part) for run in runs for part in stretches(run.t, step)]
    times = [run.t[part] for run, part in pieces]
    d = runs[0].q.shape[1]

    def columns(key: str, k: int) -> list[np.ndarray]:
        return [getattr(run, key)[part][:, k] for run, part in pieces]

    def level(key: str) -> np.ndarray:
        return np.array([noise_level(times, columns(key, k)) for k in range(d)])

    raw = level("q")
    measured_v = runs[0].v is not None
    measured_p = runs[0].p is not None
    derive = not measured_v and not measured_p and not options.positions_only
    filters = tuple(choose_filter(times, columns("q", k), raw[k]) for k in range(d))
    q = raw * _gain(times, filters) if options.smooth else raw
    velocity_filters: tuple[Filter, ...] = ()
    if measured_v:
        v = level("v")
        velocity_filters = tuple(choose_filter(times, columns("v", k), v[k]) for k in range(d))
        v = v * _gain(times, velocity_filters) if options.smooth else v
        described = "measured" + (", smoothed" if options.smooth else "")
    else:
        v = np.array([x.error for x in filters])
        fits = sorted({f"degree {x.order} over {x.window} samples" for x in filters})
        described = f"local polynomials, {' and '.join(fits)}, chosen by the noise"
    if not measured_v and not derive:
        v, described = np.full(d, np.nan), "none"
    p = level("p") if measured_p else None
    plan = Plan(step, dt, filters, velocity_filters, options.smooth, derive, options.keep_times)
    return plan, Levels(q, v, p, described, measured_v, filters)


def _gain(times: list[np.ndarray], filters: tuple[Filter, ...]) -> np.ndarray:
    """How much of the noise a smoothed value keeps, in the middle of the longest stretch."""
    t = max(times, key=len)
    middle = t[len(t) // 2 :][:1]
    return np.array([local_fit(t, t, middle, x.window, x.order)[1][0, 0] for x in filters])
