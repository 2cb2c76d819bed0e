"""Which trajectories and which states `data[...]` means."""

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dhn.errors import UserError
from dhn.trajectories.labels import unique

if TYPE_CHECKING:
    from dhn.trajectories.container import Trajectories


def trajectory_indices(key: Any, ids: Sequence[str]) -> np.ndarray:
    """Positions for an int, slice, list, boolean mask, id or list of ids."""
    if isinstance(key, str):
        key = [key]
    if not isinstance(key, slice):
        labels = list(key) if np.ndim(key) == 1 else []
        if labels and all(isinstance(x, str) for x in labels):
            position = {label: i for i, label in enumerate(ids)}
            missing = [x for x in labels if x not in position]
            if missing:
                raise UserError(
                    f"there is no trajectory with the id {str(missing[0])!r}; ids run from "
                    f"{ids[0]!r} to {ids[-1]!r} (an int selects by position)."
                )
            key = np.array([position[x] for x in labels])
    return _indices(key, len(ids), "trajectories")


def state_indices(key: Any, count: int) -> np.ndarray:
    """Positions along time; they must keep the order of time."""
    indices = _indices(key, count, "states")
    if (np.diff(indices) <= 0).any():
        raise UserError(
            "states must be selected in the order of time and once each; "
            "sort the indices (a negative step is not possible)."
        )
    return indices


def _indices(key: Any, count: int, what: str) -> np.ndarray:
    if isinstance(key, slice):
        indices = np.arange(count)[key]
    else:
        try:
            array = np.asarray(key)
            if array.ndim == 0 and array.dtype.kind != "b":
                array = np.array([operator.index(key)])
        except (TypeError, ValueError):
            array = np.array(0.5)
        if array.size == 0:
            array = array.astype(int)
        if array.dtype.kind == "b" and array.shape == (count,):
            indices = np.flatnonzero(array)
        elif array.dtype.kind == "b" and array.ndim == 1:
            raise UserError(
                f"a boolean mask over {what} must have {count} entries; got {len(array)}."
            )
        elif array.dtype.kind in "iu" and array.ndim == 1:
            indices = array.astype(np.intp)
            wrong = indices[(indices < -count) | (indices >= count)]
            if wrong.size:
                raise UserError(f"there are {count} {what}; index {wrong[0]} is out of range.")
            indices = np.where(indices < 0, indices + count, indices)
        else:
            raise UserError(
                f"{what} are selected by an int, a slice, a list of ints or a boolean mask; "
                f"got {key!r:.80}."
            )
    if indices.size == 0:
        raise UserError(f"the selection contains no {what}; there are {count}.")
    return indices


def of_rows(data: "Trajectories", rows: np.ndarray, ids: Sequence[str]) -> dict[str, Any]:
    """The fields that have one entry a trajectory, for these trajectories."""
    return {
        "params": {name: values[rows] for name, values in data.params.items()},
        "ids": unique(ids),
        "code_group": tuple(data.code_group[i] for i in rows) if data.code_group else (),
    }


def each_state(
    data: "Trajectories", change: Callable[[np.ndarray], np.ndarray], bands: bool = True
) -> dict[str, Any]:
    """The fields that have numbers of every state, changed alike.

    Arguments:
        data: Any trajectories.
        change: From an array (n, T, ...) of one field to another number of trajectories or states.
        bands: Whether quantiles are changed, too; otherwise they are left out.

    Returns:
        q, p, v and the quantiles, and the noise if each number has its own.
    """
    parts = {"q": data.q, "p": data.p, "v": data.v}
    found: dict[str, Any] = {k: None if x is None else change(x) for k, x in parts.items()}
    for name in ("q_quantiles", "p_quantiles"):
        levels = getattr(data, name).items() if bands else ()
        found[name] = {level: change(x) for level, x in levels}
    if data.noise is not None and data.noise.ndim == 4:
        found["noise"] = change(data.noise)
    return found
