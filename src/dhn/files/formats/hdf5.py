"""HDF5: one dataset a field at the root of the file."""

from collections.abc import Mapping
from pathlib import Path

import h5py
import numpy as np

from dhn.errors import UserError
from dhn.memory import check_memory


def load(path: Path) -> dict[str, np.ndarray]:
    """All numeric datasets; those inside groups under their path, e.g. `run/q`."""
    with h5py.File(path, "r") as file:
        found = datasets(file)
        return {k: np.asarray(x[()]) for k, x in found.items() if x.dtype.kind in "fiub"}


def datasets(file: h5py.File) -> dict[str, h5py.Dataset]:
    """Every dataset by its path; a `UserError` if any lies in another file or is too large.

    Links and storage that point at other files are refused, so that a file from elsewhere cannot
    read what it names on this machine.
    """
    outside: list[tuple[str, str]] = []
    found: dict[str, h5py.Dataset] = {}

    def look(name: str, link: object) -> None:
        if isinstance(link, h5py.ExternalLink):
            outside.append((name, "is a link to another file"))

    def visit(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            if item.is_virtual or item.external:
                outside.append((name, "keeps its numbers in another file"))
            elif item.shape is not None:
                found[name] = item

    file.visititems_links(look)
    if not outside:
        file.visititems(visit)
    if outside:
        name, reason = outside[0]
        raise UserError(
            f"its dataset {name!r} {reason}, which is never read; copy the numbers into this file."
        )
    check_memory(sum(x.nbytes for x in found.values()), "its datasets")
    return found


def save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Without time stamps, so that the same arrays give the same bytes."""
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, track_times=False)
