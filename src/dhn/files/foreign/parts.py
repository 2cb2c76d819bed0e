"""Which rows belong to training, validation and test."""

import fnmatch
import itertools
from collections.abc import Sequence

import numpy as np

from dhn.errors import UserError
from dhn.files.foreign.options import ImportOptions
from dhn.files.foreign.recording import Run
from dhn.files.foreign.times import FEWEST

WHOLE = "all"
"""The one part of an import that is not split."""
TRAIN, VALIDATION, TEST = PARTS = ("train", "validation", "test")

Parts = dict[str, list[tuple[Run, float]]]
"""Part -> (rows, time of the run's first row), training first."""


def divide_runs(runs: list[Run], options: ImportOptions) -> Parts:
    """Whole trials by their names, the others by fractions of their time."""
    parts: Parts = {}
    whole: dict[str, list[Run]] = {}
    rest = runs
    patterns = ((TEST, options.test_trials), (VALIDATION, options.validation_trials))
    for part, pattern in patterns:
        if pattern is not None:
            whole[part] = _chosen(rest, pattern, runs)
            rest = [x for x in rest if x not in whole[part]]
    names = PARTS
    if options.test_trials is None and len(options.split) == 2:
        names = (TRAIN, TEST)
    for run in rest:
        pieces = divide(run, options.split) if options.split else [run]
        labels = names if options.split or whole else (WHOLE,)
        for part, piece in zip(labels, pieces, strict=False):
            if len(piece.complete()) >= FEWEST:
                parts.setdefault(part, []).append((piece, float(run.t[0])))
    for part in names[: len(options.split)]:
        if part not in parts:
            raise UserError(
                f"the {part} part of the split has no run with {FEWEST} complete rows; give other "
                f"fractions or more data."
            )
    for part, chosen in whole.items():
        parts[part] = [(x, float(x.t[0])) for x in chosen]
    return {part: parts[part] for part in (WHOLE, *dict.fromkeys((*names, TEST))) if part in parts}


def _chosen(rest: list[Run], pattern: str, runs: list[Run]) -> list[Run]:
    """The trials of `rest` that a pattern names: some, but not all."""
    chosen = [x for x in rest if fnmatch.fnmatch(x.id, f"*{pattern}*")]
    if not chosen or len(chosen) == len(rest):
        which = "every" if chosen else "no"
        raise UserError(
            f"{which} trial fits {pattern!r}; the trials are "
            f"{', '.join(x.id for x in runs[:12])}{', ...' if len(runs) > 12 else ''}."
        )
    return chosen


def divide(run: Run, fractions: Sequence[float]) -> list[Run]:
    """`run` in consecutive pieces of time; every row is in exactly one."""
    inner = run.t[0] + np.cumsum(fractions)[:-1] * (run.t[-1] - run.t[0])
    edges = [0, *np.searchsorted(run.t, inner).tolist(), len(run)]
    return [run.take(np.arange(a, b)) for a, b in itertools.pairwise(edges)]
