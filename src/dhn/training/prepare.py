"""From trajectories to what the compiled steps read: scaled arrays and window starts."""

import math
from collections.abc import Sequence
from typing import NamedTuple, final

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Bool, Float, Int

from dhn.blocks import StateBlock, window_starts
from dhn.errors import UserError
from dhn.models.contract import ModelContext, WindowShape
from dhn.training.devices import Devices, replicated
from dhn.training.step import TrainingData, WholeTrajectories
from dhn.trajectories.container import Trajectories
from dhn.trajectories.scaling import Scaler

SMALLEST_BUCKET = 1024  # rows


def bucket(count: int) -> int:
    """Rows that arrays of `count` rows are padded to, so that few different shapes compile."""
    return max(SMALLEST_BUCKET, 1 << (count - 1).bit_length())


def check_trainable(data: Trajectories) -> None:
    """A `UserError` unless the data have momenta (or velocities) on one even grid of times."""
    if data.momenta is None:
        raise UserError(
            f"training needs momenta p or velocities v beside the coordinates "
            f"{', '.join(data.names)}; these data have neither. Add columns for p or v."
        )
    check_even(data)


def check_even(data: Trajectories) -> None:
    """A `UserError` unless the data are on one even grid of times."""
    if not data.is_uniform:
        steps = np.diff(data.t, axis=-1)
        steps = steps[np.isfinite(steps)]
        came = (
            f"steps from {steps.min():.6g} to {steps.max():.6g}"
            if steps.size
            else f"{data.states} state(s) a trajectory"
        )
        raise UserError(
            f"training needs one constant time step; these data have {came}. "
            f"Regrid them first: interpolate q and p onto evenly spaced times."
        )


@final
class Part(NamedTuple):
    """The rows of a data set that one process holds: scaled, padded, in the host's memory."""

    q: Float[np.ndarray, "r T d"]
    p: Float[np.ndarray, "r T d"]
    known: Bool[np.ndarray, "r T"]
    """Which states are usable; none of the padding."""


def scaled_part(data: Trajectories, scaler: Scaler, precision: str, rows: int) -> Part:
    """The states of some trajectories, padded to so many rows."""
    check_trainable(data)

    def padded(x: np.ndarray, dtype: str) -> np.ndarray:
        found = np.zeros((rows, *x.shape[1:]), dtype)
        found[: len(x)] = np.where(np.isfinite(x), x, 0)
        return found

    q, p = scaler.transform(data)
    return Part(padded(q, precision), padded(p, precision), padded(data.complete, "bool"))


def place_states(
    part: Part, rows: int, count: int, devices: Devices
) -> tuple[StateBlock, Bool[np.ndarray, "n T"]]:
    """The parts of all processes as arrays of `rows` rows on the devices.

    **Returns**: states, divided by rows, and the usable states of all `count` trajectories.
    """
    known = devices.gathered(devices.by_rows(part.known.astype(np.uint8), rows))
    states = StateBlock(devices.by_rows(part.q, rows), devices.by_rows(part.p, rows))
    return states, np.asarray(known)[:count].astype(bool)


def prepare(
    states: StateBlock,
    known: Bool[np.ndarray, "n T"],
    window_shapes: Sequence[WindowShape],
    code_rows: Int[np.ndarray, " n"],
    mesh: Mesh | None = None,
) -> TrainingData:
    """What the compiled steps read: states on the devices and every window's start.

    **Arguments**: `known` are the states that windows may contain; `code_rows` the codebook row of
    each trajectory.
    """
    rows = states.q.shape[0]
    starts, counts, places = [], [], []
    for shape in window_shapes:
        found = window_starts(known, shape.length, shape.spacing)
        places.append(found[:, 0])
        padded = np.zeros((bucket(len(found)), 2), np.int32)
        padded[: len(found)] = found
        starts.append(jax.device_put(padded))
        counts.append(jax.device_put(np.int32(len(found))))
    codes = np.zeros(rows, np.int32)
    codes[: len(code_rows)] = code_rows
    tables = (tuple(starts), tuple(counts), jax.device_put(codes), _whole(places, rows))
    return TrainingData(states, *replicated(mesh, tables))


def _whole(places: Sequence[Int[np.ndarray, " _"]], rows: int) -> WholeTrajectories:
    """Where each trajectory's windows stand in `starts`, given the trajectory of every window."""
    number = [np.bincount(place, minlength=rows) for place in places]
    eligible = np.flatnonzero(np.min(number, axis=0) > 0)
    padded = np.zeros(rows, np.int32)
    padded[: len(eligible)] = eligible
    return WholeTrajectories(
        jax.device_put(padded),
        jax.device_put(np.int32(len(eligible))),
        tuple(jax.device_put((np.cumsum(n) - n).astype(np.int32)) for n in number),
        tuple(jax.device_put(n.astype(np.int32)) for n in number),
        tuple(int(n.max()) for n in number),
    )


def make_context(data: Trajectories, scaler: Scaler) -> ModelContext:
    """What a model must know of the data before it has weights."""
    check_trainable(data)
    q, p = scaler.transform(data)
    return ModelContext(
        dim=data.dim,
        time_step=data.time_step,
        angles=tuple(bool(angle) for angle in data.angles),
        radian=tuple(float(1 / scale) for scale in scaler.q_scale),
        changes=typical_changes(np.concatenate([q, p], axis=-1), data.complete),
    )


def typical_changes(
    states: Float[np.ndarray, "n T m"], known: Bool[np.ndarray, "n T"]
) -> tuple[float, ...]:
    """Root mean square change over 1, 2, 4, ... steps, on pairs of known states."""
    found: list[float | None] = []
    lag = 1
    while lag < states.shape[1]:
        pairs = known[:, lag:] & known[:, :-lag]
        change = (states[:, lag:] - states[:, :-lag])[pairs]
        found.append(float(np.sqrt(np.mean(change**2))) if change.size else None)
        lag *= 2
    sizes = [x for x in found if x is not None]
    if not sizes:
        raise UserError(
            "training needs at least two known states in some trajectory; these data have none."
        )
    if max(sizes) <= 0.0:
        raise UserError(
            "the states never change over time, so there is nothing to learn; "
            "use trajectories that move."
        )
    # A lag without pairs (only every second state known, say) takes its neighbour's change; and a
    # whole period later nothing has changed, which must not become a unit of error: never fall.
    filled, last = [], next(x for x in sizes if x > 0.0)
    for size in found:
        last = last if size is None else max(last, size)
        # A power of two, so that data sets that differ a little share their compiled programs.
        filled.append(2.0 ** round(math.log2(last)))
    return tuple(filled)
