"""Times of a table's rows in seconds, the rows inside a time range, and the trials."""

import dataclasses
from collections.abc import Collection, Sequence
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from dhn.errors import UserError
from dhn.files.foreign.options import TIME_UNITS, ImportOptions
from dhn.files.foreign.recording import Source, listed, resolve
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
    texts = [f"{x:g}" for x in table.numbers(column)]
    if "nan" in texts:
        raise UserError(
            f"{table.row(texts.index('nan'))}: the trial's label is missing; fill it in."
        )
    return texts
