"""Forecasts by any kind of model, and how far they are from the truth."""

import dataclasses
from typing import Any

import numpy as np

from dhn.errors import UserError
from dhn.estimator.kinds import AbstractEstimator
from dhn.evaluation.extrapolation import LinearDMD, persistence
from dhn.evaluation.metrics import compare, energy
from dhn.reproduction.baselines.hnn import HNNModel
from dhn.reproduction.baselines.parametric import fit_system
from dhn.reproduction.lab import Lab
from dhn.reproduction.rolling import roll_forward
from dhn.trajectories.container import Trajectories

LATE = 16
"""Predicted states at the end whose error is reported separately."""
DELAYS = 8  # states


def with_rollout(model: AbstractEstimator, rollout: str | None) -> AbstractEstimator:
    """An HNN with another integrator; any other model as it is."""
    found = model.trained
    if rollout is not None:
        assert isinstance(found.model, HNNModel)
        changed = found.model.with_rollout(rollout)  # type: ignore[arg-type]
        model.fitted = dataclasses.replace(found, model=changed)
    return model


def predict(
    lab: Lab, observed: Trajectories, steps: int, codes: np.ndarray | None = None
) -> tuple[Trajectories, AbstractEstimator | None]:
    """The observed states and `steps` more, by whichever method the cell names."""
    cell = lab.cell
    if cell.trained:
        model = with_rollout(lab.model(), cell.evaluation.get("rollout"))
        if codes is None and not cell.preset.startswith("paper"):
            return model.forecast(observed, steps), model
        return roll_forward(model.trained, observed, steps, codes, cell.seed), model
    if cell.kind == "persistence":
        return persistence(observed, steps), None
    if cell.kind == "dmd":
        return LinearDMD.fit(lab.train, delays=DELAYS, ridge=1e-10).forecast(observed, steps), None
    if cell.kind == "parametric":
        fitted = fit_system(
            observed,
            cell.data.system,
            shooting=cell.data.noise > 0,
        )
        return fitted.forecast(observed, steps), None
    raise UserError(f"there is no forecast by {cell.kind!r}.")


def forecast_metrics(
    prediction: Trajectories, truth: Trajectories
) -> tuple[dict[str, float], dict[str, Any]]:
    """Flat numbers and curves over the predicted states alone."""
    found = compare(prediction, truth)
    numbers = {k: float(v) for k, v in found.summary().items() if v is not None}
    numbers["mse_early"] = float(np.mean(found.mse_normalised[:LATE]))
    numbers["mse_late"] = float(np.mean(found.mse_normalised[-LATE:]))
    curves: dict[str, Any] = {
        "step": found.steps.tolist(),
        "mse": found.mse_normalised.tolist(),
        "example": example(prediction, truth),
    }
    if found.energy_mse is not None:
        curves["energy_mse"] = found.energy_mse.tolist()
    return numbers, curves


def example(prediction: Trajectories, truth: Trajectories) -> dict[str, Any]:
    """The first trajectory, for figures and the animation."""
    length = min(prediction.states, truth.states)
    predicted, true = prediction[:1, :length], truth[:1, :length]
    shown = {
        "t": true.times[0].tolist(),
        "truth_q": true.q[0].tolist(),
        "predicted_q": predicted.q[0].tolist(),
        "known": predicted.known[0].tolist(),
        "params": {name: float(value[0]) for name, value in true.params.items()},
    }
    energies = energy(true), energy(predicted, dict(true.params))
    for name, values in zip(("truth_energy", "predicted_energy"), energies, strict=True):
        if values is not None:
            shown[name] = values[0].tolist()
    return shown


def probe_metrics(
    model: AbstractEstimator, seen: Trajectories, truth: Trajectories, target: str
) -> dict[str, float]:
    """A parameter of unseen trajectories read off their codes, against the truth.

    By a linear probe as in the paper: the question is what the codes say, not what a probe learns.
    """
    error = model.probe(target, linear=True)(model.encode(seen)) - truth.params[target]
    square, variance = float(np.mean(error**2)), float(np.var(truth.params[target]))
    return {
        "probe_mse": square,
        "probe_median": float(np.median(error**2)),
        "probe_r2": 1.0 - square / variance,
    }
