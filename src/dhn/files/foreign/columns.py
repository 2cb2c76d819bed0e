"""From tables to runs: which columns are meant, units, trials, markers."""

import dataclasses
from collections.abc import Sequence
from typing import final

import numpy as np
from jaxtyping import Float

from dhn.errors import UserError
from dhn.files.foreign.markers import link_coordinates, marker_columns
from dhn.files.foreign.options import ImportOptions
from dhn.files.foreign.recording import (
    Coordinates,
    Run,
    Source,
    coordinate_names,
    expand,
    listed,
    split_name,
)
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
    options = _recognised(source, options)
    clock = read_clock(source, options)
    inside = in_range(clock.t, options)
    if options.markers:
        found = link_coordinates(table, inside, options, _numbers)
    else:
        pairs = expand(options.q, table)
        columns = tuple(x for _, x in pairs)
        angles = tuple(x in source.angles for x in columns)
        q = _numbers(table, columns, options)
        found = Coordinates(q, coordinate_names(pairs), columns, angles)
    units = _units(source, found.names, found.columns)
    partners: dict[str, np.ndarray | None] = {}
    for key in ("v", "p"):
        others = [x for _, x in expand(getattr(options, key), table)]
        if others and len(others) != len(found.names):
            raise UserError(
                f"{key} needs one column for each of the {len(found.names)} coordinates "
                f"({', '.join(found.names)}); got {len(others)}: {', '.join(others)}."
            )
        partners[key] = _numbers(table, others, options) if others else None
        units |= _units(source, [f"{key}_{x}" for x in found.names], others)
    _refuse_twice(options, table)
    whole = Run(source.label, clock.t, found.q, partners["v"], partners["p"], None, table.row)
    runs = []
    for label, rows in trials(table, options.trial, source.label, clock.t):
        rows = rows[inside[rows]]
        if len(rows):
            mean = None if found.lengths is None else np.nanmean(found.lengths[rows], axis=0)
            runs.append(dataclasses.replace(whole.take(rows, label), lengths=mean))
    return Mapped(
        runs=runs,
        names=found.names,
        degrees=tuple(source.units.get(x, "").casefold() in _DEGREES for x in found.columns),
        units=units,
        angles=found.angles,
        notes=(*source.notes, *clock.notes, *found.notes),
        warnings=(*source.warnings, *_unused_times(table, options), *found.warnings),
        outside=int((~inside).sum()),
        unit_stated=clock.stated,
    )


def _units(source: Source, labels: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
    pairs = zip(labels, columns, strict=False)  # there may be no columns
    return {label: source.units[x] for label, x in pairs if x in source.units}


def _recognised(source: Source, options: ImportOptions) -> ImportOptions:
    """`options`, with columns that are recognised by name where the user gave none."""
    names = list(source.table.columns)
    found = {}
    if options.time is None and options.rate is None:
        found["time"] = next((x for x in names if x.casefold() in TIME_NAMES), None)
    if options.q or options.markers:
        return options.model_copy(update=found)
    stated = {x: "q" for x in source.coordinates}
    for key in ("p", "v"):
        labels = {f"{key}_{x}": f"{key}:{x}" for x in source.coordinates}
        stated |= {k: x for k, x in labels.items() if k in source.table.columns}
    time = found.get("time", options.time)
    try:
        roles = find_roles([x for x in names if x != time], stated or None)
    except UserError:
        raise UserError(
            f"which columns are the coordinates? Name them (q), by name or by position from 1, or "
            f"name markers; it has {listed(names)}."
        ) from None
    found |= {"q": tuple(x for _, x in roles.q), "trial": options.trial or roles.trajectory}
    for key in ("v", "p"):
        found[key] = getattr(options, key) or tuple(x for _, x in getattr(roles, key))
    return options.model_copy(update=found)


def _refuse_twice(options: ImportOptions, table: Table) -> None:
    """One column has one meaning."""
    meant: dict[str, str] = {}
    time = () if options.time is None else (options.time,)
    given = {"time": time, "q": options.q, "v": options.v, "p": options.p}
    columns = {role: [column for _, column in expand(x, table)] for role, x in given.items()}
    if options.markers:
        columns["markers"] = marker_columns(table, options)
    for role, some in columns.items():
        for column in some:
            if column in meant:
                raise UserError(
                    f"the column {column!r} is named twice, as {meant[column]} and {role}; name "
                    f"another one."
                )
            meant[column] = role


def _unused_times(table: Table, options: ImportOptions) -> tuple[str, ...]:
    times = [x for x in table.columns if x.casefold() in TIME_NAMES]
    if options.rate is None or not times:
        return ()
    return (f"times follow from the rate, not from the column {times[0]!r}; leave rate out",)


def _numbers(
    table: Table, columns: Sequence[str], options: ImportOptions
) -> Float[np.ndarray, "N d"]:
    values = np.stack([table.numbers(x) for x in columns], axis=-1)
    values[~np.isfinite(values) | np.isin(values, options.missing)] = np.nan
    for column, numbers in zip(columns, values.T, strict=True):
        if np.isnan(numbers).all():
            raise UserError(f"column {column!r} has no number at all; check which column it is.")
        largest = np.nanmax(np.abs(numbers))
        if largest > LARGEST:
            raise UserError(
                f"column {column!r} holds {largest:.3g}, which cannot be a measurement; correct "
                f"it, or declare it as missing."
            )
    return values
