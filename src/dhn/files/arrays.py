"""Trajectories as a flat dict of plain arrays: what .npz, .mat, HDF5 and NetCDF files hold.

Numbers stand under q, p, v, t, known, params, noise, q_quantiles, p_quantiles; everything that is
text is one JSON object, in UTF-8 bytes, under `dhn`. No format needs pickle or a string type.
"""

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
import pydantic
import pydantic_core

from dhn.checks import numbers
from dhn.errors import UserError
from dhn.files.roles import Roles, find_roles
from dhn.printable import printable
from dhn.trajectories.contents import LAYOUT, digest, header_dict, number_arrays

if TYPE_CHECKING:
    from dhn.trajectories.container import Trajectories

HEADER = "dhn"


@final
class _Header(pydantic.BaseModel):
    """What `header_dict` gives, whatever a writer added to it."""

    model_config = pydantic.ConfigDict(strict=True, extra="allow", frozen=True)

    layout: int
    shape: tuple[pydantic.PositiveInt, pydantic.PositiveInt, pydantic.PositiveInt]
    fields: list[Literal["p", "v", "noise"]]
    shared_time: bool
    names: list[str]
    angles: list[bool]
    units: dict[str, str]
    ids: list[str] = []
    system: str | None
    params: list[str]
    q_levels: list[float]
    p_levels: list[float]
    meta: dict[str, str | int | float | bool]
    each_noise: bool = False
    code_group: list[str] = []


def parse_header(text: str | bytes, ids: bool = True) -> dict[str, Any]:
    """The header of one of our own files, or a `UserError`; `ids`: whether they stand in it."""
    try:
        values = pydantic_core.from_json(text)
        layout = values["layout"]
        if layout > LAYOUT:
            raise UserError(
                f"it was written by a newer dhn (layout {layout}, this one reads {LAYOUT}); "
                f"upgrade dhn."
            )
        header = _Header.model_validate_json(text).model_dump(mode="json", exclude_unset=True)
        n, _, d = header["shape"]
        if (len(header.get("ids", ())), len(header["names"])) == (n if ids else 0, d):
            return header
    except UserError:
        raise
    except (ValueError, TypeError, KeyError):  # no JSON, or not that of a header
        pass
    raise UserError("its field 'dhn' (names, ids, units, ...) is damaged; write it anew.")


def to_arrays(data: "Trajectories") -> dict[str, np.ndarray]:
    """The dict of arrays; only fields that are there."""
    arrays, header = number_arrays(data), header_dict(data)
    text = json.dumps(header | {"sha256": digest(header, arrays)})
    # First, so that a truncated file still has it.
    return {HEADER: np.frombuffer(text.encode(), dtype=np.uint8)} | arrays


def from_arrays(
    arrays: Mapping[str, np.ndarray], columns: Mapping[str, str | None] | None = None
) -> dict[str, Any]:
    """The fields of `Trajectories`: from one of our files, or from any file with q, p, t."""
    if columns is None and HEADER in arrays:
        return _own(arrays)
    return _foreign(arrays, find_roles(list(arrays), columns, "variable"))


