"""The report of an import: every change to the rows, counted and in words."""

import dataclasses
from collections.abc import Mapping
from typing import Any, final

import numpy as np

from dhn.files.foreign.derivative import Filter, differentiate
from dhn.files.foreign.grid import Gridded
from dhn.trajectories.container import Trajectories
from dhn.trajectories.labels import momentum_label, velocity_label

KINDS = ("missing", "interpolated", "resampled", "copied")


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
    """copied, resampled, interpolated, missing, and of these `uncertain` at the edges."""
    velocities: str
    momenta: str
    period: float
    """Characteristic time of the motion, `2π rms(q) / rms(v)`, angles taken on the circle."""
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
        found = [
            ("read", f"{self.rows} rows, {_count(self.runs, 'run')}, from {_files(self.files)}")
        ]
        found += [("changed", f"{n} {what}") for what, n in self.changes.items()]
        found.append(("grid", grid))
        states = ", ".join(f"{self.states[k]} {k}" for k in reversed(KINDS) if self.states[k])
        if self.states["uncertain"]:
            states += f"; {self.states['uncertain']} at the edges marked unknown"
        found.append(("states", states))
        noise = [
            f"{label} {value:.3g} ({_percent(value, self.signal[label])})"
            for label, value in self.noise.items()
        ]
        found.append(("noise", ", ".join(noise)))
        if np.isfinite(self.period):
            found.append(
                ("period", f"about {self.period:.3g} s, {self.period / self.time_step:.0f} states")
            )
        found += [("velocities", self.velocities), ("momenta", self.momenta)]
        for part, (count, states) in self.parts.items():
            what = "trajectory" if count == 1 else "trajectories"
            found.append((part, f"{count} {what} of up to {states} states"))
        found += [("note", x) for x in self.notes] + [("WARNING", x) for x in self.warnings]
        return found


def _files(files: tuple[str, ...]) -> str:
    return files[0] if len(files) == 1 else f"{len(files)} files"


def _count(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def _percent(noise: float, signal: float) -> str:
    return f"{noise / signal:.2g} of its spread" if signal > 0 else "it never changes"


def count_states(runs: list[Gridded]) -> dict[str, int]:
    """How the states came about."""
    kinds = np.concatenate([x.kind for x in runs])
    counts = {name: int((kinds == k).sum()) for k, name in enumerate(KINDS)}
    uncertain = sum(int((x.uncertain & (x.kind >= 2)).sum()) for x in runs)
    return counts | {"uncertain": uncertain}


def deviations(data: Trajectories) -> dict[str, float]:
    """Spread of every coordinate and of its velocity or momentum."""
    found = {}
    for array, label in ((data.q, str), (data.momenta, _label(data))):
        if array is not None:
            found |= {label(n): float(np.nanstd(array[..., k])) for k, n in enumerate(data.names)}
    return found


def noise_by_label(data: Trajectories) -> dict[str, float]:
    """`data.noise` with names."""
    if data.noise is None:
        return {}
    found = {n: float(data.noise[0, k]) for k, n in enumerate(data.names)}
    if data.momenta is not None:
        found |= {_label(data)(n): float(data.noise[1, k]) for k, n in enumerate(data.names)}
    return found


def _label(data: Trajectories):
    return momentum_label if data.p is not None else velocity_label


def characteristic_period(
    runs: list[Gridded], angles: tuple[bool, ...], filters: tuple[Filter, ...]
) -> float:
    """`2π rms(q - mean) / rms(v)` of the coordinate that moves fastest; exact for an oscillator.

    Where there are no velocities, those that the filters compute are used.
    """
    found = []
    for k, angle in enumerate(angles):
        spread, speed = [], []
        for run in runs:
            there = np.isfinite(run.q[:, k])
            t, q = run.t[there], run.q[there, k]
            v = differentiate(t, q, t, filters[k])[1] if run.v is None else run.v[there, k]
            q, v = q[np.isfinite(v)], v[np.isfinite(v)]
            if not len(q):
                continue
            around = np.stack([np.cos(q), np.sin(q)]) if angle else q[None]
            spread.append(np.sum((around - around.mean(1, keepdims=True)) ** 2))
            speed.append(np.sum(v**2))
        if sum(speed) > 0:
            found.append(2 * np.pi * float(np.sqrt(sum(spread) / sum(speed))))
    return min(found, default=float("nan"))
