"""Trajectories as one table, one row a state: what .csv and Parquet files hold.

Columns: trajectory, t, the coordinates, `p_<name>`, `v_<name>`, known, the parameters, quantiles
such as `theta_q05`, and `noise_<column>` where each number has its noise. What does not fit in
columns is the same JSON header as elsewhere.
"""

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from dhn.errors import UserError
from dhn.files.arrays import header_fields, parse_header
from dhn.files.roles import Roles, find_roles
from dhn.memory import check_memory
from dhn.printable import printable
from dhn.trajectories.contents import header_dict
from dhn.trajectories.frames import shared_noise, state_columns
from dhn.trajectories.joining import merge_times
from dhn.trajectories.labels import (
    KNOWN,
    TIME,
    TRAJECTORY,
    noise_label,
    quantile_label,
    state_labels,
)
from dhn.trajectories.validation import check_times

if TYPE_CHECKING:
    from dhn.trajectories.container import Trajectories

_MISSING = ("", "na", "n/a", "null", "none")
_MEND = "mend it, or delete the header (the '# dhn' line) to read it as a plain table"
_TRUTH = {"1": 1.0, "0": 0.0, "true": 1.0, "false": 0.0, "1.0": 1.0, "0.0": 0.0}


@final
@dataclasses.dataclass(frozen=True)
class Table:
    """Columns of equal length, cells as text or numbers."""

    columns: Mapping[str, Sequence[str] | np.ndarray]
    header: str | None = None
    """The JSON header, if the file is one of ours."""
    row: Callable[[int], str] = lambda i: f"row {i + 1}"
    """What a person calls the row at position i."""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def numbers(self, label: str) -> np.ndarray:
        """A column as float64, empty cells as NaN."""
        cells = self.columns[label]
        if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiub":
            return cells.astype(np.float64)
        try:
            if "_" in "".join(cells):  # Python would read 1_0 as ten
                raise ValueError
            return np.array([float(x) if x else np.nan for x in cells], dtype=np.float64)
        except ValueError:
            return np.array([self._number(label, i, x) for i, x in enumerate(cells)])

    def _number(self, label: str, i: int, cell: str) -> float:
        if cell.strip().casefold() in _MISSING:
            return np.nan
        try:
            if "_" in cell:
                raise ValueError
            return float(cell)
        except ValueError:
            comma = " with a decimal point" if "," in cell else ""
            raise UserError(
                f"{self.row(i)}, column {label!r}: {cell!r:.60} is not a number; "
                f"correct it{comma} or leave the cell empty."
            ) from None

    def truths(self, label: str) -> np.ndarray:
        """A column of 1/0 or true/false as 1.0/0.0."""
        cells = self.columns[label]
        texts = [str(x).strip().casefold() for x in cells]
        for i, text in enumerate(texts):
            if text not in _TRUTH:
                raise UserError(
                    f"{self.row(i)}, column {label!r}: {text!r:.60} is not 1, 0, true or false."
                )
        return np.array([_TRUTH[x] for x in texts])

    def texts(self, label: str) -> list[str]:
        """A column of labels; none may be empty."""
        texts = [printable(str(x)).strip() for x in self.columns[label]]
        for i, text in enumerate(texts):
            if not text:
                raise UserError(f"{self.row(i)}, column {label!r}: the label is empty; fill it in.")
        return texts


def to_table(data: "Trajectories") -> Table:
    """One row a state that has a time; padding without a time takes no rows."""
    columns = state_columns(data)
    header = header_dict(data)
    header |= {"rows": len(columns[TIME]), "fingerprint": data.fingerprint()}
    header["noise"] = shared_noise(data)
    return Table(columns, json.dumps(header))


