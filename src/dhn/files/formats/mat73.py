"""MATLAB 7.3 files, which are HDF5: axes reversed, cells as references, structs as groups."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np

from dhn.files.formats.hdf5 import datasets

_DEEPEST = 50  # levels of cells and structs; references may form a circle


def load(path: Path) -> dict[str, Any]:
    """All variables as SciPy would give them: cells as object arrays, structs as structured ones.

    Text, complex and sparse variables are left out.
    """
    with h5py.File(path, "r") as file:
        datasets(file)
        names = [x for x in map(str, file) if x[0] != "#"]  # #refs# holds the contents of cells
        found = {name: _value(file, file[name], 0) for name in names}
    return {k: x for k, x in found.items() if x is not None}


def _value(file: h5py.File, item: Any, depth: int) -> np.ndarray | None:
    if depth > _DEEPEST:
        raise ValueError(f"variables are nested more than {_DEEPEST} levels deep")
    if isinstance(item, h5py.Group):
        return None if "MATLAB_sparse" in item.attrs else _struct(file, item, depth)
    if "MATLAB_empty" in item.attrs:
        return np.empty((0, 0))
    if h5py.check_ref_dtype(item.dtype) is h5py.Reference:
        cells = np.empty(item.shape, dtype=object)
        for index, reference in np.ndenumerate(item[()]):
            inner = _value(file, file[reference], depth + 1)
            cells[index] = np.empty((0, 0)) if inner is None else inner
        return cells.T
    text = _class(item) == "char"
    return None if text or item.dtype.kind not in "fiub" else np.asarray(item[()]).T


def _struct(file: h5py.File, group: h5py.Group, depth: int) -> np.ndarray:
    fields = {name: _value(file, group[name], depth + 1) for name in group}
    fields = {k: x for k, x in fields.items() if x is not None}
    struct = np.empty((1, 1), dtype=[(name, object) for name in fields])
    for name, value in fields.items():
        struct[name][0, 0] = value
    return struct


def _class(item: h5py.Dataset) -> str:
    found = item.attrs.get("MATLAB_class", b"")
    return found.decode() if isinstance(found, bytes) else str(found)
