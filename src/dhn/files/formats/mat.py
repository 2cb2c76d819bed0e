"""MATLAB's .mat up to version 7, through SciPy. In MATLAB, `char(dhn)` shows the header."""

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import scipy.io

from dhn.errors import UserError
from dhn.files.formats.mat_structure import check_structure


def load(path: Path) -> dict[str, np.ndarray]:
    """All numeric variables."""
    content = path.read_bytes()
    if b"\x02" in content[124:126]:  # the version, in either byte order
        raise UserError(
            "it is a MATLAB 7.3 file; save it with save(..., '-v7') or as .h5 and read that."
        )
    check_structure(content)
    variables = scipy.io.loadmat(io.BytesIO(content))
    arrays = {k: x for k, x in variables.items() if not k.startswith("__")}
    for name in [k for k, x in arrays.items() if not _numeric(x)]:
        if name in ("q", "p", "v", "t", "known"):
            raise UserError(
                f"its variable {name!r} is a cell, struct or text; store a plain numeric array."
            )
        del arrays[name]
    if not arrays:
        raise UserError("it has no numeric variables; store q, p and t as plain arrays.")
    return arrays


def save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Uncompressed version 5, which every MATLAB and Octave reads."""
    scipy.io.savemat(path, dict(arrays), oned_as="row")


def _numeric(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