def from_table(
    table: Table,
    columns: Mapping[str, str | None] | None = None,
    roles: Roles | None = None,
) -> dict[str, Any]:
    """The fields of `Trajectories`: from one of our tables, or from any table.

    Arguments:
        table: Its columns.
        columns: Roles that a person gave; the others are recognised by name.
        roles: All roles, where they are known.

    Returns:
        Fields by name.
    """
    if len(table) == 0:
        raise UserError("it has no rows of data below the column names; add one row a state.")
    header = None if table.header is None or columns is not None else parse_header(table.header)
    if header is not None:
        roles = own_roles(header)
        _check_own(table, roles, header)
        check_memory(8 * math.prod(header["shape"]), "its trajectories")
    elif roles is None:
        roles = find_roles(list(table.columns), columns)
    if roles.t is None:
        raise UserError(
            "it has no column of times: call it 't', or map one: columns={'time': 't'}."
        )
    labels = ["0"] * len(table) if roles.trajectory is None else table.texts(roles.trajectory)
    ids = list(dict.fromkeys(labels)) if header is None else header["ids"]
    grid = _Grid.of(labels, ids, None if header is None else header["shape"][1])

    fields: dict[str, Any] = {"names": tuple(name for name, _ in roles.q), "ids": tuple(ids)}
    for key in ("q", "p", "v"):
        pairs = getattr(roles, key)
        if pairs:
            fields[key] = grid.states(table, [label for _, label in pairs])
    for field, stems in _quantile_stems(roles):
        found = {level for stem, level, _ in roles.quantiles if stem in stems}
        fields[field] = {x: grid.states(table, _complete(table, stems, x)) for x in sorted(found)}
    if roles.known is not None:
        fields["known"] = np.nan_to_num(grid.place(table.truths(roles.known)))
    fields["t"] = _times(table, roles, grid, fields, header)
    fields["params"] = {name: _constant(table, label, grid, ids) for name, label in roles.params}
    if header is not None:
        fields |= header_fields(header) | {"noise": header.get("noise")}
    if roles.noise:
        fields["noise"] = np.full((*grid.shape, 2, len(roles.q)), np.nan)
        for label, row, k in roles.noise_places():
            fields["noise"][:, :, row, k] = grid.place(table.numbers(label))
    return fields


def check_fingerprint(table: Table, data: "Trajectories") -> None:
    """Raise a `UserError` if one of our tables holds other numbers than were written."""
    expected = None if table.header is None else parse_header(table.header).get("fingerprint")
    if expected not in (None, data.fingerprint()):
        raise UserError(f"its numbers are not those that were written; {_MEND}.")


@final
@dataclasses.dataclass(frozen=True)
class _Grid:
    """Where each row of the table stands in (n, T) arrays."""

    trajectory: np.ndarray
    state: np.ndarray
    shape: tuple[int, int]

    @classmethod
    def of(cls, labels: Sequence[str], ids: Sequence[str], states: int | None) -> "_Grid":
        position = {label: i for i, label in enumerate(ids)}
        trajectory = np.array([position[x] for x in labels])
        counts = np.bincount(trajectory, minlength=len(ids))
        order = np.argsort(trajectory, kind="stable")
        state = np.empty(len(labels), dtype=np.intp)
        starts = np.repeat(np.cumsum(counts) - counts, counts)
        state[order] = np.arange(len(labels)) - starts
        return cls(trajectory, state, (len(ids), states or int(counts.max())))

    def place(self, values: np.ndarray) -> np.ndarray:
        result = np.full(self.shape, np.nan)
        result[self.trajectory, self.state] = values
        return result

    def states(self, table: Table, labels: Sequence[str]) -> np.ndarray:
        return np.stack([self.place(table.numbers(x)) for x in labels], axis=-1)


