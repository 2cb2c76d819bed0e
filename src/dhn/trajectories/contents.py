"""The contents of `Trajectories` as JSON values and plain arrays, and their fingerprint."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dhn.trajectories.container import Trajectories

LAYOUT = 2
"""Version of the header that this dhn reads. Data without noise of each number and shared codes
are written with layout 1, which older readers understand."""
OPTIONAL = ("p", "v", "noise")
BLOCK = 1 << 20
"""Numbers that are looked at together, 8 MB."""


def header_dict(data: "Trajectories") -> dict[str, Any]:
    """What is not numbers, as JSON values."""
    later = {}
    if data.noise is not None and data.noise.ndim == 4:
        later["each_noise"] = True
    if data.code_group:
        later["code_group"] = list(data.code_group)
    return {
        "layout": LAYOUT if later else 1,
        "shape": list(data.q.shape),
        "fields": [k for k in OPTIONAL if getattr(data, k) is not None],
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
        **later,
    }


def number_arrays(data: "Trajectories") -> dict[str, np.ndarray]:
    """Every array that is there, under its name; parameters and quantiles stacked."""
    arrays = {"q": data.q, "t": data.t, "p": data.p, "v": data.v, "known": data.known}
    if data.params:
        arrays["params"] = np.stack(list(data.params.values()), axis=-1)
    arrays["noise"] = data.noise
    for name in ("q_quantiles", "p_quantiles"):
        values = getattr(data, name)
        if values:
            arrays[name] = np.stack(list(values.values()))
    return {k: x for k, x in arrays.items() if x is not None}


def digest(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of a header and its arrays."""
    parts = {name: (array.shape, _blocks(array)) for name, array in arrays.items()}
    return digest_blocks([header_text(header)], parts)


def header_text(header: Mapping[str, Any]) -> str:
    """A header as it enters the digest."""
    return json.dumps(header, sort_keys=True)


def digest_blocks(
    header: Iterable[str],
    arrays: Mapping[str, tuple[tuple[int, ...], Iterable[np.ndarray]]],
) -> str:
    """`digest` of a header and arrays that come in pieces.

    Arguments:
        header: Its text, in one piece or several.
        arrays: Name -> shape, and the numbers in C order.

    Returns:
        The same text, however the arrays are cut.
    """
    sha = hashlib.sha256()
    for text in header:
        sha.update(text.encode())
    for name in sorted(arrays):
        shape, blocks = arrays[name]
        sha.update(f"{name}{shape}".encode())
        for block in blocks:
            # Not-a-number has many bit patterns; a file may change one for another.
            sha.update(np.where(np.isnan(block), np.nan, block).astype("<f8").tobytes())
    return sha.hexdigest()


def _blocks(array: np.ndarray) -> Iterator[np.ndarray]:
    flat = np.ascontiguousarray(array).reshape(-1)
    return (flat[first : first + BLOCK] for first in range(0, flat.size, BLOCK))


def fingerprint(data: "Trajectories") -> str:
    """SHA-256 over the contents, `meta` left out."""
    return digest(header_dict(data) | {"meta": None}, number_arrays(data))
