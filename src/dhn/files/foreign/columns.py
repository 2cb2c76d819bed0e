"""From tables to runs: which columns are meant, units, trials, markers."""

import dataclasses
from collections.abc import Sequence
from typing import final

import numpy as np
from jaxtyping import Bool, Float

from dhn.errors import UserError
from dhn.files.foreign.markers import length_notes, link_angles, marker_columns, with_pivot
from dhn.files.foreign.names import coordinate_names, expand, listed, split_name
from dhn.files.foreign.options import ImportOptions
from dhn.files.foreign.run import Run
from dhn.files.foreign.source import Source
from dhn.files.foreign.times import LARGEST, RESTART, TIME_NAMES, in_range, read_clock, trials
from dhn.files.roles import find_roles
from dhn.files.table import Table

_DEGREES = ("deg", "degree", "degrees", "°", "deg/s", "°/s", "degrees/s")


@final
@dataclasses.dataclass(frozen=True)
class Mapped:
    """The runs of one source, with the names and units of their coordinates."""

    runs: list[Run]
    names: tuple[str, ...]
    degrees: tuple[bool, ...]
    units: dict[str, str]
    """Unit of a coordinate, `v_<name>` or `p_<name>`, as the file states it."""
    angles: tuple[bool, ...]
    """Which coordinates are angles, as far as the file states it."""
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    outside: int
    """Rows outside the time range."""
    unit_stated: bool
    """Whether the unit of the times is stated anywhere."""


@final
@dataclasses.dataclass(frozen=True)
class _Refs:
    """References to columns, as the user gave them or as the names show."""

    time: str | None
    trial: str | None
    q: tuple[str, ...]
    v: tuple[str, ...]
    p: tuple[str, ...]


