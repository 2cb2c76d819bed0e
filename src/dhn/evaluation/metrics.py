"""Errors of predicted states against the truth. Observed states never count."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, final

import numpy as np

from dhn.errors import UserError
from dhn.systems import System, get_system
from dhn.trajectories.container import Trajectories

NORMAL_ANGLE = np.pi / 2
"""The paper's unit of an angle."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Metrics:
    """Per time step over the predicted states, averaged over trajectories and coordinates."""

    steps: np.ndarray
    """(h,) positions of the predicted states."""
    mse: np.ndarray
    """(h,) mean squared error of q in physical units."""
    mse_normalised: np.ndarray
    """(h,) the same in units of each coordinate (see `normal_units`)."""
    per_trajectory: np.ndarray
    """(n,) mean over predicted states of the normalised squared error."""
    energy_mse: np.ndarray | None
    """(h,) mean squared error of the total energy, if the system is known."""
    energy_changes: np.ndarray | None
    """Change of the energy over the second half, relative to `exchanged_energy`, of every
    trajectory with states at both of its ends."""
    energy_scale: float | None
    """Mean `exchanged_energy` of the truth."""
    compared: np.ndarray
    """(h,) trajectories whose state was compared."""

    @property
    def energy_drift(self) -> float | None:
        """Median of `energy_changes`."""
        if self.energy_changes is None or not len(self.energy_changes):
            return None
        return float(np.median(self.energy_changes))

    def summary(self) -> dict[str, Any]:
        """Plain numbers for tables and JSON."""
        blown = ~np.isfinite(self.per_trajectory) | (self.per_trajectory > 10.0)
        found = {
            "mse": float(np.nanmean(self.mse_normalised)),
            "mse_physical": float(np.nanmean(self.mse)),
            "median": float(np.median(self.per_trajectory)),
            "worst": float(np.max(self.per_trajectory)),
            "blow_ups": int(blown.sum()),
            "states": len(self.steps),
        }
        if self.energy_mse is not None:
            found["energy_mse"] = float(np.nanmean(self.energy_mse))
            found["energy_drift"] = self.energy_drift
        return found


def normal_units(truth: Trajectories) -> np.ndarray:
    """(d,) unit of each coordinate: pi/2 for angles (the paper's), else its standard deviation."""
    return units_of([truth])


def units_of(pieces: Iterable[Trajectories]) -> np.ndarray:
    """`normal_units` of trajectories that come in pieces."""
    count, mean, square, angles = 0, np.zeros(1), np.zeros(1), ()
    for piece in pieces:
        angles = piece.angles
        q = piece.q[np.asarray(piece.has_known_q)]
        if not len(q):
            continue
        # Chan's update: sums of squares about the mean lose no digits.
        shift, whole = q.mean(0) - mean, count + len(q)
        square = square + ((q - q.mean(0)) ** 2).sum(0) + shift**2 * (count * len(q) / whole)
        mean, count = mean + shift * (len(q) / whole), whole
    spread = np.sqrt(square / max(count, 1))
    return np.where(angles, NORMAL_ANGLE, np.where(spread > 0, spread, 1.0))


def known_system(
    name: str | None, params: Mapping[str, np.ndarray]
) -> tuple[System, dict[str, np.ndarray]] | None:
    """The system of that name and its parameters (n,), if it and all of them are known."""
    try:
        system = None if name is None else get_system(name)
    except UserError:  # made by a system from user code, which the file can only name
        return None
    if system is None or not set(system.params) <= set(params):
        return None
    return system, {key: np.asarray(params[key]) for key in system.params}


def energy_function(
    name: str | None, params: Mapping[str, np.ndarray]
) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """Energies (n, T) of states q, p (n, T, d), if the system and all its parameters are known."""
    found = known_system(name, params)
    if found is None:
        return None
    system, values = found
    return lambda q, p: np.asarray(system.energy(q, p, values))


def energy(data: Trajectories, params: dict[str, np.ndarray] | None = None) -> np.ndarray | None:
    """(n, T) total energy, if the data name a system and carry its momenta and parameters."""
    compute = energy_function(data.system, data.params if params is None else params)
    return None if compute is None or data.p is None else compute(data.q, data.p)


def exchanged_energy(truth: Trajectories) -> np.ndarray:
    """(n,) the energy that moves between potential and kinetic: a unit for errors of the energy.

    The total itself is none: its zero is a convention, and the paper's double pendulum starts
    there.
    """
    assert truth.p is not None
    total, potential = energy(truth), energy(truth.replace(p=np.zeros_like(truth.p)))
    assert total is not None and potential is not None
    spread = np.nanmax(potential, axis=1) - np.nanmin(potential, axis=1)
    kinetic = np.nanmean(np.abs(total - potential), axis=1)
    return np.maximum(np.maximum(spread, kinetic), 1e-12)


