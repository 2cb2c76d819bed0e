"""MATLAB's .mat: version 5 to 7 through SciPy, 7.3 through HDF5. Written as version 5.

In MATLAB, `char(dhn)` shows the header.
"""

import importlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from dhn.errors import UserError
from dhn.files.formats.mat_structure import check_structure


def load(path: Path) -> dict[str, np.ndarray]:
    """All numeric variables."""
    arrays = load_nested(path)
    for name in [k for k, x in arrays.items() if not _numeric(x)]:
        if name in ("q", "p", "v", "t", "known"):
            raise UserError(
                f"its variable {name!r} is a cell, struct or text; store a plain numeric array."
            )
        del arrays[name]
    if not arrays:
        raise UserError("it has no numeric variables; store q, p and t as plain arrays.")
    return arrays


def load_nested(path: Path) -> dict[str, Any]:
    """All variables; cells as object arrays, structs as structured arrays."""
    content = path.read_bytes()
    if b"\x02" in content[124:126]:  # the version, in either byte order
        try:
            mat73 = importlib.import_module("dhn.files.formats.mat73")
        except ImportError:
            raise UserError(
                'it is a MATLAB 7.3 file, which needs an extra: pip install "dhn[hdf5]"; '
                "or save it with save(..., '-v7')."
            ) from None
        return mat73.load(path)
    if b"\0" in content[:4]:
        raise UserError("it is a MATLAB 4 file or damaged; save it with save(..., '-v7').")
    check_structure(content)
    variables = scipy.io.loadmat(io.BytesIO(content))
    return {k: x for k, x in variables.items() if not k.startswith("__")}


def save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Uncompressed version 5, which every MATLAB and Octave reads."""
    scipy.io.savemat(path, dict(arrays), oned_as="row")


def _numeric(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
