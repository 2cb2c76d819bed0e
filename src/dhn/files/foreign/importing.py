"""From measured files to trajectories."""

import dataclasses
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from dhn.checks import as_path, sequence
from dhn.errors import UserError
from dhn.files.files import field_names
from dhn.files.foreign.columns import Mapped, map_columns, references
from dhn.files.foreign.coordinates import (
    angle_flags,
    coordinate_units,
    first_turn,
    radians,
    unwrapped,
    zeroed,
)
from dhn.files.foreign.grid import Plan, cut, make_plan, to_states
from dhn.files.foreign.options import ImportOptions
from dhn.files.foreign.parts import WHOLE, Parts, divide_runs
from dhn.files.foreign.recording import Run
from dhn.files.foreign.report import (
    ImportReport,
    angle_warnings,
    clock_warnings,
    count_states,
    velocity_warnings,
    with_labels,
)
from dhn.files.foreign.sources import load_sources
from dhn.files.foreign.stillness import rest_warnings
from dhn.files.foreign.times import FEWEST, clean, cut_at_gaps
from dhn.trajectories.container import Trajectories
from dhn.trajectories.labels import unique
from dhn.trajectories.period import characteristic_period
from dhn.trajectories.segments import SEGMENT, shared_codes

MANY = 0.05  # share of interpolated states


@final
@dataclasses.dataclass(frozen=True)
class Imported:
    """Trajectories by part ("all", or "train", "validation", "test"), and what was done."""

    parts: Mapping[str, Trajectories]
    report: ImportReport


def import_measured(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], **options: Any
) -> Imported:
    """Measured files to trajectories that hold what was measured, and nothing else.

    Arguments:
        files: One file or several.
        options: The fields of `ImportOptions`.
    """
    alone = isinstance(files, str | os.PathLike)
    paths = [as_path(x) for x in ((files,) if alone else sequence("files", files))]
    return run_import(paths, ImportOptions.of(**options))


def wants_import(options: Mapping[str, Any]) -> bool:
    """Whether keyword arguments of `dhn.read` describe a measured file rather than set fields."""
    q = options.get("q")
    texts = isinstance(q, str) or (isinstance(q, list | tuple) and isinstance((*q, 0)[0], str))
    return texts or not field_names().issuperset(set(options) & set(ImportOptions.model_fields))


def read_measured(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], **options: Any
) -> Trajectories:
    """`import_measured` without a report, for one set of trajectories."""
    for name in ("split", "test_trials", "validation_trials"):
        if options.get(name):
            raise UserError(f"{name} makes several parts; use dhn.files.foreign.import_measured.")
    return import_measured(files, **options).parts[WHOLE]


def run_import(paths: Sequence[Path], options: ImportOptions) -> Imported:
    """As `import_measured`, with the options already checked."""
    if not paths:
        raise UserError("there is nothing to import; name at least one file.")
    counts: Counter[str] = Counter()
    mapped = _map(paths, options, counts)
    first = mapped[0]
    rows = sum(len(run) for x in mapped for run in x.runs) + counts.pop("lines", 0)
    names = first.names
    angles, degrees = angle_flags(names, mapped, options)
    if options.wrapped and not any(angles):
        raise UserError("wrapped is about angles, and no coordinate is one; name them (angles).")
    units = coordinate_units(first, names, angles, degrees)

    runs = _clean_runs(mapped, degrees, options, counts)
    warnings = [y for x in mapped for y in x.warnings]
    if not options.wrapped:
        runs, steep = unwrapped(runs, angles, names)
        warnings += steep

    parts = divide_runs(runs, options)
    first_part = next(iter(parts))
    training = [run.complete() for run, _ in parts[first_part]]
    plan = make_plan(training, runs, options)
    longest = max(x.t[-1] - x.t[0] for x in training)
    if plan.dt * (FEWEST - 1) > longest * (1 + 1e-6):
        raise UserError(
            f"a time step (dt) of {plan.dt:g} s leaves fewer than {FEWEST} states of the longest "
            f"run, which takes {longest:g} s; give a smaller one."
        )
    whole = all((x.t == np.round(x.t)).all() for x in training)
    warnings += clock_warnings(plan.step, first.unit_stated, whole)
    warnings += rest_warnings(runs, plan.noise[0])
    if training[0].v is not None:
        warnings += velocity_warnings(training, plan, names)
    gridded = _states(parts, plan)
    segments = _segments(gridded, options, counts)
    if not options.wrapped:
        segments = {k: [first_turn(x, angles) for x in runs] for k, runs in segments.items()}
    meta = {"source": ", ".join(x.name for x in paths)}
    data = {}
    for part, pieces in segments.items():
        if not pieces:
            raise UserError(
                f"the {part} part has no trajectory"
                + (f" of {options.segment} states" if options.segment else "")
                + "; give shorter segments, other fractions or more data."
            )
        found = _trajectories(pieces, names, angles, units, plan.noise, meta)
        data[part] = found.replace(code_group=shared_codes(found.ids, options.codes))
    everything = [x for pieces in gridded.values() for x in pieces]
    labelled = list(with_labels(data[first_part]))
    period = characteristic_period(data[first_part])
    warnings += angle_warnings(everything, names, angles, degrees, options)
    notes = list(dict.fromkeys(note for x in mapped for note in x.notes))
    notes += _hints(period, plan, options, everything)
    report = ImportReport(
        files=tuple(x.name for x in paths),
        rows=rows,
        changes={k: n for k, n in counts.items() if n},
        runs=len(runs),
        sampling_step=plan.step,
        time_step=plan.dt,
        chosen_step=plan.resample,
        own_times=plan.own_times,
        states=count_states(everything),
        measured=tuple(k for k in ("q", "v", "p") if getattr(first.runs[0], k) is not None),
        period=period,
        noise={label: noise for label, _, noise in labelled},
        signal={label: float(np.nanstd(values)) for label, values, _ in labelled},
        parts={part: (len(x), x.states) for part, x in data.items()},
        notes=tuple(notes),
        warnings=tuple(dict.fromkeys(warnings)),
    )
    return Imported(data, report)


