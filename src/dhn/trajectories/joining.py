"""Bringing trajectories of different lengths and times into one set of arrays."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dhn.checks import numbers, sequence
from dhn.errors import UserError
from dhn.trajectories.labels import unique

if TYPE_CHECKING:
    from dhn.trajectories.container import Trajectories


def pad(
    q: Sequence[Any],
    t: Any,
    p: Sequence[Any] | None,
    v: Sequence[Any] | None,
    known: Sequence[Any] | None,
) -> dict[str, Any]:
    """Fields q, t, p, v, known from one array a trajectory, padded to the longest."""
    if len(q) == 0:
        raise UserError("from_list needs at least one trajectory; q is empty.")
    qs = [_rows(f"q[{i}]", x) for i, x in enumerate(q)]
    d = qs[0].shape[1]
    for i, x in enumerate(qs):
        if x.shape[1] != d:
            raise UserError(
                f"q[{i}] has {x.shape[1]} coordinates but q[0] has {d}; "
                f"all trajectories need the same coordinates."
            )
    lengths = [len(x) for x in qs]
    fields: dict[str, Any] = {"q": stack(qs, max(lengths)), "t": _times(t, lengths)}
    for name, value in (("p", p), ("v", v)):
        if value is not None:
            parts = [_rows(f"{name}[{i}]", x) for i, x in enumerate(value)]
            _same_shapes(name, parts, qs)
            fields[name] = stack(parts, max(lengths))
    if known is not None:
        masks = [numbers(f"known[{i}]", x) for i, x in enumerate(known)]
        _same_shapes("known", masks, [x[:, 0] for x in qs])
        fields["known"] = np.nan_to_num(stack(masks, max(lengths)))
    return fields


def concatenate(parts: "Sequence[Trajectories]") -> dict[str, Any]:
    """The fields of all trajectories one after the other."""
    parts = sequence("parts", parts)
    from dhn.trajectories.container import Trajectories  # made of this function

    for part in parts:
        if not isinstance(part, Trajectories):
            raise UserError(f"only Trajectories can be joined; got {type(part).__name__}.")
    if not parts:
        raise UserError("concatenate needs at least one set of trajectories.")
    first = parts[0]
    for other in parts[1:]:
        for what in ("names", "angles"):
            a, b = getattr(first, what), getattr(other, what)
            if a != b:
                raise UserError(f"cannot concatenate: {what} differ, {a} and {b}; make them equal.")
        for what in ("params", "q_quantiles", "p_quantiles"):
            a, b = getattr(first, what).keys(), getattr(other, what).keys()
            if a != b:
                raise UserError(
                    f"cannot concatenate: {what} differ, {sorted(a)} and {sorted(b)}; "
                    f"use replace({what}=...) to make them equal."
                )
        for what in ("p", "v"):
            if (getattr(first, what) is None) != (getattr(other, what) is None):
                raise UserError(
                    f"cannot concatenate: only some parts have {what}; "
                    f"use replace({what}=None) on those that do."
                )
    states = max(x.states for x in parts)

    def join(arrays: list[Any]) -> Any:
        return None if arrays[0] is None else stack([y for x in arrays for y in x], states)

    rows = [row[np.isfinite(row)] for x in parts for row in x.times]
    ids = [label for x in parts for label in x.ids]
    if all(x.ids == tuple(map(str, range(len(x)))) for x in parts):
        ids = [str(i) for i in range(len(ids))]
    units = {k: u for x in parts for k, u in x.units.items()}
    for x in parts:
        for key, unit in x.units.items():
            if unit != units[key]:
                raise UserError(
                    f"cannot concatenate: the unit of {key!r} is {unit!r} and {units[key]!r}; "
                    f"convert one of them."
                )
    meta = {k: m for k, m in first.meta.items() if all(x.meta.get(k) == m for x in parts)}
    return {
        "q": join([x.q for x in parts]),
        "t": merge_times(rows, states),
        "p": join([x.p for x in parts]),
        "v": join([x.v for x in parts]),
        "known": np.nan_to_num(join([np.float64(x.known) for x in parts])),
        "params": {k: np.concatenate([x.params[k] for x in parts]) for k in first.params},
        "names": first.names,
        "angles": first.angles,
        "units": units,
        "ids": unique(ids),
        "code_group": _joined_groups(parts, unique(ids)),
        "system": first.system if all(x.system == first.system for x in parts) else None,
        "noise": _joined_noise(parts, join),
        "q_quantiles": {k: join([x.q_quantiles[k] for x in parts]) for k in first.q_quantiles},
        "p_quantiles": {k: join([x.p_quantiles[k] for x in parts]) for k in first.p_quantiles},
        "meta": meta,
    }


def _joined_noise(parts: "Sequence[Trajectories]", join: Callable) -> np.ndarray | None:
    """The noise that all parts share, else that of each number; NaN where it is not stated."""
    noises = [np.full((2, x.dim), np.nan) if x.noise is None else x.noise for x in parts]
    if all(x.ndim == 2 and np.array_equal(x, noises[0], equal_nan=True) for x in noises):
        return parts[0].noise
    pairs = zip(noises, parts, strict=True)
    return join([np.broadcast_to(x, (*part.q.shape[:2], 2, part.dim)) for x, part in pairs])


def _joined_groups(parts: "Sequence[Trajectories]", ids: Sequence[str]) -> tuple[str, ...]:
    """Groups of the same label become one; trajectories without a group stay alone."""
    if not any(x.code_group for x in parts):
        return ()
    left = iter(ids)
    own = [[next(left) for _ in range(len(x))] for x in parts]
    return tuple(g for x, alone in zip(parts, own, strict=True) for g in x.code_group or alone)


def stack(arrays: Sequence[np.ndarray], states: int) -> np.ndarray:
    """Arrays of unequal first axis -> one array with NaN behind the shorter ones."""
    result = np.full((len(arrays), states, *arrays[0].shape[1:]), np.nan)
    for row, array in zip(result, arrays, strict=True):
        row[: len(array)] = array
    return result


def merge_times(rows: Sequence[np.ndarray], states: int) -> np.ndarray:
    """(T,) if every row is the beginning of the longest, which has all states; else (n, T)."""
    longest = max(rows, key=len)
    if len(longest) == states and all(np.array_equal(x, longest[: len(x)]) for x in rows):
        return longest
    return stack(rows, states)


def _times(t: Any, lengths: list[int]) -> np.ndarray:
    if len(t) and np.ndim(t[0]) == 0:
        shared = numbers("t", t)
        if len(shared) < max(lengths):
            raise UserError(
                f"t has {len(shared)} times but the longest trajectory has {max(lengths)} states; "
                f"give a time for each state."
            )
        return shared[: max(lengths)]
    if len(t) != len(lengths):
        raise UserError(f"t must have one array a trajectory ({len(lengths)}); got {len(t)}.")
    rows = [numbers(f"t[{i}]", x) for i, x in enumerate(t)]
    for i, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        if row.shape != (length,):
            raise UserError(f"t[{i}] must have shape ({length},) to fit q[{i}]; got {row.shape}.")
    return merge_times(rows, max(lengths))


def _rows(name: str, value: Any) -> np.ndarray:
    array = numbers(name, value)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or 0 in array.shape:
        raise UserError(
            f"{name} must have shape (states, coordinates), at least 1 each; got {array.shape}."
        )
    return array


def _same_shapes(name: str, parts: list[np.ndarray], like: list[np.ndarray]) -> None:
    if len(parts) != len(like):
        raise UserError(f"{name} must have {len(like)} trajectories like q; got {len(parts)}.")
    for i, (a, b) in enumerate(zip(parts, like, strict=True)):
        if a.shape != b.shape:
            raise UserError(f"{name}[{i}] must have shape {b.shape} like q[{i}]; got {a.shape}.")
