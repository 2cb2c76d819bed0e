"""Trajectories as a flat dict of plain arrays: what .npz, .mat, HDF5 and NetCDF files hold.

Numbers stand under q, p, v, t, known, params, noise, q_quantiles, p_quantiles; everything that is
text is one JSON object, in UTF-8 bytes, under `dhn`. No format needs pickle or a string type.
"""

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from dhn.errors import UserError

if TYPE_CHECKING:
    from dhn.data.trajectories import Trajectories

HEADER = "dhn"
LAYOUT = 1


def header_dict(data: "Trajectories") -> dict[str, Any]:
    """What is not numbers, as JSON values."""
    return {
        "layout": LAYOUT,
        "shape": list(data.q.shape),
        "shared_time": data.t.ndim == 1,
        "names": list(data.names),
        "angles": list(data.angles),
        "units": dict(data.units),
        "ids": list(data.ids),
        "system": data.system,
        "params": list(data.params),
        "q_levels": list(data.q_quantiles),
        "p_levels": list(data.p_quantiles),
        "meta": dict(data.meta),
    }


def parse_header(text: str | bytes) -> dict[str, Any]:
    """The header of one of our own files, or a `UserError`."""
    try:
        header = json.loads(text)
        if not isinstance(header, dict) or not isinstance(header["layout"], int):
            raise ValueError
    except (ValueError, KeyError):
        raise UserError(
            "its field 'dhn' (names, ids, units, ...) is damaged; write it anew."
        ) from None
    if header["layout"] > LAYOUT:
        raise UserError(
            f"it was written by a newer dhn (layout {header['layout']}, this one reads {LAYOUT}); "
            f"upgrade dhn."
        )
    return header


def to_arrays(data: "Trajectories") -> dict[str, np.ndarray]:
    """The dict of arrays; only fields that are there."""
    arrays = {"q": data.q, "t": data.t, "p": data.p, "v": data.v, "known": data.known}
    if data.params:
        arrays["params"] = np.stack(list(data.params.values()), axis=-1)
    arrays["noise"] = data.noise
    for name in ("q_quantiles", "p_quantiles"):
        values = getattr(data, name)
        if values:
            arrays[name] = np.stack(list(values.values()))
    text = json.dumps(header_dict(data))
    arrays[HEADER] = np.frombuffer(text.encode(), dtype=np.uint8)
    return {k: x for k, x in arrays.items() if x is not None}


def fingerprint(data: "Trajectories") -> str:
    """SHA-256 over the contents, `meta` left out."""
    digest = hashlib.sha256()
    header = header_dict(data)
    del header["meta"]
    digest.update(json.dumps(header, sort_keys=True).encode())
    for name, array in to_arrays(data).items():
        if name != HEADER:
            # Not-a-number has many bit patterns; a file may change one for another.
            array = np.where(np.isnan(array), np.nan, array).astype("<f8")
            digest.update(f"{name}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