@final
@dataclasses.dataclass(frozen=True)
class _Coordinates:
    """The coordinates of all rows of a table, and the columns that they come from."""

    q: Float[np.ndarray, "N d"]
    names: tuple[str, ...]
    columns: tuple[str, ...]
    angles: tuple[bool, ...]
    lengths: Float[np.ndarray, "N d"] | None = None
    """Of the links, where markers were measured."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def references(options: ImportOptions) -> list[str]:
    """All columns that the user names, times first."""
    given = [options.time, *options.q, *options.v, *options.p, *options.markers]
    given += [options.trial if options.trial != RESTART else None]
    return list(dict.fromkeys(split_name(x)[1] for x in given if x is not None))


def map_columns(source: Source, options: ImportOptions) -> Mapped:
    """The runs in `source`."""
    table = source.table
    if len(table) == 0:
        raise UserError("it has no rows of data; expected one row a state.")
    refs = _recognise(source, options)
    clock = read_clock(source, refs.time, options)
    inside = in_range(clock.t, options)
    found = _from_markers(table, inside, options) if options.markers else None
    found = found or _from_columns(source, refs.q, options)
    units = _units(source, found.names, found.columns)
    partners: dict[str, np.ndarray | None] = {}
    for key in ("v", "p"):
        others = [x for _, x in expand(getattr(refs, key), table)]
        if others and len(others) != len(found.names):
            raise UserError(
                f"{key} needs one column for each of the {len(found.names)} coordinates "
                f"({', '.join(found.names)}); got {len(others)}: {', '.join(others)}."
            )
        partners[key] = _numbers(table, others, options) if others else None
        units |= _units(source, [f"{key}_{x}" for x in found.names], others)
    _refuse_twice(refs, table)
    whole = Run(source.label, clock.t, found.q, partners["v"], partners["p"], None, table.row)
    runs = []
    for label, rows in trials(table, refs.trial, source.label, clock.t):
        rows = rows[inside[rows]]
        mean = None
        if found.lengths is not None and len(rows):
            mean = np.nanmean(found.lengths[rows], axis=0)
        runs.append(dataclasses.replace(whole.take(rows, label), lengths=mean))
    return Mapped(
        runs=[x for x in runs if len(x)],
        names=found.names,
        degrees=tuple(source.units.get(x, "").casefold() in _DEGREES for x in found.columns),
        units=units,
        angles=found.angles,
        notes=(*source.notes, *clock.notes, *found.notes),
        warnings=(*source.warnings, *_unused_times(table, options), *found.warnings),
        outside=int((~inside).sum()),
        unit_stated=clock.stated,
    )


def _unused_times(table: Table, options: ImportOptions) -> tuple[str, ...]:
    times = [x for x in table.columns if x.casefold() in TIME_NAMES]
    if options.rate is None or not times:
        return ()
    return (f"times follow from the rate, not from the column {times[0]!r}; leave rate out",)


def _from_markers(
    table: Table, inside: Bool[np.ndarray, " N"], options: ImportOptions
) -> _Coordinates:
    columns = marker_columns(table, options)
    points = _numbers(table, columns, options).reshape(len(table), -1, 2)
    points, notes, warnings = with_pivot(points, inside, options)
    q, lengths = link_angles(points, options.y_down)
    links = range(1, q.shape[1] + 1)
    names = ("theta",) if len(links) == 1 else tuple(f"theta{k}" for k in links)
    columns = tuple(f"angle of link {k}" for k in links)
    notes += length_notes(lengths)
    angles = (True,) * len(links)
    return _Coordinates(q, names, columns, angles, lengths, tuple(notes), tuple(warnings))


def _from_columns(source: Source, refs: tuple[str, ...], options: ImportOptions) -> _Coordinates:
    pairs = expand(refs, source.table)
    columns = tuple(x for _, x in pairs)
    q = _numbers(source.table, columns, options)
    angles = tuple(x in source.angles for x in columns)
    return _Coordinates(q, coordinate_names(pairs), columns, angles)


def _units(source: Source, labels: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
    pairs = zip(labels, columns, strict=False)  # there may be no columns
    return {label: source.units[x] for label, x in pairs if x in source.units}


def _recognise(source: Source, options: ImportOptions) -> _Refs:
    names = list(source.table.columns)
    time, trial = options.time, options.trial
    if time is None and options.rate is None:
        time = next((x for x in names if x.casefold() in TIME_NAMES), None)
    if options.q or options.markers:
        return _Refs(time, trial, options.q, options.v, options.p)
    stated = {x: "q" for x in source.coordinates}
    for key in ("p", "v"):
        labels = {f"{key}_{x}": f"{key}:{x}" for x in source.coordinates}
        stated |= {k: x for k, x in labels.items() if k in source.table.columns}
    try:
        roles = find_roles([x for x in names if x != time], stated or None)
    except UserError:
        raise UserError(
            f"which columns are the coordinates? Name them (q), by name or by position from 1, or "
            f"name markers; it has {listed(names)}."
        ) from None
    q, v, p = (tuple(x for _, x in getattr(roles, key)) for key in ("q", "v", "p"))
    if options.positions_only:
        v, p = (), ()
    return _Refs(time, trial or roles.trajectory, q, options.v or v, options.p or p)


def _refuse_twice(refs: _Refs, table: Table) -> None:
    """One column has one meaning."""
    meant: dict[str, str] = {}
    given = {
        "time": () if refs.time is None else (refs.time,),
        "q": refs.q,
        "v": refs.v,
        "p": refs.p,
    }
    for role, some in given.items():
        for _, column in expand(some, table):
            if column in meant:
                raise UserError(
                    f"the column {column!r} is named twice, as {meant[column]} and {role}; name "
                    f"another one."
                )
            meant[column] = role


def _numbers(
    table: Table, columns: Sequence[str], options: ImportOptions
) -> Float[np.ndarray, "N d"]:
    values = np.stack([table.numbers(x) for x in columns], axis=-1)
    values[~np.isfinite(values)] = np.nan
    for number in options.missing:
        values[values == number] = np.nan
    for k, column in enumerate(columns):
        if not np.isfinite(values[:, k]).any():
            raise UserError(f"column {column!r} has no number at all; check which column it is.")
        largest = np.nanmax(np.abs(values[:, k]))
        if largest > LARGEST:
            raise UserError(
                f"column {column!r} holds {largest:.3g}, which cannot be a measurement; correct "
                f"it, or declare it as missing."
            )
    return values
