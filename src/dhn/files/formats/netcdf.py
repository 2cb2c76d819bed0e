"""NetCDF-4 with named dimensions; xarray and other tools open it as it is."""

import io
from collections.abc import Mapping
from pathlib import Path

import h5py
import netCDF4
import numpy as np

from dhn.files.formats.hdf5 import datasets
from dhn.memory import check_memory

_STATES = ("trajectory", "state", "coordinate")
_DIMENSIONS = {
    "dhn": ("byte",),
    **dict.fromkeys(("q", "p", "v"), _STATES),
    "known": _STATES[:2],
    "params": ("trajectory", "parameter"),
    "noise": ("part", "coordinate"),
    "q_quantiles": ("q_level", *_STATES),
    "p_quantiles": ("p_level", *_STATES),
}


def load(path: Path) -> dict[str, np.ndarray]:
    """All numeric variables; fill values become NaN."""
    content = path.read_bytes()
    if content.startswith(b"\x89HDF"):  # NetCDF-4; the library would follow links to other files
        with h5py.File(io.BytesIO(content), "r") as file:
            datasets(file)
    # From memory: after a damaged file the library may keep it open and then serve its old
    # contents for a new file in its place.
    with netCDF4.Dataset(path.name, memory=content) as file:
        numeric = {
            k: x for k, x in file.variables.items() if getattr(x.dtype, "kind", "O") in "fiub"
        }
        size = sum(int(x.size) * x.dtype.itemsize for x in numeric.values())
        check_memory(size, "its variables")
        return {name: _values(variable) for name, variable in numeric.items()}


def _values(variable: netCDF4.Variable) -> np.ndarray:
    value = np.ma.asarray(variable[...])
    hidden = np.ma.getmaskarray(value)
    return np.where(hidden, np.nan, value.data) if hidden.any() else value.data


def save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """One variable a field."""
    dimensions = _DIMENSIONS | {"t": _STATES[2 - arrays["t"].ndim : 2]}
    if "noise" in arrays and arrays["noise"].ndim == 4:
        dimensions["noise"] = (*_STATES[:2], *_DIMENSIONS["noise"])
    with netCDF4.Dataset(str(path), "w", format="NETCDF4") as file:
        for name, array in arrays.items():
            for label, size in zip(dimensions[name], array.shape, strict=True):
                if label not in file.dimensions:
                    file.createDimension(label, size)
            array = array.astype(np.uint8) if array.dtype == bool else array
            # Any other fill value would hide a number that happens to equal it.
            fill = np.nan if array.dtype.kind == "f" else None
            variable = file.createVariable(name, array.dtype, dimensions[name], fill_value=fill)
            variable[...] = array
