"""What must hold of trajectories, checked once at construction; errors state the remedy."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dhn.checks import mapping, numbers, sequence
from dhn.errors import UserError
from dhn.trajectories.labels import all_labels, check_label, default_names

if TYPE_CHECKING:
    from dhn.trajectories.container import Trajectories


def validated(data: "Trajectories") -> dict[str, Any]:
    """The fields of `data` in their final form: float64, read-only, defaults filled in."""
    q = numbers("q", data.q)
    if q.ndim != 3 or 0 in q.shape:
        raise UserError(
            f"q must have shape (trajectories, states, coordinates), all at least 1; "
            f"got {q.shape}. One trajectory: q[None]; one coordinate: q[..., None]."
        )
    n, _, d = q.shape
    names = _labels("names", data.names, d, default_names(d))
    ids = _labels("ids", data.ids, n, tuple(map(str, range(n))))
    group = _labels("code_group", data.code_group, n, (), distinct=False)
    flags = sequence("angles", data.angles)
    if any(isinstance(a, str) or a is None for a in flags):
        raise UserError(f"angles must be true or false for each coordinate; got {data.angles!r}.")
    angles = tuple(bool(a) for a in flags) or (False,) * d
    if len(angles) != d:
        raise UserError(
            f"angles must have one flag a coordinate ({d}: {', '.join(names)}); got {len(angles)}."
        )
    fields: dict[str, Any] = {"q": q, "names": names, "ids": ids, "angles": angles}
    fields["code_group"] = group

    for name in ("p", "v"):
        value = getattr(data, name)
        fields[name] = None if value is None else _like_q(name, numbers(name, value), q)
    for name in ("q_quantiles", "p_quantiles"):
        fields[name] = _quantiles(name, mapping(name, getattr(data, name)), q)
    if fields["p_quantiles"] and fields["p"] is None and fields["v"] is None:
        raise UserError("p_quantiles were given without p or v; give the momenta they belong to.")
    fields["known"] = _known(data.known, fields)
    fields["t"] = _times(numbers("t", data.t), fields)
    fields["params"] = _params(mapping("params", data.params), n)
    fields["noise"] = None if data.noise is None else _noise(data.noise, fields)
    fields["meta"] = _meta(mapping("meta", data.meta))
    if data.system is not None and not isinstance(data.system, str):
        raise UserError(f"system must be a name; got {type(data.system).__name__}.")
    levels = (tuple(fields["q_quantiles"]), tuple(fields["p_quantiles"]))
    each = fields["noise"] is not None and fields["noise"].ndim == 4
    labels = all_labels(names, fields["params"], levels, each)
    fields["units"] = _units(mapping("units", data.units), labels)
    for key, value in fields.items():
        if isinstance(value, np.ndarray):
            fields[key] = _read_only(value)
        elif isinstance(value, dict) and key in ("params", "q_quantiles", "p_quantiles"):
            fields[key] = {k: _read_only(x) for k, x in value.items()}
    return fields


def check_times(
    t: np.ndarray,
    filled: np.ndarray,
    where: Callable[[int, int], str],
    unsorted_hint: str = "sort the states by time",
) -> None:
    """Strictly increasing rows, NaN only as padding at the end; `where` names a state."""
    finite = np.isfinite(t)
    later = np.flip(np.logical_or.accumulate(np.flip(finite, 1), 1), 1)
    for missing, why in (
        (np.isinf(t), "is infinite"),
        (~finite & later, "is missing, but later states have a time"),
        (~finite & filled, "is missing, but the state has values"),
    ):
        if missing.any():
            i, j = np.argwhere(missing)[0]
            raise UserError(f"the time of {where(i, j)} {why}; every state needs a finite t.")
    step = np.diff(t, axis=1)
    bad = step <= 0
    if bad.any():
        i, j = np.argwhere(bad)[0]
        before, after = t[i, j], t[i, j + 1]
        if before == after:
            raise UserError(
                f"t = {after:.10g} occurs twice, the second time at {where(i, j + 1)}; "
                f"times must strictly increase: drop one of the two."
            )
        raise UserError(
            f"t goes back from {before:.10g} to {after:.10g} at {where(i, j + 1)}; "
            f"times must strictly increase: {unsorted_hint}."
        )


def _times(t: np.ndarray, fields: Mapping[str, Any]) -> np.ndarray:
    q, ids = fields["q"], fields["ids"]
    n, T, _ = q.shape
    if t.shape not in ((T,), (n, T)):
        raise UserError(
            f"t must have shape ({T},), shared, or ({n}, {T}), one row a trajectory, "
            f"to fit q {q.shape}; got {t.shape}."
        )
    arrays = [q, *(fields[k] for k in ("p", "v") if fields[k] is not None)]
    arrays += [*fields["q_quantiles"].values(), *fields["p_quantiles"].values()]
    if t.ndim == 1:
        check_times(t[None], np.ones((1, T), bool), lambda i, j: f"state {j}")
    else:
        filled = np.zeros((n, T), bool)
        for array in arrays:
            filled |= ~np.isnan(array).all(-1)
        check_times(t, filled, lambda i, j: f"state {j} of trajectory {ids[i]!r}")
    return t


def _known(known: Any, fields: Mapping[str, Any]) -> np.ndarray:
    """Measured states. Without a mask the data count as measured, so they are held to more."""
    q, ids, names = fields["q"], fields["ids"], fields["names"]
    parts = [(k, fields[k]) for k in ("q", "p", "v") if fields[k] is not None]
    if known is None:
        for key, array in parts:
            if np.isinf(array).any():
                i, j, k = np.argwhere(np.isinf(array))[0]
                raise UserError(
                    f"{key} of {names[k]} is infinite at state {j} of trajectory {ids[i]!r}; "
                    f"write NaN where there is no measurement."
                )
        measured = np.any([np.isfinite(a).any(-1) for _, a in parts], axis=0)
        if not measured.any():
            raise UserError(
                f"{' and '.join(k for k, _ in parts)} have no finite value at all; give "
                f"measurements, or the mask `known`."
            )
        return measured
    known = np.asarray(known)
    if known.shape != q.shape[:2] or not np.isin(known, (0, 1)).all():
        raise UserError(
            f"known must be true or false for each state, shape {q.shape[:2]}; "
            f"got shape {known.shape}, type {known.dtype}."
        )
    known = known.astype(bool)
    wrong = known & ~np.any([np.isfinite(array).any(-1) for _, array in parts], axis=0)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise UserError(
            f"state {j} of trajectory {ids[i]!r} is marked known but none of its numbers is "
            f"finite; set known to false there."
        )
    return known


def _like_q(name: str, value: np.ndarray, q: np.ndarray) -> np.ndarray:
    if value.shape != q.shape:
        raise UserError(f"{name} must have the shape of q, {q.shape}; got {value.shape}.")
    return value


def _quantiles(name: str, value: Any, q: np.ndarray) -> dict[float, np.ndarray]:
    for level in value:
        if isinstance(level, str | bytes) or numbers(name, level).ndim or not 0 < float(level) < 1:
            raise UserError(f"{name} are keyed by levels between 0 and 1; got {level!r}.")
    result = {}
    for level in sorted(value, key=float):
        result[float(level)] = _like_q(
            f"{name}[{float(level)}]", numbers(f"{name}[{float(level)}]", value[level]), q
        )
    return result


def _params(params: Mapping[str, Any], n: int) -> dict[str, np.ndarray]:
    result = {}
    for name, value in params.items():
        array = numbers(f"parameter {name!r}", value)
        if array.ndim == 0:
            array = np.full(n, array)
        if array.shape != (n,):
            raise UserError(
                f"parameter {name!r} must have one value a trajectory, shape ({n},); "
                f"got {array.shape}."
            )
        if np.isinf(array).any():
            raise UserError(f"parameter {name!r} is infinite; use NaN where it is not known.")
        result[name] = array
    return result


def _noise(value: Any, fields: Mapping[str, Any]) -> np.ndarray:
    noise, (n, T, d) = numbers("noise", value), fields["q"].shape
    if noise.shape not in ((2, d), (n, T, 2, d)):
        raise UserError(
            f"noise must have shape (2, {d}), standard deviations of q, then of p (or v), or "
            f"({n}, {T}, 2, {d}), one for each number; got {noise.shape}."
        )
    wrong = (noise < 0) | np.isinf(noise)
    if wrong.any():
        raise UserError(
            f"noise must hold standard deviations, zero or above (NaN: not known); "
            f"got {noise[wrong][0]:g}."
        )
    if noise.ndim == 2 or fields["t"].ndim == 1:
        return noise
    return np.where(np.isfinite(fields["t"])[..., None, None], noise, np.nan)  # padding has none


def _meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    result = {}
    for key, value in meta.items():
        value = value.item() if isinstance(value, np.generic) else value
        if not isinstance(key, str) or not isinstance(value, str | int | float | bool):
            raise UserError(
                f"meta holds text, numbers and true/false by name; {key!r} is "
                f"{type(value).__name__}: store json.dumps(value) instead."
            )
        result[key] = value
    json.dumps(result)
    return result


def _units(units: Mapping[str, str], labels: Iterable[str]) -> dict[str, str]:
    labels = tuple(labels)
    for key, unit in units.items():
        if key not in labels:
            raise UserError(
                f"units were given for {key!r}, which is not in the data; known: "
                f"{', '.join(labels)}."
            )
        if not isinstance(unit, str):
            raise UserError(f"the unit of {key!r} must be text; got {type(unit).__name__}.")
    return dict(units)


def _labels(
    field: str, value: Any, count: int, default: tuple[str, ...], distinct: bool = True
) -> tuple[str, ...]:
    if isinstance(value, str):
        raise UserError(f"{field} must be a sequence of names, not one text: ({value!r},).")
    labels = tuple(str(x) for x in sequence(field, value)) or default
    if len(labels) != count and labels != default:
        raise UserError(f"{field} must have {count} entries to fit q; got {len(labels)}.")
    for label in labels:
        check_label(field, label)
    if distinct and len(set(labels)) != count:
        twice = next(x for x in labels if labels.count(x) > 1)
        raise UserError(f"{field} must differ from each other; {twice!r} occurs more than once.")
    return labels


def _read_only(array: np.ndarray) -> np.ndarray:
    # A view, so that the caller's own array stays writable.
    view = array.view()
    view.flags.writeable = False
    return view
