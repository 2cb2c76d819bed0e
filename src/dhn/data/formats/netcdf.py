"""NetCDF-4 through xarray, with named dimensions."""

from collections.abc import Mapping
from pathlib import Path

import netCDF4  # noqa: F401  # xarray's engine: absent, it must fail here and not while writing
import numpy as np
import xarray

_DIMENSIONS = {
    "q": ("trajectory", "state", "coordinate"),
    "params": ("trajectory", "parameter"),
    "noise": ("part", "coordinate"),
    "known": ("trajectory", "state"),
    "q_quantiles": ("q_level", "trajectory", "state", "coordinate"),
    "p_quantiles": ("p_level", "trajectory", "state", "coordinate"),
    "dhn": ("byte",),
}


def load(path: Path) -> dict[str, np.ndarray]:
    """All numeric variables."""
    with xarray.open_dataset(path, engine="netcdf4", decode_times=False) as dataset:
        arrays = {str(k): np.asarray(x.values) for k, x in dataset.variables.items()}
    return {k: x for k, x in arrays.items() if x.dtype.kind in "fiub"}


def save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """One variable a field."""
    dimensions = _DIMENSIONS | {k: _DIMENSIONS["q"] for k in ("p", "v")}
    dimensions["t"] = ("trajectory", "state")[2 - arrays["t"].ndim :]
    dataset = xarray.Dataset({k: (dimensions[k], x) for k, x in arrays.items()})
    dataset.to_netcdf(path, engine="netcdf4", format="NETCDF4")
