"""Arrays inside JSON: little-endian base64 with a shape, exact in both directions."""

import base64
from typing import Any

import numpy as np

DTYPES = {"f4": np.dtype("<f4"), "f8": np.dtype("<f8")}
"""Names that the page's JavaScript knows (`decode.js`)."""


def encode(array: Any, dtype: str | None = None) -> dict[str, Any]:
    """An array of any shape as a JSON-able mapping.

    **Arguments:** `array`, of shape `(...)`; `dtype`, "f4" or "f8", by default the array's own
    precision.

    **Returns:** a mapping with `dtype`, `shape` and `data` (base64).
    """
    values = np.asarray(array)
    if dtype is None:
        dtype = "f4" if values.dtype == np.float32 else "f8"
    data = np.ascontiguousarray(values, DTYPES[dtype]).tobytes()
    return {
        "dtype": dtype,
        "shape": list(values.shape),
        "data": base64.b64encode(data).decode("ascii"),
    }


def decode(packed: dict[str, Any]) -> np.ndarray:
    """The array, of shape `packed["shape"]`, that `encode` packed."""
    flat = np.frombuffer(base64.b64decode(packed["data"]), DTYPES[packed["dtype"]])
    return flat.reshape(packed["shape"])