def own_roles(header: Mapping[str, Any]) -> Roles:
    """The roles of the columns that `state_columns` makes."""
    names = header["names"]
    roles = Roles(TIME, TRAJECTORY, KNOWN, [(x, x) for x in names])
    labels = state_labels(names)
    for key in ("p", "v"):
        if key in header["fields"]:
            setattr(roles, key, list(zip(names, labels[key], strict=True)))
    roles.params = [(x, x) for x in header["params"]]
    for (_, stems), part in zip(_quantile_stems(roles), ("q", "p"), strict=False):
        for level in header[f"{part}_levels"]:
            roles.quantiles += [(x, level, quantile_label(x, level)) for x in stems]
    if header.get("each_noise"):
        momenta = labels["p" if roles.p else "v"]
        roles.noise = [(x, noise_label(x)) for x in (*names, *momenta)]
    return roles


def _quantile_stems(roles: Roles) -> list[tuple[str, list[str]]]:
    """Labels that quantile columns are named after: of q, and of p or else v."""
    stems = [("q_quantiles", [label for _, label in roles.q])]
    if roles.p or roles.v:
        stems.append(("p_quantiles", [label for _, label in roles.p or roles.v]))
    return stems


def _check_own(table: Table, roles: Roles, header: Mapping[str, Any]) -> None:
    if len(table) != header.get("rows"):
        raise UserError(
            f"it has {len(table)} rows of data but was written with {header.get('rows')}; {_MEND}."
        )
    pairs = [*roles.q, *roles.p, *roles.v, *roles.params]
    expected = [TRAJECTORY, TIME, KNOWN, *(x for _, x in pairs), *(x[2] for x in roles.quantiles)]
    expected += [label for _, label in roles.noise]
    missing = [x for x in expected if x not in table.columns]
    if missing:
        raise UserError(f"its column {missing[0]!r} is missing; {_MEND}.")
    unknown = set(table.texts(TRAJECTORY)) ^ set(header["ids"])
    if unknown:
        raise UserError(f"its trajectory {min(unknown)!r} does not fit its header; {_MEND}.")


def _complete(table: Table, stems: list[str], level: float) -> list[str]:
    labels = [quantile_label(x, level) for x in stems]
    missing = [x for x in labels if x not in table.columns]
    if missing:
        raise UserError(
            f"the quantile column {missing[0]!r} is missing; a level needs one for each of "
            f"{', '.join(stems)}."
        )
    return labels


def _times(
    table: Table,
    roles: Roles,
    grid: _Grid,
    fields: Mapping[str, Any],
    header: Mapping[str, Any] | None,
) -> np.ndarray:
    t = grid.place(table.numbers(str(roles.t)))
    rows = np.zeros(grid.shape, dtype=np.intp)
    rows[grid.trajectory, grid.state] = np.arange(len(table))
    filled = np.zeros(grid.shape, dtype=bool)
    for key in ("q", "p", "v"):
        if key in fields:
            filled |= ~np.isnan(fields[key]).all(-1)
    hint = "sort the rows by time"
    if roles.trajectory is None:
        hint += ", or add a column 'trajectory' if there are several"
    check_times(t, filled, lambda i, j: table.row(int(rows[i, j])), hint)
    if header is None:
        return merge_times([row[np.isfinite(row)] for row in t], grid.shape[1])
    if not header["shared_time"]:
        return t
    if not (t == t[0]).all():
        i, j = np.argwhere(t != t[0])[0]
        raise UserError(
            f"{table.row(int(rows[i, j]))}: t differs from the times of the first trajectory, "
            f"though by the header all share them; mend it."
        )
    return t[0]


def _constant(table: Table, label: str, grid: _Grid, ids: Sequence[str]) -> np.ndarray:
    values = table.numbers(label)
    first = grid.place(values)[:, 0]
    expected = first[grid.trajectory]
    wrong = ~((values == expected) | (np.isnan(values) & np.isnan(expected)))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise UserError(
            f"{table.row(i)}, column {label!r}: {values[i]:.10g} after {expected[i]:.10g} in "
            f"trajectory {ids[grid.trajectory[i]]!r}; a parameter is constant within a trajectory "
            f"(if it is something else, map it: columns={{{label!r}: 'q'}} or None)."
        )
    return first
