"""Coordinates in their units: zero readings, degrees, whole turns."""

import dataclasses

import numpy as np

from dhn.errors import UserError
from dhn.files.foreign.columns import Mapped
from dhn.files.foreign.options import ImportOptions
from dhn.files.foreign.recording import Run

FAR = 1e8
"""A zero reading so many times as large as the others leaves few of their digits."""
EVERY = "all"
"""Stands for all coordinates where angles are named."""


def angle_flags(
    names: tuple[str, ...], mapped: list[Mapped], options: ImportOptions
) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    """Which coordinates are angles, and which of them come in degrees."""
    unknown = [x for x in options.angles if x not in names and x != EVERY]
    if unknown:
        raise UserError(
            f"there is no coordinate {unknown[0]!r} to be an angle; they are {', '.join(names)} "
            f"(or 'all')."
        )
    stated = mapped[0].degrees
    if options.angles:
        angles = tuple(x in options.angles or EVERY in options.angles for x in names)
    elif options.degrees:
        angles = (True,) * len(names)
    else:
        angles = tuple(a or b for a, b in zip(mapped[0].angles, stated, strict=True))
    degrees = angles if options.degrees else stated
    return angles, degrees


def coordinate_units(
    first: Mapped,
    names: tuple[str, ...],
    angles: tuple[bool, ...],
    degrees: tuple[bool, ...],
) -> dict[str, str]:
    """Units of the trajectories: radians for angles, else what the first file states."""
    units = {"t": "s"}
    for old, new, angle, degree in zip(first.names, names, angles, degrees, strict=True):
        if angle or degree:
            units |= {new: "rad", f"v_{new}": "rad/s"}
        for prefix in ("", "v_", "p_"):
            unit = first.units.get(prefix + old)
            if unit and not angle and not degree:
                units[prefix + new] = unit
    return units


def radians(run: Run, degrees: tuple[bool, ...], first: Mapped) -> Run:
    """Degrees to radians, in velocities too unless the file states them in radians."""
    if not any(degrees):
        return run
    factor = np.where(degrees, np.pi / 180, 1.0)
    plain = [first.units.get(f"v_{x}", "").casefold().startswith("rad") for x in first.names]
    v = None if run.v is None else run.v * np.where(plain, 1.0, factor)
    return dataclasses.replace(run, q=run.q * factor, v=v)


def zeroed(run: Run, zero: tuple[float, ...]) -> Run:
    """Coordinates counted from the given readings."""
    if not zero:
        return run
    if len(zero) != run.q.shape[1]:
        raise UserError(
            f"zero needs one reading for each of the {run.q.shape[1]} coordinates; got {len(zero)}."
        )
    largest = np.nanmax(np.abs(run.q), initial=0.0)
    if np.abs(zero).max() > FAR * max(largest, 1.0):
        raise UserError(
            f"zero is the reading where a coordinate should be 0; {max(zero, key=abs):g} is more "
            f"than {FAR:g} times as large as any reading ({largest:g})."
        )
    return dataclasses.replace(run, q=run.q - np.array(zero))


def unwrapped(
    runs: list[Run], angles: tuple[bool, ...], names: tuple[str, ...]
) -> tuple[list[Run], list[str]]:
    """Angles made continuous, with warnings where a step is too large to know its direction."""
    result, steepest = [], np.zeros(len(names))
    for run in runs:
        q = run.q.copy()
        for k in np.flatnonzero(angles):
            there = np.isfinite(q[:, k])
            q[there, k] = np.unwrap(q[there, k])
            steepest[k] = max(steepest[k], np.abs(np.diff(q[there, k])).max(initial=0.0))
        result.append(dataclasses.replace(run, q=q))
    warnings = [
        f"{name} moves by up to {steepest[k]:.2f} rad between two rows (a gap, or too coarse): "
        f"full turns may be miscounted there"
        for k, name in enumerate(names)
        if steepest[k] > 0.75 * np.pi
    ]
    return result, warnings


def first_turn(run: Run, angles: tuple[bool, ...]) -> Run:
    """Whole turns taken off, so that a trajectory's angles begin between -π and π.

    Earlier turns have no effect on the motion and would only widen the range of the data.
    """
    valued = np.flatnonzero(run.kind > 0)
    if not len(valued) or not any(angles):
        return run
    turns = np.where(angles, np.round(run.q[valued[0]] / (2 * np.pi)), 0.0)
    return dataclasses.replace(run, q=run.q - 2 * np.pi * turns)