def _square(error: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """NaN where nothing is compared; a prediction that is no number is infinitely wrong."""
    square = np.where(np.isnan(error), np.inf, error**2)
    return np.where(valid, square, np.nan)


def _changes(difference: np.ndarray, valid: np.ndarray, half: int, level: np.ndarray) -> np.ndarray:
    """Change between the beginning and the end of the second half, in units of `level`.

    A measured run that ends early is left out; a prediction that is not finite drifts without end.
    """
    parts = slice(half, half + max(half // 2, 1)), slice(-half // 2, None)
    complete = valid[:, parts[0]].any(1) & valid[:, parts[1]].any(1)
    rows = np.where(valid, difference, 0.0)[complete]
    before, after = (rows[:, part].sum(1) / valid[complete, part].sum(1) for part in parts)
    change = np.abs(after - before) / level[complete]
    return np.where(np.isnan(change), np.inf, change)


def compare(
    prediction: Trajectories, truth: Trajectories, units: np.ndarray | None = None
) -> Metrics:
    """Metrics of the states that the prediction has but was not given (`known` is False there)."""
    steps, valid, square = _squares(prediction, truth)
    length = valid.shape[1]
    units = normal_units(truth) if units is None else units
    scaled = square / units**2
    energy_mse = changes = scale = None
    got, want = energy(prediction, dict(truth.params)), energy(truth)
    if got is not None and want is not None:
        difference = np.where(valid, got[:, :length] - want[:, :length], np.nan)[:, steps]
        energy_mse = np.nanmean(_square(difference, valid[:, steps]), axis=0)
        level = exchanged_energy(truth)
        scale = float(level.mean())
        half = len(steps) // 2
        if half >= 2:
            changes = _changes(difference, valid[:, steps], half, level)
    return Metrics(
        steps=steps,
        mse=np.nanmean(square[:, steps], axis=(0, 2)),
        mse_normalised=np.nanmean(scaled[:, steps], axis=(0, 2)),
        per_trajectory=_of_each(scaled, steps),
        energy_mse=energy_mse,
        energy_changes=changes,
        energy_scale=scale,
        compared=valid[:, steps].sum(0),
    )


def error_of_each(prediction: Trajectories, truth: Trajectories) -> np.ndarray:
    """`compare(prediction, truth).per_trajectory` alone, without the energies."""
    steps, _, square = _squares(prediction, truth)
    return _of_each(square / normal_units(truth) ** 2, steps)


def _of_each(scaled: np.ndarray, steps: np.ndarray) -> np.ndarray:
    return np.nanmean(scaled[:, steps], axis=(1, 2))


def comparable(prediction: Trajectories, truth: Trajectories) -> np.ndarray:
    """(n, T) the states that the prediction was not given and of which the truth is known."""
    length = min(prediction.states, truth.states)
    return ~np.asarray(prediction.known)[:, :length] & truth.has_known_q[:, :length]


def _squares(
    prediction: Trajectories, truth: Trajectories
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where states are compared, which of them, and their squared errors (n, T, d)."""
    if prediction.q.shape[0] != truth.q.shape[0] or prediction.dim != truth.dim:
        raise UserError(
            f"prediction and truth must be the same trajectories; got shapes "
            f"{prediction.q.shape} and {truth.q.shape}."
        )
    valid = comparable(prediction, truth)
    length = valid.shape[1]
    steps = np.flatnonzero(valid.any(0))
    if not len(steps):
        raise UserError("nothing to compare: no predicted state has a known truth.")
    square = _square(prediction.q[:, :length] - truth.q[:, :length], valid[..., None])
    return steps, valid, square


def joined(parts: Sequence[Metrics]) -> Metrics:
    """The metrics of all trajectories from those of parts of them, in the same units.

    Arguments:
        parts: Of which each compared the same states, apart from gaps.

    Returns:
        What `compare` gives for all of them at once.
    """
    steps = np.unique(np.concatenate([part.steps for part in parts]))
    compared = np.zeros(len(steps), int)
    for part in parts:
        compared[np.searchsorted(steps, part.steps)] += part.compared

    def mean(name: str) -> np.ndarray | None:
        total = np.zeros(len(steps))
        for part in parts:
            values = getattr(part, name)
            if values is None:
                return None
            total[np.searchsorted(steps, part.steps)] += values * part.compared
        return total / compared

    changes = [x.energy_changes for x in parts if x.energy_changes is not None]
    scales = [x.energy_scale for x in parts if x.energy_scale is not None]
    mse, normalised = mean("mse"), mean("mse_normalised")
    assert mse is not None and normalised is not None
    return Metrics(
        steps=steps,
        mse=mse,
        mse_normalised=normalised,
        per_trajectory=np.concatenate([x.per_trajectory for x in parts]),
        energy_mse=mean("energy_mse"),
        energy_changes=np.concatenate(changes) if len(changes) == len(parts) else None,
        energy_scale=float(np.average(scales, weights=[len(x.per_trajectory) for x in parts]))
        if len(scales) == len(parts)
        else None,
        compared=compared,
    )
