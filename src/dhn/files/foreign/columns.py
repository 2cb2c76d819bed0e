"""From tables to runs: which columns are meant, units, trials, markers."""

import dataclasses
import difflib
import re
from collections.abc import Sequence
from typing import final

import numpy as np

from dhn.errors import UserError
from dhn.files.foreign.markers import link_angles
from dhn.files.foreign.options import TIME_UNITS, ImportOptions
from dhn.files.foreign.run import Run
from dhn.files.foreign.source import Source
from dhn.files.roles import find_roles
from dhn.files.table import Table
from dhn.trajectories.labels import check_label

RESTART = "restart"
_TIMES = ("t", "time", "times", "timestamp", "seconds", "sec", "zeit", "temps")
_DEGREES = ("deg", "degree", "degrees", "°", "deg/s", "°/s", "degrees/s")


@final
@dataclasses.dataclass(frozen=True)
class Mapped:
    """The runs of one source, with the names and units of their coordinates."""

    runs: list[Run]
    names: tuple[str, ...]
    degrees: tuple[bool, ...]
    units: dict[str, str]
    """Unit of a coordinate, `v_<name>` or `p_<name>`, as the file says it."""
    notes: tuple[str, ...]
    angles: tuple[bool, ...]
    """Which coordinates are angles, as far as the file says so."""


@final
@dataclasses.dataclass(frozen=True)
class _Refs:
    """References to columns, as the user gave them or as the names show."""

    time: str | None
    trial: str | None
    q: tuple[str, ...]
    v: tuple[str, ...]
    p: tuple[str, ...]


def references(options: ImportOptions) -> list[str]:
    """All columns that the user names, times first."""
    given = [options.time, *options.q, *options.v, *options.p, *options.markers]
    given += [options.trial if options.trial != RESTART else None]
    return list(dict.fromkeys(_split_name(x)[1] for x in given if x is not None))


def map_columns(source: Source, options: ImportOptions) -> Mapped:
    """The runs in `source`."""
    table = source.table
    if len(table) == 0:
        raise UserError("it has no rows of data; expected one row a state.")
    refs = _recognise(table, options)
    notes = list(source.notes)
    t = _times(source, refs.time, options, notes)
    lengths = None
    if options.markers:
        points = _points(table, options)
        q, lengths = link_angles(points, options.y_down)
        columns = [f"angle of link {k + 1}" for k in range(q.shape[1])]
        default = ["theta"] if len(columns) == 1 else [f"theta{k + 1}" for k in range(len(columns))]
        names = tuple(default)
        degrees, angles = (False,) * len(names), (True,) * len(names)
    else:
        columns = _expand(refs.q, table)
        q = _numbers(table, [x for _, x in columns], options)
        names = _names(columns)
        columns = [x for _, x in columns]
        degrees = tuple(source.units.get(x, "").casefold() in _DEGREES for x in columns)
        angles = tuple(x in source.angles for x in columns)
    units = {n: source.units[x] for n, x in zip(names, columns, strict=True) if x in source.units}
    found = {}
    for key in ("v", "p"):
        others = [x for _, x in _expand(getattr(refs, key), table)]
        if others and len(others) != len(names):
            raise UserError(
                f"{key} needs one column for each of the {len(names)} coordinates "
                f"({', '.join(names)}); got {len(others)}: {', '.join(others)}."
            )
        found[key] = _numbers(table, others, options) if others else None
        units |= {
            f"{key}_{n}": source.units[x]
            for n, x in zip(names, others, strict=False)
            if x in source.units
        }
    whole = Run(source.label, t, q, found["v"], found["p"], None, table.row)
    runs = []
    for label, rows in _trials(table, refs.trial, source.label, t):
        mean = None if lengths is None else np.nanmean(lengths[rows], axis=0)
        runs.append(dataclasses.replace(whole.take(rows, label), lengths=mean))
    if lengths is not None:
        spread = np.nanstd(lengths, axis=0) / np.nanmean(lengths, axis=0)
        for k, x in enumerate(spread):
            if x > 0.05:
                notes.append(
                    f"link {k + 1} changes its length by {x:.0%}: are the markers in the order "
                    f"pivot to tip, x before y, and in one plane?"
                )
    return Mapped(runs, names, degrees, units, tuple(notes), angles)


