"""Warnings about imports that look mistaken: units, clocks, angles, columns."""

import numpy as np

from dhn.files.foreign.derivative import differentiate
from dhn.files.foreign.grid import Plan, stretches
from dhn.files.foreign.options import TIME_UNITS, ImportOptions
from dhn.files.foreign.run import Run

_SLOWEST, _FASTEST = 5.0, 1e-6  # s between rows beyond which a clock's unit is doubtful
_USUAL = (1e-4, 1.0)  # s between rows of most instruments
_TURNED = 0.75 * np.pi  # rad from zero to the mean of an angle that counts from the top
_GATHERED = 0.5  # length of the mean of unit vectors above which an angle stays on one side


def clock_warnings(step: float, stated: bool, whole: bool) -> list[str]:
    """Times whose unit is probably not what it was taken for.

    Arguments:
        step: Sampling step in seconds.
        stated: Whether the unit was stated rather than taken to be seconds.
        whole: Whether all times are whole numbers.
    """
    rows = f"times advance by {step:.6g} s a row"
    if step < _FASTEST:
        return [f"{rows}: is the unit of the times right?"]
    if stated:
        return []
    fits = [x for x in ("ms", "us", "ns") if _USUAL[0] <= step * TIME_UNITS[x] <= _USUAL[1]]
    if step >= _SLOWEST and fits:
        return [f"{rows}, read as seconds: if they are in {' or '.join(fits)}, set the time unit"]
    if whole and abs(step - 1) < 1e-9:
        return [f"{rows}, in whole numbers: if they count frames, give the sampling rate instead"]
    return []


def velocity_warnings(runs: list[Run], plan: Plan, names: tuple[str, ...]) -> list[str]:
    """Measured velocities that are not the derivative of the positions: units or columns mixed."""
    found = []
    for k, name in enumerate(names):
        cross, square, other = 0.0, 0.0, 0.0
        for run in runs:
            for part in stretches(run.t, plan.step):
                t, v = run.t[part], run.v[part][:, k]  # type: ignore[index]
                if len(t) < 12:
                    continue
                _, slope, edge = differentiate(t, run.q[part][:, k], t, plan.filters[k])
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
    runs: list[Run],
    names: tuple[str, ...],
    angles: tuple[bool, ...],
    degrees: tuple[bool, ...],
    options: ImportOptions,
) -> list[str]:
    """Coordinates that never move, jump like wrapped angles, or have another unit or zero."""
    found = []
    for k, name in enumerate(names):
        values = [x.q[np.isfinite(x.q[:, k]), k] for x in runs]
        whole = np.concatenate(values)
        span = np.ptp(whole)
        if span == 0:
            found.append(f"{name} never changes: is it the right column?")
        jumps = np.concatenate([np.diff(x) for x in values])
        for turn, kind in ((2 * np.pi, "an angle"), (360.0, "an angle in degrees")):
            wrapped = np.abs(np.abs(jumps) - turn) < 0.1 * turn
            if not angles[k] and wrapped.any() and span < 1.05 * turn:
                found.append(f"{name} jumps by a full turn: if it is {kind}, declare it as one")
        if degrees[k] and 0 < np.degrees(span) < 2.1 * np.pi:
            found.append(
                f"{name} covers only {np.degrees(span):.3g} degrees: if the file is in radians, "
                f"do not declare degrees"
            )
        if angles[k]:
            zero = options.zero[k] if options.zero else 0.0
            found += _rest_warning(name, whole, degrees[k], zero)
    return found


def _rest_warning(name: str, q: np.ndarray, degrees: bool, zero: float) -> list[str]:
    mean = np.mean(np.exp(1j * q))
    if abs(mean) < _GATHERED or abs(np.angle(mean)) < _TURNED:
        return []
    return [
        f"{name} moves about {np.angle(mean):.3g} rad, half a turn from zero: if it is a pendulum "
        f"that hangs there at rest, set zero to {zero + (180 if degrees else np.pi):.9g}"
    ]
