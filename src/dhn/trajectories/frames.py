"""`Trajectories` as a pandas DataFrame or an xarray Dataset, and back from a Dataset.

Frames are read by `dhn.files.accepting`, which recognises columns as it does those of files.
pandas and xarray are imported on first use.
"""

import dataclasses
import importlib
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from dhn.checks import numbers, texts
from dhn.errors import UserError
from dhn.trajectories.contents import header_dict
from dhn.trajectories.labels import (
    KNOWN,
    TIME,
    TRAJECTORY,
    default_names,
    noise_label,
    quantile_label,
    state_labels,
)

if TYPE_CHECKING:
    import pandas
    import xarray

    from dhn.trajectories.container import Trajectories

ATTRIBUTE = "dhn"
"""Key of `frame.attrs` that holds what does not fit in columns."""
REMEMBERED = (
    *("names", "angles", "units", "system", "fields", "params", "q_levels", "p_levels"),
    "each_noise",
)
"""Parts of the header that are kept there; ids, times and numbers are in the columns."""
DIMENSIONS = (TRAJECTORY, "time", "coordinate")
"""Dimensions of a Dataset's states."""


def optional(name: str) -> ModuleType:
    """An optional package, or a `UserError` with the command that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise UserError(f'{name} is not installed: pip install "dhn[{name}]".') from None


def state_columns(data: "Trajectories") -> dict[str, Any]:
    """One row a state that has a time; padding without a time takes no rows.

    Arguments:
        data: Trajectories.

    Returns:
        Label -> column of equal length: trajectory, t, coordinates, `p_<name>`, `v_<name>`, known,
        parameters, quantiles such as `theta_q05`, and `noise_<column>` where the noise varies.
    """
    timed = np.isfinite(data.times)
    timed[~timed.any(1), 0] = True  # a row that keeps the parameters of an empty trajectory
    i, j = np.nonzero(timed)
    columns: dict[str, Any] = {TRAJECTORY: [data.ids[k] for k in i], TIME: data.times[i, j]}
    labels = state_labels(data.names)
    for key, array in (("q", data.q), ("p", data.p), ("v", data.v)):
        if array is not None:
            columns |= {label: array[i, j, k] for k, label in enumerate(labels[key])}
    columns[KNOWN] = data.known[i, j].astype(np.int64)
    columns |= {name: value[i] for name, value in data.params.items()}
    momenta = labels["v" if data.p is None else "p"]
    for stems, quantiles in ((labels["q"], data.q_quantiles), (momenta, data.p_quantiles)):
        for level, array in quantiles.items():
            for k, stem in enumerate(stems):
                columns[quantile_label(stem, level)] = array[i, j, k]
    if data.noise is not None and data.noise.ndim == 4:
        for row, stems in enumerate((labels["q"], momenta)):
            for k, stem in enumerate(stems):
                columns[noise_label(stem)] = data.noise[i, j, row, k]
    return columns


def to_dataframe(data: "Trajectories") -> "pandas.DataFrame":
    """See `Trajectories.to_dataframe`."""
    columns = state_columns(data)
    columns[KNOWN] = columns[KNOWN].astype(bool)
    frame = optional("pandas").DataFrame(columns)
    header = header_dict(data)
    frame.attrs[ATTRIBUTE] = {key: header[key] for key in REMEMBERED if key in header}
    frame.attrs[ATTRIBUTE]["noise"] = shared_noise(data)
    frame.attrs[ATTRIBUTE]["code_group"] = dict(zip(data.ids, data.code_group, strict=False))
    return frame


def shared_noise(data: "Trajectories") -> list[Any] | None:
    """The noise as a (2, d) list; None if there is none or it stands in columns."""
    return None if data.noise is None or data.noise.ndim == 4 else data.noise.tolist()


def to_xarray(data: "Trajectories") -> "xarray.Dataset":
    """See `Trajectories.to_xarray`."""
    units, labels = data.units, state_labels(data.names)
    variables: dict[str, Any] = {}
    for key, array in (("q", data.q), ("p", data.p), ("v", data.v)):
        if array is not None:
            variables[key] = (DIMENSIONS, array, _attributes(units, labels[key]))
    variables[KNOWN] = (DIMENSIONS[:2], data.known)
    if data.params:
        values = np.stack(list(data.params.values()), axis=-1)
        variables["params"] = ((TRAJECTORY, "parameter"), values, _attributes(units, data.params))
    if data.noise is not None:
        of = DIMENSIONS if data.noise.ndim == 4 else ("coordinate",)
        variables["q_noise"] = (of, data.noise[..., 0, :])
        variables["p_noise"] = (of, data.noise[..., 1, :])
    coordinates: dict[str, Any] = {
        TRAJECTORY: list(data.ids),
        "coordinate": list(data.names),
        "angle": ("coordinate", np.array(data.angles)),
        # Times of its own for each trajectory cannot be an index.
        ("time" if data.t.ndim == 1 else TIME): (
            "time" if data.t.ndim == 1 else DIMENSIONS[:2], data.t, _attributes(units, [TIME])
        ),
    }  # fmt: skip
    if data.params:
        coordinates["parameter"] = list(data.params)
    if data.code_group:
        coordinates["code_group"] = (TRAJECTORY, list(data.code_group))
    for part, quantiles in (("q", data.q_quantiles), ("p", data.p_quantiles)):
        if quantiles:
            stacked = np.stack(list(quantiles.values()))
            variables[f"{part}_quantiles"] = ((f"{part}_level", *DIMENSIONS), stacked)
            coordinates[f"{part}_level"] = list(quantiles)
    attributes = {} if data.system is None else {"system": data.system}
    return optional("xarray").Dataset(variables, coordinates, attributes)


def from_xarray(
    dataset: "xarray.Dataset",
    *,
    q: str | Sequence[str] = "q",
    p: str | Sequence[str] | None = None,
    v: str | Sequence[str] | None = None,
    **fields: Any,
) -> "Trajectories":
    """Trajectories from a Dataset with the dimensions trajectory, time and coordinate.

    A variable needs `time`; without `trajectory` there is one trajectory, and without `coordinate`
    every variable is one coordinate: `from_xarray(dataset, q=["theta"], v=["omega"])`.

    Arguments:
        dataset: Its `time` coordinate (or a variable `t` of trajectory and time) holds the times;
            missing numbers are NaN.
        q: Variable, or variables, of the coordinates.
        p: Of the momenta; `p` by default if there is such a variable and `q` is the default.
        v: Of the velocities, likewise.
        fields: Other fields of `Trajectories`, such as `angles=(True,)`.

    Returns:
        The trajectories, with parameters, noise, quantiles and `units` if the Dataset has them.
    """
    from dhn.trajectories.container import Trajectories

    if type(dataset).__name__ != "Dataset":  # xarray need not be here
        raise UserError(f"expected an xarray Dataset; got {type(dataset).__name__}.")
    if unknown := set(fields) - {x.name for x in dataclasses.fields(Trajectories)}:
        raise UserError(f"{min(unknown)!r} is not a field of Trajectories.")
    given = {"q": texts("q", q), "p": texts("p", p or ()), "v": texts("v", v or ())}
    own = given["q"] == ("q",)
    for key in ("p", "v"):
        if own and key in dataset and not given[key]:
            given[key] = (key,)
    if not given["q"]:
        raise UserError("name the variables of the coordinates: q=[...].")
    found: dict[str, Any] = {}
    names = {key: list(labels) for key, labels in given.items() if labels}
    for key, labels in names.items():
        parts = [_states(dataset, x) for x in labels]
        if len({part.shape[0] for part in parts}) > 1:
            raise UserError(
                f"the variables {', '.join(labels)} have {len(parts[0])} and other numbers of "
                f"trajectories; give all of them the dimension trajectory."
            )
        found[key] = np.concatenate(parts, axis=-1)
    d = found["q"].shape[-1]
    if "coordinate" in dataset.coords and len(dataset["coordinate"]) == d:
        found["names"] = tuple(str(x) for x in dataset["coordinate"].values)
    elif len(names["q"]) == d and not own:
        found["names"] = tuple(names["q"])
    found["t"] = _times(dataset)
    found |= _extras(dataset)
    found["units"] = _units(dataset, found, names)
    return Trajectories(**(found | fields))


def _attributes(units: Mapping[str, str], labels: Any) -> dict[str, Any]:
    """`units` as one text if all labels share it, else one text a label."""
    words = [units.get(x, "") for x in labels]
    if not any(words):
        return {}
    return {"units": words[0] if len(set(words)) == 1 else words}


def _states(dataset: "xarray.Dataset", name: str) -> np.ndarray:
    """(n, T, d) values of one variable."""
    if name not in dataset:
        have = ", ".join(map(str, dataset.data_vars)) or "none"
        raise UserError(f"the Dataset has no variable {name!r}; it has: {have}.")
    array = dataset[name]
    dims = set(map(str, array.dims))
    if "time" not in dims or not dims <= set(DIMENSIONS):
        raise UserError(
            f"the variable {name!r} has the dimensions ({', '.join(map(str, array.dims))}); "
            f"expected time, and perhaps trajectory and coordinate: rename them."
        )
    for missing in sorted(set(DIMENSIONS) - dims):
        array = array.expand_dims(missing)
    return numbers(name, array.transpose(*DIMENSIONS).values)


def _values(dataset: "xarray.Dataset", name: str, *dimensions: str) -> np.ndarray:
    """The numbers of a variable of `to_xarray`, its axes in this order."""
    array = dataset[name]
    if set(array.dims) != set(dimensions):
        raise UserError(
            f"the variable {name!r} has the dimensions ({', '.join(map(str, array.dims))}); "
            f"expected {', '.join(dimensions)}: rename or drop it."
        )
    return numbers(name, array.transpose(*dimensions).values)


def _times(dataset: "xarray.Dataset") -> np.ndarray:
    name = "time" if "time" in dataset.coords else TIME
    if name not in dataset.variables:
        raise UserError("the Dataset has no times: add a coordinate 'time'.")
    array = dataset[name]
    if name == TIME and array.ndim == 2:
        array = array.transpose(*DIMENSIONS[:2])
    return seconds(array.values)


def seconds(times: np.ndarray) -> np.ndarray:
    """Times as numbers: dates and durations become seconds, dates since the first of them."""
    if times.dtype.kind not in "mM":
        return np.asarray(times)
    missing = np.isnat(times)
    if times.dtype.kind == "M":
        times = times - times[~missing].min() if (~missing).any() else times - times
    return np.where(missing, np.nan, times / np.timedelta64(1, "ns") * 1e-9)


def _extras(dataset: "xarray.Dataset") -> dict[str, Any]:
    """Fields of `Trajectories` that `to_xarray` writes beside the states."""
    found: dict[str, Any] = {}
    if TRAJECTORY in dataset.coords and dataset[TRAJECTORY].ndim == 1:
        found["ids"] = tuple(str(x) for x in dataset[TRAJECTORY].values)
    if "code_group" in dataset.coords:
        found["code_group"] = tuple(str(x) for x in dataset["code_group"].values)
    if KNOWN in dataset:
        found["known"] = _states(dataset, KNOWN)[..., 0]
    if "angle" in dataset.coords:
        found["angles"] = tuple(bool(x) for x in _values(dataset, "angle", "coordinate"))
    if "params" in dataset:
        columns = _values(dataset, "params", TRAJECTORY, "parameter").T
        labels = (str(x) for x in dataset["parameter"].values)
        found["params"] = dict(zip(labels, columns, strict=True))
    if "q_noise" in dataset and "p_noise" in dataset:
        of = DIMENSIONS if dataset["q_noise"].ndim == 3 else ("coordinate",)
        values = [_values(dataset, f"{x}_noise", *of) for x in ("q", "p")]
        found["noise"] = np.stack(values, axis=-2)
    for part in ("q", "p"):
        if f"{part}_quantiles" in dataset:
            stacked = _values(dataset, f"{part}_quantiles", f"{part}_level", *DIMENSIONS)
            levels = numbers(f"{part}_level", dataset[f"{part}_level"].values).tolist()
            found[f"{part}_quantiles"] = dict(zip(levels, stacked, strict=True))
    if "system" in dataset.attrs:
        found["system"] = str(dataset.attrs["system"])
    return found


def _units(
    dataset: "xarray.Dataset", found: Mapping[str, Any], variables: Mapping[str, list[str]]
) -> dict[str, str]:
    """The `units` attributes under the labels of `Trajectories`."""
    names = found.get("names", default_names(found["q"].shape[-1]))
    parts = [(state_labels(names)[key], of) for key, of in variables.items()]
    parts.append(([TIME], ["time" if "time" in dataset.coords else TIME]))
    if "params" in found:
        parts.append((list(found["params"]), ["params"]))
    units: dict[str, str] = {}
    for labels, sources in parts:
        shown: list[str] = []
        for source in sources:
            value = dataset[source].attrs.get("units", "")
            count = len(labels) // len(sources)
            each = isinstance(value, list | tuple | np.ndarray)
            shown += [str(x) for x in value] if each else [str(value)] * count
        if len(shown) == len(labels):
            units |= {x: text for x, text in zip(labels, shown, strict=True) if text}
    return units
