"""References to columns: by name, by position, with a name of the user's own."""

import difflib
import re
from collections.abc import Collection, Sequence

from dhn.errors import UserError
from dhn.files.roles import COMPARED, listing
from dhn.files.table import Table
from dhn.trajectories.labels import check_label

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
    near = difflib.get_close_matches(ref, there[:COMPARED], n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
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
    default = ["q"] if len(columns) == 1 else [f"q{k + 1}" for k in range(len(columns))]
    names: dict[str, None] = {}
    for (own, column), numbered in zip(columns, default, strict=True):
        name = own or (column if plain else numbered)
        check_label("names", name)
        if name in names:
            raise UserError(f"two coordinates are called {name!r}; rename one: 'other=column'.")
        names[name] = None
    return tuple(names)