def _map(paths: Sequence[Path], options: ImportOptions, counts: Counter[str]) -> list[Mapped]:
    mapped = []
    for path in paths:
        for source in load_sources(path, references(options)):
            for reason, n in source.dropped.items():
                counts[f"{reason}, left out"] += n
                counts["lines"] += n
            try:
                mapped.append(map_columns(source, options))
            except UserError as error:
                raise UserError(f"{path}: {error}") from None
            counts["rows outside the time range, left out"] += mapped[-1].outside
            counts["lines"] += mapped[-1].outside
            if mapped[-1].names != mapped[0].names:
                raise UserError(
                    f"{path}: its coordinates are {', '.join(mapped[-1].names)}, those of "
                    f"{paths[0]} are {', '.join(mapped[0].names)}; all files must have the same."
                )
    return mapped


def _clean_runs(
    mapped: list[Mapped], degrees: tuple[bool, ...], options: ImportOptions, counts: Counter[str]
) -> list[Run]:
    """Runs in radians at strictly increasing times, cut at long gaps, with different ids."""
    runs: list[Run] = []
    for raw in (run for x in mapped for run in x.runs):
        run = radians(zeroed(raw, options.zero), degrees, mapped[0])
        run = clean(run, counts)
        if run is not None:
            runs += [run] if options.gap is None else cut_at_gaps(run, options.gap)
    runs = [x for x in runs if len(x.complete()) >= FEWEST]
    if not runs:
        raise UserError(
            "no run has four or more complete rows; check the columns (and missing, gap)."
        )
    ids = unique([x.id if SEGMENT in x.id else x.id.replace("/", "-") for x in runs])
    return [dataclasses.replace(x, id=label) for x, label in zip(runs, ids, strict=True)]


def _states(parts: Parts, plan: Plan) -> dict[str, list[Run]]:
    """The states of every part; no state of time is in two parts."""
    last: dict[str, int] = {}
    result: dict[str, list[Run]] = {}
    for part, pieces in parts.items():
        result[part] = []
        for run, anchor in pieces:
            states = to_states(run, plan, anchor, last.get(run.id))
            if len(states):
                last[run.id] = round((states.t[-1] - anchor) / plan.dt)
                result[part].append(states)
    return result


def _segments(
    gridded: dict[str, list[Run]], options: ImportOptions, counts: Counter[str]
) -> dict[str, list[Run]]:
    if options.segment is None:
        return gridded
    result: dict[str, list[Run]] = {}
    for part, runs in gridded.items():
        result[part] = []
        for run in runs:
            found, skipped, behind = cut(run, options.segment, options.hop or options.segment)
            result[part] += found
            counts["segments with less than half of their states known, left out"] += skipped
            counts["states behind the last whole segment of a run, left out"] += behind
    return result


def _hints(period: float | None, plan: Plan, options: ImportOptions, runs: list[Run]) -> list[str]:
    found, dt = [], plan.dt
    if period and period / dt > 100 and not plan.resample:
        nice = float(f"{period / 40:.1g}")
        found.append(
            f"{period / dt:.0f} states a period are more than a model needs; "
            f"a time step (dt) of {nice:g} s keeps about {period / nice:.0f}"
        )
    if period and period / dt < 8:
        found.append(f"only {period / dt:.1f} states a period")
    longest = max(len(x) for x in runs)
    if options.segment is None and longest > 1000 and runs[0].p is not None:
        found.append(f"runs of {longest} states: segments of 128, 64 apart, suit most networks")
    interpolated = count_states(runs)["interpolated"]
    if interpolated > MANY * sum(len(x) for x in runs) and runs[0].p is None:
        found.append(
            f"{interpolated} states are interpolated; a mechanical model is better off with the "
            f"measurements at their own times (leave dt out)"
        )
    return found


def _trajectories(
    pieces: list[Run],
    names: tuple[str, ...],
    angles: tuple[bool, ...],
    units: dict[str, str],
    noise: np.ndarray,
    meta: dict[str, Any],
) -> Trajectories:
    params: dict[str, Any] = {}
    if pieces[0].lengths is not None:
        for k in range(len(names)):
            lengths = [np.nan if x.lengths is None else x.lengths[k] for x in pieces]
            params[f"link{k + 1}_length"] = np.array(lengths)
    has = {key: all(getattr(x, key) is not None for x in pieces) for key in ("p", "v")}
    return Trajectories.from_list(
        [x.q for x in pieces],
        [x.t for x in pieces],
        p=[x.p for x in pieces] if has["p"] else None,
        v=[x.v for x in pieces] if has["v"] else None,
        known=[x.known for x in pieces],
        params=params,
        names=names,
        angles=angles,
        units=units,
        ids=unique([x.id for x in pieces]),
        noise=noise,
        meta=meta,
    )
