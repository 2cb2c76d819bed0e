"""Times of a table's rows in seconds, trials, and rows that cannot be used: counted and mended."""

import dataclasses
from collections import Counter
from collections.abc import Collection, Sequence
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from dhn.errors import UserError
from dhn.files.foreign.options import TIME_UNITS, ImportOptions
from dhn.files.foreign.recording import Run, Source, listed, resolve
from dhn.files.table import Table

LARGEST = 1e100
"""Any measurement is smaller, whatever its unit; squares of larger numbers overflow."""
RESTART = "restart"
TIME_NAMES = ("t", "time", "times", "timestamp", "seconds", "sec", "zeit", "temps")


@final
@dataclasses.dataclass(frozen=True)
class Clock:
    """The times of all rows, and where their unit comes from."""

    t: Float[np.ndarray, " N"]
    """Seconds; NaN where a row has no time."""
    stated: bool
    """Whether a header, the user or a rate states the unit, rather than the default of seconds."""
    notes: tuple[str, ...] = ()


def read_clock(source: Source, options: ImportOptions) -> Clock:
    """The times in the column `options.time`, or by the sampling rate if there is none."""
    table, time = source.table, options.time
    if time is None:
        rate = options.rate or source.rate
        if rate is None:
            raise UserError(
                f"it has no times: name their column (time) or give rate, the samples a second; "
                f"it has {listed(table.columns)}."
            )
        note = f"no times: the file's own sampling rate, {rate:g} a second, was used"
        return Clock(np.arange(len(table)) / rate, True, () if options.rate else (note,))
    column = resolve(time, table.columns)
    cells = table.columns[column]
    if not isinstance(cells, np.ndarray):
        stamps = _stamps(cells)
        if stamps is not None:
            return Clock(stamps, True, ("times are dates; seconds count from the first",))
    t = table.numbers(column)
    t[~np.isfinite(t)] = np.nan
    if not np.isfinite(t).any():
        raise UserError(f"the time column {column!r} has no number at all; is it the right one?")
    largest = np.nanmax(np.abs(t))
    if largest != 0 and not 1 / LARGEST < largest < LARGEST:
        raise UserError(
            f"the time column {column!r} goes up to {largest:.3g}; is it the right one?"
        )
    unit = options.time_unit or source.units.get(column, "").casefold()
    if unit and unit not in TIME_UNITS:
        note = f"the unit {unit!r} of the times is not known here; taken as seconds"
        return Clock(t, False, (note,))
    factor = TIME_UNITS.get(unit, 1.0)
    notes = () if factor == 1.0 else (f"times were converted from {unit} to s",)
    return Clock(t * factor, bool(unit), notes)


def _stamps(cells: Sequence[str]) -> np.ndarray | None:
    try:
        stamps = np.array([x.strip().strip("Z").replace(" ", "T") for x in cells], "datetime64[ns]")
    except ValueError:
        return None
    if np.isnat(stamps).all():
        return None
    seconds = (stamps - stamps[~np.isnat(stamps)][0]) / np.timedelta64(1, "ns") * 1e-9
    return np.where(np.isnat(stamps), np.nan, seconds)


def in_range(t: Float[np.ndarray, " N"], options: ImportOptions) -> Bool[np.ndarray, " N"]:
    """Rows between `from_` and `to`, ends included; rows without a time stay in."""
    low = -np.inf if options.from_ is None else options.from_
    high = np.inf if options.to is None else options.to
    inside = ~((t < low) | (t > high))
    if not (inside & np.isfinite(t)).any():
        raise UserError(
            f"no row lies between {low:g} and {high:g} s; its times run from {np.nanmin(t):g} to "
            f"{np.nanmax(t):g} s."
        )
    return inside


def trials(
    table: Table, trial: str | None, label: str, t: Float[np.ndarray, " N"]
) -> list[tuple[str, Int[np.ndarray, " _"]]]:
    """(label, rows) of every trial, by the column `trial` or by the times that go back."""
    rows = np.arange(len(table))
    if trial is None:
        return [(label, rows)]
    if trial == RESTART and trial not in table.columns:
        finite = np.where(np.isfinite(t), t, np.fmax.accumulate(np.nan_to_num(t, nan=-np.inf)))
        starts = np.flatnonzero(np.diff(finite) < 0) + 1
        parts = np.split(rows, starts)
        return [(f"{label}-{k + 1}", x) for k, x in enumerate(parts)]
    column = resolve(trial, table.columns)
    texts = np.array(_labels(table, column))
    labels: Collection[str] = dict.fromkeys(texts.tolist())
    if len(labels) > max(20, len(table) / 4):
        raise UserError(
            f"the trial column {column!r} has {len(labels)} different labels in {len(table)} rows; "
            f"is it the right column?"
        )
    if len(labels) == 1:
        return [(label, rows)]
    return [(f"{label}-{x}", rows[texts == x]) for x in labels]


