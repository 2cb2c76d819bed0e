"""The report of an import: every change to the rows, counted, and what looks mistaken."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, final

import numpy as np

from dhn.files.foreign.grid import Plan, stretches
from dhn.files.foreign.options import TIME_UNITS, ImportOptions
from dhn.files.foreign.recording import KINDS, Run
from dhn.trajectories.container import Trajectories
from dhn.trajectories.labels import state_labels


@final
@dataclasses.dataclass(frozen=True)
class ImportReport:
    """The facts of an import, as lines of text or as plain values."""

    files: tuple[str, ...]
    rows: int
    """Rows read from the files."""
    changes: Mapping[str, int]
    """What was left out, sorted or averaged -> number of rows."""
    runs: int
    sampling_step: float
    time_step: float
    chosen_step: bool
    """Whether the user chose the time step."""
    own_times: bool
    """Whether the rows keep their own times; `time_step` is then their sampling step."""
    states: Mapping[str, int]
    """copied, resampled, interpolated, missing."""
    measured: tuple[str, ...]
    """Of q, v and p those that the files hold."""
    period: float | None
    """Characteristic time of the motion; None where none can be estimated."""
    noise: Mapping[str, float]
    """Label of a coordinate, velocity or momentum -> standard deviation."""
    signal: Mapping[str, float]
    """The same labels -> standard deviation of the signal."""
    parts: Mapping[str, tuple[int, int]]
    """Part -> trajectories, states of the longest."""
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return dataclasses.asdict(self)

    def lines(self) -> list[tuple[str, str]]:
        """(what, in words)."""
        grid = f"every {self.time_step:.6g} s"
        if abs(self.sampling_step / self.time_step - 1) > 1e-6:
            grid += f" (sampled every {self.sampling_step:.6g} s)"
        grid += "" if self.chosen_step else ", chosen from the data"
        if self.own_times:
            grid = f"none: the file's own times, about {grid.partition(',')[0]}"
        source = self.files[0] if len(self.files) == 1 else f"{len(self.files)} files"
        found = [
            ("read", f"{self.rows} rows, {self.runs} run{'s' * (self.runs != 1)}, from {source}")
        ]
        found += [("changed", f"{n} {what}") for what, n in self.changes.items()]
        found.append(("grid", grid))
        states = ", ".join(f"{self.states[k]} {k}" for k in reversed(KINDS) if self.states[k])
        found.append(("states", states))
        noise = [
            f"{label} {value:.3g} ({_percent(value, self.signal[label])})"
            for label, value in self.noise.items()
        ]
        found.append(("noise", ", ".join(noise)))
        if self.period is not None:
            found.append(
                ("period", f"about {self.period:.3g} s, {self.period / self.time_step:.0f} states")
            )
        names = {"q": "positions", "v": "velocities", "p": "momenta"}
        found.append(("measured", ", ".join(names[x] for x in self.measured)))
        for part, (count, states) in self.parts.items():
            what = "trajectory" if count == 1 else "trajectories"
            found.append((part, f"{count} {what} of up to {states} states"))
        found += [("note", x) for x in self.notes] + [("WARNING", x) for x in self.warnings]
        return found


def _percent(noise: float, signal: float) -> str:
    return f"{noise / signal:.2g} of its spread" if signal > 0 else "it never changes"


def count_states(runs: list[Run]) -> dict[str, int]:
    """How the states came about."""
    kinds = np.concatenate([x.kind for x in runs])
    return {name: int((kinds == k).sum()) for k, name in enumerate(KINDS)}


def with_labels(data: Trajectories) -> Iterator[tuple[str, np.ndarray, float]]:
    """Label, values and noise of every coordinate and of its velocity or momentum."""
    labels, stated = state_labels(data.names), data.typical_noise
    noise = np.full((2, data.dim), np.nan) if stated is None else stated
    for row, key in enumerate(("q", "v" if data.p is None else "p")):
        array = getattr(data, key)
        if array is not None:
            for k, label in enumerate(labels[key]):
                yield label, array[..., k], float(noise[row, k])


CLEAR = 10.0
"""Standard deviations of the noise that a change of position should have to be compared."""
AGREEMENT = 0.8
"""Correlation of changes with integrated velocities below which these belong to something else."""
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
    """Measured velocities that are not the derivative of the positions: units or columns mixed.

    Changes of the position are compared with the integral of the velocity, over stretches long
    enough that noise is a small part of the change.
    """
    found = []
    for k, name in enumerate(names):
        moved, travelled = _changes(runs, plan, k)
        size = float(np.sqrt((moved @ moved) * (travelled @ travelled)))
        if size == 0:
            continue
        cross = float(moved @ travelled)
        ratio, agreement = float(travelled @ travelled) / cross if cross else np.inf, cross / size
        if abs(agreement) < AGREEMENT:
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


def _changes(runs: list[Run], plan: Plan, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Changes of coordinate `k`, and its velocity integrated over the same intervals."""
    moved, travelled = np.zeros(0), np.zeros(0)
    for lag in (1, 2, 4, 8):
        pairs = []
        for run in runs:
            assert run.v is not None  # velocities were measured
            for part in stretches(run.t, plan.step):
                t, q, v = run.t[part], run.q[part][:, k], run.v[part][:, k]
                path = np.concatenate([[0.0], np.cumsum((v[1:] + v[:-1]) / 2 * np.diff(t))])
                if len(t) > lag:
                    pairs.append((q[lag:] - q[:-lag], path[lag:] - path[:-lag]))
        if not pairs:
            break
        moved, travelled = (np.concatenate(x) for x in zip(*pairs, strict=True))
        if np.std(moved) > CLEAR * plan.noise[0, k]:
            break
    return moved, travelled


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