def resolve(ref: str, names: Sequence[str]) -> str:
    """The column called `ref`, or the one at that position from 1."""
    if ref in names:
        return ref
    if ref.isdigit():
        if 1 <= int(ref) <= len(names):
            return names[int(ref) - 1]
        raise UserError(f"there is no column {ref}; columns run from 1 to {len(names)}.")
    same = [x for x in names if x.casefold() == ref.casefold()]
    if len(same) == 1:
        return same[0]
    near = difflib.get_close_matches(ref, names, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise UserError(f"there is no column {ref!r}{hint}; it has {_listing(names)}.")


def _listing(names: Sequence[str]) -> str:
    if all(x.isdigit() for x in names):
        return f"{len(names)} columns without names; give positions from 1"
    return ", ".join(f"column {x}" if x.isdigit() else x for x in names)


def _split_name(ref: str) -> tuple[str, str]:
    name, equals, column = ref.partition("=")
    return (name.strip(), column.strip()) if equals else ("", ref.strip())


def _expand(refs: Sequence[str], table: Table) -> list[tuple[str, str]]:
    """(our name or nothing, column); a variable with several rows stands for all of them."""
    names, found = list(table.columns), []
    for ref in refs:
        own, column = _split_name(ref)
        parts = [x for x in names if re.fullmatch(re.escape(column) + r":\d+", x)]
        if column not in names and parts:
            found += [(f"{own}{k + 1}" if own else "", x) for k, x in enumerate(parts)]
        else:
            found.append((own, resolve(column, names)))
    return found


def _names(columns: list[tuple[str, str]]) -> tuple[str, ...]:
    plain = all(not re.search(r"[:*]", x) and not x.isdigit() for _, x in columns)
    default = ["q"] if len(columns) == 1 else [f"q{k + 1}" for k in range(len(columns))]
    names = []
    for (own, column), numbered in zip(columns, default, strict=True):
        name = own or (column if plain else numbered)
        check_label("names", name)
        if name in names:
            raise UserError(f"two coordinates are called {name!r}; rename one: --q other=column.")
        names.append(name)
    return tuple(names)


def _recognise(table: Table, options: ImportOptions) -> _Refs:
    names = list(table.columns)
    time, trial = options.time, options.trial
    if time is None and options.rate is None:
        time = next((x for x in names if x.casefold() in _TIMES), None)
    if options.q or options.markers:
        return _Refs(time, trial, options.q, options.v, options.p)
    try:
        roles = find_roles([x for x in names if x != time], None)
    except UserError:
        raise UserError(
            f"which columns are the coordinates? Say --q NAME,... (or positions from 1, or "
            f"--markers); it has {_listing(names)}."
        ) from None
    q, v, p = (tuple(x for _, x in getattr(roles, key)) for key in ("q", "v", "p"))
    return _Refs(time, trial or roles.trajectory, q, options.v or v, options.p or p)


def _numbers(table: Table, columns: Sequence[str], options: ImportOptions) -> np.ndarray:
    values = np.stack([table.numbers(x) for x in columns], axis=-1)
    values[~np.isfinite(values)] = np.nan
    for number in options.missing:
        values[values == number] = np.nan
    for k, column in enumerate(columns):
        if not np.isfinite(values[:, k]).any():
            raise UserError(f"column {column!r} has no number at all; check which column it is.")
    return values


def _points(table: Table, options: ImportOptions) -> np.ndarray:
    """(N, markers, 2) from x,y columns, or from names of markers whose columns hold x and y."""
    names = list(table.columns)
    refs: list[str] = []
    for marker in options.markers:
        pair = [
            (x, y)
            for x in names
            for y in names
            if (x.casefold(), y.casefold()) in _marker_columns(marker.casefold())
        ]
        refs += pair[0] if pair and marker not in names else [marker]
    if len(refs) < 4 or len(refs) % 2:
        raise UserError(
            f"markers needs x and y of at least two markers, pivot first: x0,y0,x1,y1,...; "
            f"got {len(refs)} columns."
        )
    columns = [resolve(x, names) for x in refs]
    return _numbers(table, columns, options).reshape(len(table), -1, 2)


def _marker_columns(name: str) -> list[tuple[str, str]]:
    joints = [(f"{{}}{gap}{name}", f"{name}{gap}{{}}") for gap in ("_", ".", " ", "")]
    return [(form.format("x"), form.format("y")) for pair in joints for form in pair]


def _times(
    source: Source, time: str | None, options: ImportOptions, notes: list[str]
) -> np.ndarray:
    table = source.table
    rate = options.rate
    if time is None:
        if rate is None and source.rate is not None:
            rate = source.rate
            notes.append(f"no times: the file's own sampling rate, {rate:g} a second, was used")
        if rate is None:
            raise UserError(
                f"it has no times: name their column with --time, or give --rate, the samples a "
                f"second; it has {_listing(list(table.columns))}."
            )
        return np.arange(len(table)) / rate
    column = resolve(time, list(table.columns))
    unit = options.time_unit or source.units.get(column, "s").casefold()
    cells = table.columns[column]
    if not isinstance(cells, np.ndarray):
        stamps = _stamps(cells)
        if stamps is not None:
            notes.append("times are dates; seconds count from the first")
            return stamps
    t = table.numbers(column)
    t[~np.isfinite(t)] = np.nan
    if not np.isfinite(t).any():
        raise UserError(f"the time column {column!r} has no number at all; is it the right one?")
    if unit not in TIME_UNITS:
        notes.append(f"the unit {unit!r} of the times is not known here; taken as seconds")
    factor = TIME_UNITS.get(unit, 1.0)
    if factor != 1.0:
        notes.append(f"times were converted from {unit} to s")
    return t * factor


def _stamps(cells: Sequence[str]) -> np.ndarray | None:
    try:
        stamps = np.array([x.strip().strip("Z").replace(" ", "T") for x in cells], "datetime64[ns]")
    except ValueError:
        return None
    seconds = (stamps - stamps[~np.isnat(stamps)][0]) / np.timedelta64(1, "ns") * 1e-9
    return np.where(np.isnat(stamps), np.nan, seconds)


def _trials(
    table: Table, trial: str | None, label: str, t: np.ndarray
) -> list[tuple[str, np.ndarray]]:
    rows = np.arange(len(table))
    if trial is None:
        return [(label, rows)]
    if trial == RESTART and trial not in table.columns:
        finite = np.where(np.isfinite(t), t, np.fmax.accumulate(np.nan_to_num(t, nan=-np.inf)))
        starts = np.flatnonzero(np.diff(finite) < 0) + 1
        parts = np.split(rows, starts)
        return [(f"{label}-{k + 1}", x) for k, x in enumerate(parts)]
    column = resolve(trial, list(table.columns))
    cells = table.columns[column]
    if isinstance(cells, np.ndarray):
        texts = np.array([f"{x:g}" for x in table.numbers(column)])
        if (texts == "nan").any():
            i = int(np.argmax(texts == "nan"))
            raise UserError(f"{table.row(i)}: the trial's label is missing; fill it in.")
    else:
        texts = np.array(table.texts(column))
    labels = list(dict.fromkeys(texts))
    if len(labels) > max(20, len(table) / 4):
        raise UserError(
            f"the trial column {column!r} has {len(labels)} different labels in {len(table)} rows; "
            f"is it the right column?"
        )
    if len(labels) == 1:
        return [(label, rows)]
    return [(f"{label}-{x}", rows[texts == x]) for x in labels]