def _labels(table: Table, column: str) -> list[str]:
    if not isinstance(table.columns[column], np.ndarray):
        return table.texts(column)
    texts = [f"{x:.15g}" for x in table.numbers(column)]
    if "nan" in texts:
        raise UserError(
            f"{table.row(texts.index('nan'))}: the trial's label is missing; fill it in."
        )
    return texts


NEAR = 0.05
"""Rows nearer in time than this fraction of the usual step count as one: they are averaged."""
_DOUBLED = 0.25  # of the rows: more cannot be accidents
_DISORDER = 10  # steps; a clock that goes back further has been restarted
FEWEST = 4
"""Rows that a run needs to be of any use."""


def clean(run: Run, counts: Counter[str]) -> Run | None:
    """`run` at strictly increasing times, or None if too little is left.

    Rows in which something is missing stay, as states that are to be filled in.
    """
    timed = np.isfinite(run.t)
    counts["rows without a time, left out"] += int((~timed).sum())
    run = run.take(timed)
    arrays = [run.q, *(x for x in (run.v, run.p) if x is not None)]
    some = np.stack([np.isfinite(x).any(-1) for x in arrays]).any(0)
    complete = np.asarray(np.stack([np.isfinite(x).all(-1) for x in arrays]).all(0))
    counts["rows without measurements, unknown"] += int((~some).sum())
    counts["rows with some measurements missing, known in part"] += int((some & ~complete).sum())
    if complete.sum() < FEWEST:
        counts["runs of fewer than 4 rows, left out"] += 1
        counts["rows in runs too short, left out"] += len(run)
        return None
    run = _in_order(run, counts)
    run = _without_doubles(run, counts)
    if len(run) < FEWEST:
        raise UserError(
            f"run {run.id!r} has only {len(run)} different times; "
            f"is the time column the right one, and precise enough?"
        )
    return run


def _in_order(run: Run, counts: Counter[str]) -> Run:
    steps = np.diff(run.t)
    back = np.flatnonzero(steps < 0)
    if not len(back):
        return run
    usual = np.median(np.abs(steps[steps != 0]))
    far = back[-steps[back] > _DISORDER * usual]
    if len(far):
        i = int(far[0])
        raise UserError(
            f"time goes back from {run.t[i]:.10g} to {run.t[i + 1]:.10g} at {run.place(i + 1)}; "
            f"if a new trial begins there, set trial to 'restart' (or name the column of trials)."
        )
    if len(back) > 0.05 * len(run):
        raise UserError(
            f"{len(back)} of {len(run)} rows are earlier than the row before, first at "
            f"{run.place(int(back[0]) + 1)}; is the time column the right one?"
        )
    counts["rows out of order, sorted"] += len(back)
    return run.take(np.argsort(run.t, kind="stable"))


def _without_doubles(run: Run, counts: Counter[str]) -> Run:
    steps = np.diff(run.t)
    usual = float(np.median(steps[steps > 0])) if (steps > 0).any() else 0.0
    close = steps <= NEAR * usual
    if not close.any():
        return run
    if usual and close.mean() > _DOUBLED:
        i = int(np.argmax(close))
        if (steps[close] == 0).mean() > 0.5:
            raise UserError(
                f"{int(close.sum())} of {len(run)} rows have the time of the row before, first at "
                f"{run.place(i + 1)}; the clock is too coarse: give the sampling rate instead."
            )
        raise UserError(
            f"times advance by {steps[i]:.4g} at {run.place(i + 1)} but by {usual:.4g} elsewhere; "
            f"does the unit change within the file? Mend the time column."
        )
    group = np.concatenate([[0], np.cumsum(~close)])
    size = np.bincount(group)
    counts["rows at (nearly) the same time, averaged into others"] += len(run) - len(size)

    def mean(x: np.ndarray | None) -> np.ndarray | None:
        if x is None:
            return None
        total, there = np.zeros((2, len(size), *x.shape[1:]))
        np.add.at(total, group, np.nan_to_num(x))
        np.add.at(there, group, np.isfinite(x))
        return np.divide(total, there, out=np.full(total.shape, np.nan), where=there > 0)

    kept = run.take(np.concatenate([[True], ~close]))
    averaged = {k: mean(getattr(run, k)) for k in ("t", "q", "v", "p")}
    return dataclasses.replace(kept, **averaged)


def cut_at_gaps(run: Run, longest: float) -> list[Run]:
    """`run` cut wherever two rows are further apart than `longest`."""
    starts = np.flatnonzero(np.diff(run.t) > longest) + 1
    if not len(starts):
        return [run]
    parts = np.split(np.arange(len(run)), starts)
    return [run.take(x, f"{run.id}-{k + 1}") for k, x in enumerate(parts)]
