"""HDF5: one dataset a field at the root of the file."""

from collections.abc import Mapping
from pathlib import Path

import h5py
import numpy as np


def load(path: Path) -> dict[str, np.ndarray]:
    """All datasets; those inside groups under their path, e.g. `run/q`."""
    arrays: dict[str, np.ndarray] = {}

    def visit(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset) and item.dtype.kind in "fiub":
            arrays[name] = item[()]

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return {k: np.asarray(x) for k, x in arrays.items()}


def save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Without time stamps, so that the same arrays give the same bytes."""
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, track_times=False)