def _own(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    header = own_header(arrays[HEADER])
    fields: dict[str, Any] = {}
    for name, size in own_sizes(header).items():
        if name not in arrays:
            raise UserError(f"its array {name!r} is missing; the file is damaged, write it anew.")
        array = numbers(name, arrays[name])
        if array.size != math.prod(size):
            raise UserError(
                f"its array {name!r} should have shape {size} but has {array.shape}; "
                f"the file is damaged, write it anew."
            )
        fields[name] = array.reshape(size)
    # Not every format has a checksum of its own.
    if header.pop("sha256", None) != digest(header, fields):
        raise UserError("its contents are not what was written; it is damaged, write it anew.")
    return own_fields(header, fields)


def own_header(array: np.ndarray) -> dict[str, Any]:
    """The header of one of our own files from the bytes under `HEADER`."""
    text = numbers(HEADER, array)
    text = text if ((text >= 0) & (text < 256)).all() else np.empty(0)  # NaN, too, is damage
    return parse_header(text.astype(np.uint8).tobytes())


def own_sizes(header: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Name -> shape of every array that belongs to this header."""
    n, T, d = shape = tuple(header["shape"])
    sizes = {"q": shape, "t": (T,) if header["shared_time"] else (n, T), "known": (n, T)}
    sizes |= {k: shape for k in header["fields"]}
    if "noise" in sizes:
        sizes["noise"] = (n, T, 2, d) if header.get("each_noise") else (2, d)
    if header["params"]:
        sizes["params"] = (n, len(header["params"]))
    for part in ("q", "p"):
        if header[f"{part}_levels"]:
            sizes[f"{part}_quantiles"] = (len(header[f"{part}_levels"]), *shape)
    return sizes


def in_common(data: "Trajectories") -> dict[str, Any]:
    """What must be the same in all pieces of one file."""
    noise = data.noise
    numbers = {
        "t": data.t.tobytes() if data.t.ndim == 1 else None,
        "noise": noise.tobytes() if noise is not None and noise.ndim == 2 else None,
    }
    own = {"ids": None, "code_group": bool(data.code_group), "shape": data.q.shape[1:]}
    return header_dict(data) | own | numbers


def check_alike(
    piece: "Trajectories", before: Mapping[str, Any], but: tuple[str, ...] = ()
) -> None:
    """A `UserError` unless a piece has `in_common` what those before it have; `but` may differ."""
    own = in_common(piece)
    names = [name for name in {**before, **own} if name not in but]
    differ = [name for name in names if own.get(name) != before.get(name)]
    if differ:
        raise UserError(
            f"the trajectories of one file must be alike, and from {piece.ids[0]!r} on they "
            f"differ from those before in {', '.join(differ)}; write them to another file."
        )


def trajectory_axis(name: str, ndim: int) -> int | None:
    """Which axis of an array with so many axes counts trajectories; None if all share it."""
    if (name, ndim) in (("t", 1), ("noise", 2)):
        return None
    return 1 if name in ("q_quantiles", "p_quantiles") else 0


def own_fields(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The fields of `Trajectories` from a header and the arrays of `own_sizes`."""
    fields: dict[str, Any] = dict(arrays)
    none = np.empty((header["shape"][0], 0))
    fields["params"] = dict(zip(header["params"], fields.get("params", none).T, strict=True))
    for part in ("q", "p"):
        levels = header[f"{part}_levels"]
        fields[f"{part}_quantiles"] = dict(
            zip(levels, fields.get(f"{part}_quantiles", ()), strict=True)
        )
    return fields | header_fields(header)


def header_fields(header: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `Trajectories` that stand in a header, without control characters."""
    fields: dict[str, Any] = {k: tuple(header[k]) for k in ("names", "angles", "ids")}
    fields["code_group"] = tuple(header.get("code_group", ()))
    return fields | {key: shown(header[key]) for key in ("units", "meta", "system")}


def shown(value: Any) -> Any:
    """Texts, also those in a mapping, as a terminal may show them."""
    if isinstance(value, Mapping):
        return {shown(k): shown(x) for k, x in value.items()}
    return printable(value) if isinstance(value, str) else value


def _foreign(arrays: Mapping[str, np.ndarray], roles: Roles) -> dict[str, Any]:
    if roles.t is None:
        raise UserError("it has no times: name a variable 't', or map one: columns={...: 't'}.")
    t = numbers(roles.t, arrays[roles.t])
    t = t.ravel() if t.ndim == 2 and 1 in t.shape else t
    if t.ndim not in (1, 2):
        raise UserError(f"the times {roles.t!r} must have shape (T,) or (n, T); got {t.shape}.")
    T = t.shape[-1]
    labels = {"q": roles.q, "p": roles.p, "v": roles.v}
    fields: dict[str, Any] = {k: _states(arrays, x, T, t.ndim) for k, x in labels.items() if x}
    n, _, d = fields["q"].shape
    names = tuple(name for name, _ in roles.q)
    fields |= {"t": t, "names": names if len(names) == d else ()}
    if roles.known is not None:
        known = numbers(roles.known, arrays[roles.known])
        fields["known"] = known.reshape(n, T) if known.size == n * T else known
    params = {}
    for name, label in roles.params:
        value = numbers(label, arrays[label])
        if value.size == 1 or value.shape in ((n,), (1, n), (n, 1)):
            params[name] = value.ravel() if value.size > 1 else np.full(n, value.ravel()[0])
        else:
            raise UserError(
                f"the variable {label!r} of shape {value.shape} is neither q, p, v, t, known nor a "
                f"parameter with {n} values; leave it out with columns={{{label!r}: None}}."
            )
    if roles.noise:
        noise = np.full((n, T, 2, d), np.nan)
        for label, row, k in roles.noise_places():
            noise[:, :, row, k] = _states(arrays, [("", label)], T, t.ndim)[..., 0]
        fields["noise"] = noise
    return fields | {"params": params}


def _states(
    arrays: Mapping[str, np.ndarray], labels: list[tuple[str, str]], T: int, t_dim: int
) -> np.ndarray:
    """(n, T, d) from one array with all coordinates or from one array a coordinate."""
    parts = [_state_array(label, numbers(label, arrays[label]), T, t_dim) for _, label in labels]
    for (_, label), part in zip(labels, parts, strict=True):
        if len(parts) > 1 and (part.shape[-1] != 1 or part.shape != parts[0].shape):
            raise UserError(
                f"several coordinates were named, so each must be a ({T},) or (n, {T}) array; "
                f"{label!r} has shape {arrays[label].shape}."
            )
    return np.concatenate(parts, axis=-1)


def _state_array(label: str, array: np.ndarray, T: int, t_dim: int) -> np.ndarray:
    if array.ndim == 1 and len(array) == T:
        return array[None, :, None]
    if array.ndim == 2 and array.shape == (T, T) and T > 1 and t_dim == 1:
        raise UserError(
            f"{label!r} has shape {array.shape}, which may mean trajectories or coordinates; "
            f"store it as (trajectories, states, coordinates)."
        )
    if array.ndim == 2 and array.shape[0] == T and t_dim == 1:
        return array[None]
    if array.ndim == 2 and array.shape[1] == T:
        return array[..., None]
    if array.ndim == 3 and array.shape[1] == T:
        return array
    raise UserError(
        f"{label!r} has shape {array.shape}, which does not fit {T} times; expected "
        f"(trajectories, {T}, coordinates), ({T}, coordinates) or (trajectories, {T})."
    )
