"""A recording: first a table with columns that people refer to, then a run of rows or states."""

import dataclasses
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, final

import numpy as np
from jaxtyping import Float

from dhn.errors import NEAR, UserError, did_you_mean
from dhn.files.roles import listing
from dhn.files.table import Table
from dhn.trajectories.labels import check_label, default_names


@final
@dataclasses.dataclass(frozen=True)
class Source:
    """The rows of one recording as they stand in the file."""

    label: str
    """Name of the recording: the file's, or the file's and the variable's."""
    table: Table
    units: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Column -> unit, as the file states it."""
    notes: tuple[str, ...] = ()
    """What had to be assumed to read it."""
    warnings: tuple[str, ...] = ()
    """What was assumed and may well be wrong."""
    dropped: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """Reason -> number of lines left out."""
    rate: float | None = None
    """Samples a second, where the file states it."""
    angles: frozenset[str] = frozenset()
    """Columns that are angles, where the file states it."""
    coordinates: tuple[str, ...] = ()
    """Columns that are coordinates, where the file states it."""


@final
@dataclasses.dataclass(frozen=True)
class Coordinates:
    """The coordinates of all rows of a table, and the columns that they come from."""

    q: Float[np.ndarray, "N d"]
    names: tuple[str, ...]
    columns: tuple[str, ...]
    angles: tuple[bool, ...]
    lengths: Float[np.ndarray, "N d"] | None = None
    """Of the links, where markers were measured."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


MISSING, INTERPOLATED, RESAMPLED, COPIED = range(4)
"""How a state came about (`Run.kind`)."""
KINDS = ("missing", "interpolated", "resampled", "copied")


@final
@dataclasses.dataclass(frozen=True)
class Run:
    """`N` rows or states of one trial."""

    id: str
    t: np.ndarray
    """(N,) seconds."""
    q: np.ndarray
    """(N, d)."""
    v: np.ndarray | None = None
    """(N, d) velocities, where they were measured."""
    p: np.ndarray | None = None
    """(N, d) momenta, where they were measured."""
    lengths: np.ndarray | None = None
    """(links,) mean lengths of the links, where markers were measured."""
    where: Callable[[int], str] = lambda i: f"row {i + 1}"
    """What a person calls the row at position i of the file."""
    rows: np.ndarray = None  # type: ignore[assignment]  # always an array once constructed
    """(N,) position of each row in the file."""
    kind: np.ndarray = None  # type: ignore[assignment]  # always an array once constructed
    """(N,) of MISSING, INTERPOLATED, RESAMPLED, COPIED; rows of a file are copied."""

    def __post_init__(self):
        n = len(self.t)
        for name, default in {"rows": np.arange(n), "kind": np.full(n, COPIED)}.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, default)

    def __len__(self) -> int:
        return len(self.t)

    @property
    def known(self) -> np.ndarray:
        """(N,) bool: whether something was measured here."""
        return self.kind >= RESAMPLED

    def take(self, index: Any, id: str | None = None) -> "Run":
        """The rows at `index` (positions, a mask or a slice)."""
        names = ("t", "q", "v", "p", "rows", "kind")
        fields = {k: getattr(self, k) for k in names}
        picked = {k: None if x is None else x[index] for k, x in fields.items()}
        return dataclasses.replace(self, id=id or self.id, **picked)

    def complete(self) -> "Run":
        """The rows in which nothing is missing."""
        arrays = [x for x in (self.q, self.v, self.p) if x is not None]
        finite = np.all([np.isfinite(x).all(-1) for x in arrays], axis=0)
        return self if finite.all() else self.take(finite)

    def place(self, i: int) -> str:
        """What a person calls row i of this run."""
        return self.where(int(self.rows[i]))


_PART = re.compile(r"(.+):\d+")


def resolve(ref: str, names: Collection[str]) -> str:
    """The column called `ref`, or the one at that position from 1."""
    if ref in names:
        return ref
    there = list(names)
    if ref.isdecimal():
        if 1 <= int(ref) <= len(there):
            return there[int(ref) - 1]
        raise UserError(f"there is no column {ref}; columns run from 1 to {len(there)}.")
    same = [x for x in there if x.casefold() == ref.casefold()]
    if len(same) == 1:
        return same[0]
    hint = did_you_mean(ref, there, NEAR)
    raise UserError(f"there is no column {ref!r}{hint}; it has {listed(there)}.")


def listed(names: Collection[str]) -> str:
    """The columns of a table for a message."""
    if all(x.isdecimal() for x in names):
        return f"{len(names)} columns without names; give positions from 1"
    return listing([f"column {x}" if x.isdecimal() else x for x in names])


def split_name(ref: str) -> tuple[str, str]:
    """`name=column` -> (name, column); the name is empty without an equals sign."""
    name, equals, column = ref.partition("=")
    return (name.strip(), column.strip()) if equals else ("", ref.strip())


def expand(refs: Sequence[str], table: Table) -> list[tuple[str, str]]:
    """(our name or nothing, column); a variable with several rows stands for all of them."""
    parts: dict[str, list[str]] = {}
    for name in table.columns:
        match = _PART.fullmatch(name)
        if match:
            parts.setdefault(match[1], []).append(name)
    found = []
    for ref in refs:
        own, column = split_name(ref)
        if not own and "=" in ref:
            raise UserError(f"{ref!r} renames a column to nothing; write NAME={column}.")
        if column not in table.columns and column in parts:
            found += [(f"{own}{k + 1}" if own else "", x) for k, x in enumerate(parts[column])]
        else:
            found.append((own, resolve(column, table.columns)))
    return found


def coordinate_names(columns: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """A name for each (our name or nothing, column)."""
    plain = all(not re.search(r"[:*]", x) and not x.isdecimal() for _, x in columns)
    names: dict[str, None] = {}
    for (own, column), numbered in zip(columns, default_names(len(columns)), strict=True):
        name = own or (column if plain else numbered)
        check_label("names", name)
        if name in names:
            raise UserError(f"two coordinates are called {name!r}; rename one: 'other=column'.")
        names[name] = None
    return tuple(names)
