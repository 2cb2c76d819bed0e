"""NumPy's .npz: our default. Object arrays, which would need pickle, are refused."""

import math
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dhn.errors import UserError
from dhn.memory import check_memory

_MAGIC = b"\x93NUMPY"
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def load(path: Path) -> dict[str, np.ndarray]:
    """All arrays of the archive, after a check of the sizes that it declares."""
    with open(path, "rb") as file:
        if file.read(len(_MAGIC)) == _MAGIC:
            raise UserError(
                "it holds one bare array, not an .npz archive; use np.savez(q=, p=, t=)."
            )
    with zipfile.ZipFile(path) as archive:
        members = [x for x in archive.infolist() if x.filename.endswith(".npy")]
        if not members:
            raise UserError("it is an archive without arrays; write it with np.savez(q=, p=, t=).")
        if len({x.filename for x in members}) < len(members):
            raise ValueError("two of its arrays have the same name")
        check_memory(sum(x.file_size for x in members), "its arrays")
        return {x.filename.removesuffix(".npy"): _array(archive, x) for x in members}


def save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """The same arrays give the same bytes."""
    np.savez(path, allow_pickle=False, **arrays)


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    name = member.filename.removesuffix(".npy")
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"array {name!r} has the format version {version}")
        shape, _, dtype = _HEADERS[version](file)
        if dtype.hasobject:
            raise UserError(
                f"its array {name!r} holds Python objects, which are never loaded; "
                f"save plain numbers instead."
            )
        held, declared = member.file_size - file.tell(), math.prod(shape) * dtype.itemsize
        if held != declared:
            raise ValueError(f"array {name!r} declares {declared} bytes but holds {held}")
    with archive.open(member) as file:
        return np.lib.format.read_array(file, allow_pickle=False)
