"""The report of an import: every change to the rows, counted and in words."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, final

import numpy as np

from dhn.files.foreign.derivative import Filter, differentiate
from dhn.files.foreign.run import KINDS, RESAMPLED, Run
from dhn.trajectories.container import Trajectories
from dhn.trajectories.labels import momentum_label, velocity_label
from dhn.trajectories.period import turnover


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


def count_states(runs: list[Run]) -> dict[str, int]:
    """How the states came about."""
    kinds = np.concatenate([x.kind for x in runs])
    counts = {name: int((kinds == k).sum()) for k, name in enumerate(KINDS)}
    uncertain = sum(int((x.uncertain & (x.kind >= RESAMPLED)).sum()) for x in runs)
    return counts | {"uncertain": uncertain}


def with_labels(data: Trajectories) -> Iterator[tuple[str, np.ndarray, float]]:
    """Label, values and noise of every coordinate and of its velocity or momentum."""
    label = momentum_label if data.p is not None else velocity_label
    stated = data.typical_noise
    noise = np.full((2, data.dim), np.nan) if stated is None else stated
    for row, (array, name_of) in enumerate(((data.q, str), (data.momenta, label))):
        if array is not None:
            for k, name in enumerate(data.names):
                yield name_of(name), array[..., k], float(noise[row, k])


def characteristic_period(
    runs: list[Run], angles: tuple[bool, ...], filters: tuple[Filter, ...]
) -> float:
    """`turnover` of the coordinate that moves fastest; NaN if none moves.

    Where there are no velocities, those that the filters compute are used.
    """

    def series(k: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for run in runs:
            there = np.isfinite(run.q[:, k])
            t, q = run.t[there], run.q[there, k]
            if len(q):
                yield q, differentiate(t, q, t, filters[k])[1] if run.v is None else run.v[there, k]

    found = [turnover(series(k), angle) for k, angle in enumerate(angles)]
    return min((x for x in found if x), default=float("nan"))
