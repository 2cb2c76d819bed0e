"""What the training part decides for all: time step, noise, filters; and what looks wrong."""

import dataclasses
from typing import final

import numpy as np

from dhn.files.foreign.derivative import Filter, choose_filter, differentiate
from dhn.files.foreign.grid import Gridded, Plan, sampling_step, stretches
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
    """From the runs of the training part alone, so that nothing is learned from the test part."""
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
    derive = not measured_v and not measured_p
    filters = tuple(choose_filter(times, columns("q", k), raw[k]) for k in range(d))
    q = raw * _gain(times, filters) if options.smooth else raw
    velocity_filters: tuple[Filter, ...] = ()
    if measured_v:
        v = level("v")
        velocity_filters = tuple(choose_filter(times, columns("v", k), v[k]) for k in range(d))
        v = v * _gain(times, velocity_filters) if options.smooth else v
        said = "measured" + (", smoothed" if options.smooth else "")
    else:
        v = np.array([x.error for x in filters])
        fits = sorted({f"degree {x.order} over {x.window} samples" for x in filters})
        said = f"local polynomials, {' and '.join(fits)}, chosen by the noise"
    if not measured_v and not derive:
        said = "none"
    p = level("p") if measured_p else None
    plan = Plan(step, dt, filters, velocity_filters, options.smooth, derive)
    return plan, Levels(q, v, p, said, measured_v, filters)


def _gain(times: list[np.ndarray], filters: tuple[Filter, ...]) -> np.ndarray:
    """How much of the noise a smoothed value keeps, in the middle of the longest stretch."""
    t = max(times, key=len)
    middle = t[len(t) // 2 :][:1]
    return np.array([local_fit(t, t, middle, x.window, x.order)[1][0, 0] for x in filters])


def velocity_warnings(
    runs: list[Run], plan: Plan, levels: Levels, names: tuple[str, ...]
) -> list[str]:
    """Measured velocities that are not the derivative of the positions: units or columns mixed."""
    found = []
    for k, name in enumerate(names):
        cross, square, other = 0.0, 0.0, 0.0
        for run in runs:
            for part in stretches(run.t, plan.step):
                t, v = run.t[part], run.v[part][:, k]  # type: ignore[index]
                if len(t) < 12:
                    continue
                _, slope, edge = differentiate(t, run.q[part][:, k], t, levels.filters[k])
                cross += float(np.sum((slope * v)[~edge]))
                square += float(np.sum(slope[~edge] ** 2))
                other += float(np.sum(v[~edge] ** 2))
        if square == 0 or other == 0:
            continue
        ratio, agreement = cross / square, cross / np.sqrt(square * other)
        if abs(agreement) < 0.8:
            found.append(
                f"the velocity of {name} does not follow its derivative (correlation "
                f"{agreement:.2f}): is it the right column, in the right order?"
            )
        elif abs(ratio - 1) > 0.15:
            why = {57.2958: "degrees against radians", 0.01745: "radians against degrees"}
            why |= {0.001: "time in ms?", 1000.0: "time in ms?", -1.0: "the sign is turned"}
            hint = next((x for y, x in why.items() if abs(ratio / y - 1) < 0.15), "units?")
            found.append(f"the velocity of {name} is {ratio:.3g} times its derivative: {hint}")
    return found


def angle_warnings(
    runs: list[Gridded], names: tuple[str, ...], angles: tuple[bool, ...]
) -> list[str]:
    """Coordinates that jump like wrapped angles or never move."""
    found = []
    for k, name in enumerate(names):
        values = [x.q[np.isfinite(x.q[:, k]), k] for x in runs]
        whole = np.concatenate(values)
        if np.ptp(whole) == 0:
            found.append(f"{name} never changes: is it the right column?")
        jumps = np.concatenate([np.diff(x) for x in values])
        for turn, word in ((2 * np.pi, "--angles"), (360.0, "--degrees")):
            wrapped = np.abs(np.abs(jumps) - turn) < 0.1 * turn
            if not angles[k] and wrapped.any() and np.ptp(whole) < 1.05 * turn:
                found.append(f"{name} jumps by a full turn: if it is an angle, say {word}")
    return found
