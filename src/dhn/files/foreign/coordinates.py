"""Coordinates with their units (zero readings, degrees, turns) and momenta from velocities."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Float

from dhn.errors import UserError
from dhn.files.foreign.columns import Mapped
from dhn.files.foreign.options import ImportOptions
from dhn.files.foreign.recording import Run

if TYPE_CHECKING:
    from dhn.systems import System

WEAK = 3.0
"""Couplings below this many standard errors are treated as zero."""


def mass_matrix(numbers: tuple[float, ...], d: int) -> Float[np.ndarray, "d d"]:
    """`d` masses, or `d²` entries row by row; symmetric and positive definite as a mass must be."""
    if len(numbers) not in (d, d * d):
        raise UserError(
            f"mass needs {d} masses, one a coordinate"
            + (f", or the {d * d} entries of a mass matrix" if d > 1 else "")
            + f"; got {len(numbers)}."
        )
    values = np.array(numbers, dtype=np.float64)
    matrix = np.diag(values) if len(values) == d else values.reshape(d, d)
    if not np.allclose(matrix, matrix.T) or not (np.linalg.eigvalsh(matrix) > 0).all():
        raise UserError(
            f"a mass matrix is symmetric and positive definite; {matrix.tolist()} is not."
        )
    return matrix


@final
@dataclasses.dataclass(frozen=True)
class Momenta:
    """How velocities become momenta; `matrix` or `system`, or neither: p is not computed."""

    matrix: np.ndarray | None = None
    system: "System | None" = None
    params: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def computed(self) -> bool:
        return self.matrix is not None or self.system is not None

    def __call__(
        self, q: Float[np.ndarray, "N d"], v: Float[np.ndarray, "N d"]
    ) -> Float[np.ndarray, "N d"]:
        if self.matrix is not None:
            return v @ self.matrix.T
        assert self.system is not None
        p = np.full(q.shape, np.nan)
        finite = np.isfinite(q).all(-1) & np.isfinite(v).all(-1)
        if finite.any():
            p[finite] = self.system.momenta(q[finite], v[finite], self.params)
        return p

    def noise(
        self,
        q: Float[np.ndarray, "N d"],
        v: Float[np.ndarray, "N d"],
        deviations: Float[np.ndarray, "2 d"],
    ) -> Float[np.ndarray, " d"]:
        """Deviation of p for the given deviations of q and v, to first order, over the states."""
        total = np.zeros(q.shape[1])
        middle = self(q, v)
        for k in range(q.shape[1]):
            shift = np.eye(q.shape[1])[k]
            for array, deviation in ((0, deviations[0, k]), (1, deviations[1, k])):
                size = 1e-3 * (np.nanstd((q, v)[array][:, k]) or 1.0)
                moved = [q, v]
                moved[array] = moved[array] + size * shift
                slope = (self(moved[0], moved[1]) - middle) / size
                total += deviation**2 * np.nanmean(slope**2, axis=0)
        return np.sqrt(total)


def check_system(
    system: "System", d: int, params: Mapping[str, float], momenta: bool = True
) -> None:
    """Raise a `UserError` unless the system has `d` coordinates and these constants.

    Arguments:
        system: The system that the user named.
        d: Number of measured coordinates.
        params: Constants that the user gave.
        momenta: Whether momenta are computed, for which every constant needs a value.
    """
    if system.dim != d:
        raise UserError(
            f"system {system.name!r} has {system.dim} coordinates "
            f"({', '.join(system.coordinates)}), but {d} were measured; name as many."
        )
    for name in params:
        if name not in system.params:
            there = ", ".join(system.params) or "none"
            raise UserError(
                f"system {system.name!r} has no parameter {name!r}; its parameters are {there}."
            )
    for name, default in system.params.items():
        if momenta and name not in params and np.ndim(default) != 0:
            raise UserError(
                f"system {system.name!r} needs its parameter {name!r} to turn velocities into "
                f"momenta; give its value (params), or leave the system out."
            )


def mass_ratios(runs: list[Run], dt: float) -> Float[np.ndarray, " d"]:
    """Masses up to a common factor (the first is 1), from a linear fit `a = -A q - B v + c`.

    Action and reaction: where forces come from a potential, `m_i a_i` responds to `q_j` exactly as
    `m_j a_j` does to `q_i`, so that the accelerations of coupled coordinates give their ratio.
    Assumes constant masses, no coupling through velocities (as between the links of a pendulum),
    and motion near enough to an equilibrium for forces to be about linear.
    """
    before, after = _differences(runs, dt)
    d = after.shape[1]
    if len(before) < 4 * (2 * d + 1):
        raise UserError(
            f"masses cannot be estimated from {len(before)} states with known neighbours; "
            f"give them (mass)."
        )
    centred = before - before.mean(0)
    solution, *_ = np.linalg.lstsq(centred, after - after.mean(0), rcond=None)
    left = after - after.mean(0) - centred @ solution
    covariance = np.linalg.pinv(centred.T @ centred)
    error = np.sqrt(np.outer(np.diag(covariance), left.var(0)))[:d]
    coupling = np.where(np.abs(solution[:d]) > WEAK * error, solution[:d], 0.0).T
    rows = []
    for i in range(d):
        for j in range(i + 1, d):
            size = np.hypot(coupling[i, j], coupling[j, i])
            if coupling[i, j] * coupling[j, i] > 0:
                row = np.zeros(d)
                row[i], row[j] = coupling[i, j] / size, -coupling[j, i] / size
                rows.append(row)
    if len(rows) < d - 1:
        raise UserError(
            "the coordinates do not pull on each other strongly enough to estimate the ratios of "
            "their masses; give them (mass)."
        )
    masses = np.linalg.svd(np.array(rows))[2][-1]
    masses = masses / masses[0]
    if not (masses > 0).all():
        raise UserError(
            f"the motion does not look like masses pulling on each other (ratios "
            f"{np.round(masses, 3).tolist()}); give masses (mass)."
        )
    return masses


def _differences(runs: list[Run], dt: float) -> tuple[np.ndarray, np.ndarray]:
    """`[q, v]` of states whose neighbours are known, and their accelerations."""
    before, after = [], []
    for run in runs:
        if run.v is None or len(run) < 3:
            continue
        known = run.known & np.isfinite(run.v).all(-1)
        good = known[:-2] & known[1:-1] & known[2:]
        before.append(np.concatenate([run.q, run.v], axis=1)[1:-1][good])
        after.append(((run.v[2:] - run.v[:-2]) / (2 * dt))[good])
    return np.concatenate(before), np.concatenate(after)


EVERY = "all"
"""Stands for all coordinates where angles are named."""


def angle_flags(
    names: tuple[str, ...], mapped: list[Mapped], options: ImportOptions, momenta: Momenta
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
    elif momenta.system is not None:
        angles = momenta.system.angle_flags
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
