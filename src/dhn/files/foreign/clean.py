"""Rows that cannot be used, are out of order or doubled: left out, sorted, averaged; counted."""

import dataclasses
from collections import Counter

import numpy as np

from dhn.errors import UserError
from dhn.files.foreign.recording import Run

NEAR = 0.05
"""Rows nearer in time than this fraction of the usual step count as one: they are averaged."""
_DOUBLED = 0.25  # of the rows: more cannot be accidents
_DISORDER = 10  # steps; a clock that goes back further has been restarted
FEWEST = 4
"""Rows that a run needs to be of any use."""


def clean(run: Run, counts: Counter[str], keep_times: bool = False) -> Run | None:
    """`run` at strictly increasing times, or None if too little is left.

    Rows in which something is missing are left out; with `keep_times` they stay, as states that
    are to be filled in.
    """
    timed = np.isfinite(run.t)
    counts["rows without a time, left out"] += int((~timed).sum())
    run = run.take(timed)
    arrays = [run.q, *(x for x in (run.v, run.p) if x is not None)]
    some = np.stack([np.isfinite(x).any(-1) for x in arrays]).any(0)
    complete = np.asarray(np.stack([np.isfinite(x).all(-1) for x in arrays]).all(0))
    fate = "kept as unknown states" if keep_times else "left out"
    counts[f"rows without measurements, {fate}"] += int((~some).sum())
    counts[f"rows with some measurements missing, {fate}"] += int((some & ~complete).sum())
    run = run if keep_times else run.take(complete)
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
