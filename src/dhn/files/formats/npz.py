"""NumPy's .npz: our default. Object arrays, which would need pickle, are refused."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dhn.errors import UserError


def load(path: Path) -> dict[str, np.ndarray]:
    """All arrays of the archive."""
    with open(path, "rb") as file:
        archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise UserError(
                "it holds one bare array, not an .npz archive; use np.savez(q=, p=, t=)."
            )
        arrays = {}
        for name in archive.files:
            try:
                arrays[name] = archive[name]
            except ValueError as error:
                if "allow_pickle" not in str(error):
                    raise
                raise UserError(
                    f"its array {name!r} holds Python objects, which are never loaded; "
                    f"save plain numbers instead."
                ) from None
        return arrays


def save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """The same arrays give the same bytes."""
    np.savez(path, allow_pickle=False, **arrays)
