"""The one place where data of any kind become `Trajectories`: tables, arrays and files."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dhn.checks import mapping, texts
from dhn.errors import UserError
from dhn.files.arrays import from_arrays, parse_header
from dhn.files.files import field_names, read
from dhn.files.roles import Roles
from dhn.files.source import AbstractSource
from dhn.files.stored import StoredTrajectories
from dhn.files.table import Table, from_table, own_roles
from dhn.trajectories.container import Trajectories
from dhn.trajectories.frames import ATTRIBUTE, REMEMBERED, from_xarray, seconds
from dhn.trajectories.labels import TIME, TRAJECTORY

if TYPE_CHECKING:
    import pandas
    import xarray

    TrajectoriesLike = (
        Trajectories
        | AbstractSource
        | Sequence[Trajectories]
        | Mapping[str, Any]
        | str
        | os.PathLike[str]
        | pandas.DataFrame
        | xarray.Dataset
    )
else:
    TrajectoriesLike = Any  # checked by `as_trajectories`, without importing pandas or xarray


def as_trajectories(data: TrajectoriesLike) -> Trajectories:
    """Data of any supported kind as trajectories.

    Arguments:
        data: `Trajectories`; a list of them; trajectories on disk, which are read whole; the path
            of a file that `read` understands; a pandas (or polars) DataFrame or an xarray Dataset
            with the names that `to_dataframe` and `to_xarray` use; or a dict of arrays `t` (T,),
            `q` (n, T, d), and perhaps `p`, `v`, `known` and parameters (n,). Missing numbers are
            NaN.

    Returns:
        The trajectories; a `UserError` for anything else.
    """
    if isinstance(data, Trajectories):
        return data
    if isinstance(data, StoredTrajectories):
        return data.read()
    if isinstance(data, AbstractSource):
        return data.rows(0, len(data))
    if isinstance(data, str | os.PathLike):
        return read(data)
    if isinstance(data, Mapping):
        if _is(data, "xarray", "Dataset"):
            return from_xarray(data)  # type: ignore[arg-type]
        return Trajectories(**from_arrays({str(k): _array(k, x) for k, x in data.items()}))
    if _is(data, "pandas", "DataFrame"):
        return from_dataframe(data)  # type: ignore[arg-type]
    if _is(data, "polars", "DataFrame"):
        return from_dataframe(data.to_pandas())  # type: ignore[union-attr]
    if isinstance(data, list | tuple) and data and all(isinstance(x, Trajectories) for x in data):
        return Trajectories.concatenate(data)
    raise UserError(
        f"expected Trajectories, a DataFrame, an xarray Dataset, a dict of arrays or a path; got "
        f"{type(data).__name__}. Arrays need names: {{'t': times, 'q': coordinates}}."
    )


def from_dataframe(
    frame: "pandas.DataFrame",
    *,
    trajectory: str | None = None,
    time: str | None = None,
    q: str | Sequence[str] = (),
    p: str | Sequence[str] = (),
    v: str | Sequence[str] = (),
    params: str | Sequence[str] = (),
    **fields: Any,
) -> Trajectories:
    """Trajectories from a pandas DataFrame with one row a state, in the order of time.

    Arguments:
        frame: Columns or index levels; missing numbers (NaN, None) are unknown. Dates and durations
            become seconds.
        trajectory: Column that labels the trajectory; `trajectory` if there is one, else all rows
            are one trajectory.
        time: Column of the times; `t` by default.
        q: Columns of the coordinates. Without them, names decide: those of `to_dataframe`, else
            `theta` with `p_theta` or `v_theta`, or q1, q2, ...; what remains is a parameter.
        p: Columns of the momenta, in the order of `q`.
        v: Columns of the velocities, in the order of `q`.
        params: Columns of constants of each trajectory.
        fields: Other fields of `Trajectories`, such as `angles=(True,)`, `units={"theta": "rad"}`.

    Returns:
        The trajectories; unequal lengths are padded.
    """
    given = {"trajectory": trajectory, "t": time, "q": q, "p": p, "v": v, "param": params}
    lists = {role: texts(role, () if x is None else x) for role, x in given.items()}
    roles = [(name, role) for role, names in lists.items() for name in names]
    named = [name for name, _ in roles]
    twice = next((x for x in named if named.count(x) > 1), None)
    if twice is not None:
        raise UserError(f"the column {twice!r} is named twice; give every column one role.")
    if (p or v or params) and not q:
        raise UserError("p, v and params are named together with q; name the coordinates, too.")
    table = _table(frame, time or TIME, trajectory or TRAJECTORY)
    if unknown := set(fields) - field_names():
        raise UserError(f"{min(unknown)!r} is not a field of Trajectories.")
    kept = frame.attrs.get(ATTRIBUTE)
    if q or kept is None:
        return Trajectories(**(from_table(table, dict(roles) or None) | fields))
    kept = _checked(kept)
    found = from_table(table, roles=_remembered(kept, roles, set(table.columns)))
    found = {"noise": kept["noise"], **found, "angles": kept["angles"], "system": kept["system"]}
    if groups := kept.get("code_group"):
        found["code_group"] = tuple(groups.get(x, x) for x in found["ids"])
    labels = {*table.columns, TIME}
    found["units"] = {k: x for k, x in kept["units"].items() if k in labels}
    return Trajectories(**(found | fields))


def _checked(kept: Any) -> dict[str, Any]:
    """What `to_dataframe` keeps in `frame.attrs`, if that is what stands there."""
    try:
        groups = mapping("code_group", kept.get("code_group", {}))
        there = {key: kept[key] for key in REMEMBERED if key in kept}
        whole = {"layout": 1, "shape": [1, 1, len(kept["names"])], "shared_time": False, "meta": {}}
        header = parse_header(json.dumps(there | whole), ids=False)
        return header | {"code_group": groups, "noise": kept["noise"]}
    except (UserError, AttributeError, LookupError, TypeError, ValueError):
        raise UserError(
            f"frame.attrs[{ATTRIBUTE!r}] is not what to_dataframe keeps there; delete it to read "
            f"the frame as a plain table."
        ) from None


def _remembered(kept: Mapping[str, Any], given: list[tuple[str, str]], there: set[str]) -> Roles:
    """The roles of a frame made by `to_dataframe`, of which columns may have been dropped."""
    roles = own_roles(kept)
    gone = [name for name, label in roles.q if label not in there]
    if gone:
        raise UserError(
            f"the frame was made with the coordinate {gone[0]!r}, but has no such column; name "
            f"its columns: q=[...]."
        )
    for key in ("p", "v"):
        if not any(label in there for _, label in getattr(roles, key)):
            setattr(roles, key, [])
    roles.params = [pair for pair in roles.params if pair[1] in there]
    roles.quantiles = [x for x in roles.quantiles if x[2] in there]
    roles.noise = [pair for pair in roles.noise if pair[1] in there]
    for label, role in given:
        setattr(roles, role, label)
    for role in ("trajectory", "known"):
        if getattr(roles, role) not in there:
            setattr(roles, role, None)
    if roles.t not in there:
        raise UserError(f"the frame has no column {roles.t!r}; name that of the times: time=....")
    return roles


def _table(frame: "pandas.DataFrame", time: str, trajectory: str) -> Table:
    """The frame's columns, named index levels included."""
    if type(frame).__name__ != "DataFrame":  # pandas need not be here
        raise UserError(f"expected a pandas DataFrame; got {type(frame).__name__}.")
    levels = [x for x in frame.index.names if x is not None and x not in frame.columns]
    frame = frame.reset_index(level=levels) if levels else frame
    labels = [str(x) for x in frame.columns]
    if len(set(labels)) < len(labels):
        raise UserError("two columns of the DataFrame have the same name; rename one of them.")
    columns: dict[str, Any] = {}
    for k, label in enumerate(labels):
        column = frame.iloc[:, k]
        missing = column.isna().to_numpy()
        if column.dtype.kind in "mM" and label == time:
            plain = column.dt.tz_localize(None) if column.dtype.kind == "M" else column
            columns[label] = seconds(plain.to_numpy())
        elif column.dtype.kind in "fiub" and label != trajectory:
            columns[label] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            cells = zip(column, missing, strict=True)
            columns[label] = ["" if empty else str(x) for x, empty in cells]
    return Table(columns)


def _is(data: object, package: str, name: str) -> bool:
    """Whether `data` is of this class; a package that is not imported cannot have made it."""
    module = sys.modules.get(package)
    return module is not None and isinstance(data, getattr(module, name))


def _array(name: object, value: Any) -> np.ndarray:
    try:
        return np.asarray(value)
    except ValueError:
        raise UserError(
            f"{name} must be an array of real numbers. Arrays of unequal length: use "
            f"Trajectories.from_list."
        ) from None
