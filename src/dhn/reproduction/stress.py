"""The stress suite: noise, few data, random starts, long horizons, wide gaps, chaos.

All on the double pendulum. Tasks (a) to (f), each against what a person would use instead.
"""

from typing import Any

import numpy as np

from dhn.evaluation.metrics import energy, normal_units
from dhn.reproduction import roster
from dhn.reproduction.cell import Cell, DataSpec
from dhn.reproduction.lab import Lab, Measured
from dhn.reproduction.predicting import forecast_metrics, predict, probe_metrics
from dhn.reproduction.presets import Preset
from dhn.reproduction.upsampling import refine
from dhn.trajectories.container import Trajectories

OBSERVED, PREDICTED = 16, 112  # states
HORIZON = 1280
"""Ten times the training horizon."""
VALID = 0.3
"""A prediction is valid until its normalised error is larger than this."""
FACTORS = (8, 16, 32)  # grid steps of a gap
SHIFTS = 32
"""Steps by which a late prediction is moved in search of its phase."""


def neighbour(factors: tuple[int, ...]) -> roster.Entry:
    """Two neighbours for all these factors at once, as grid steps of the training set."""
    gaps = [[f, 1] for f in factors] + [[2, f] for f in factors]
    return roster.Entry("Two neighbours", "neighbour", {"gaps": gaps})


def cells(preset: Preset, seed: int) -> list[Cell]:
    full = preset.full

    def data(**changes: Any) -> DataSpec:
        settings = {"train": preset.train, "test": preset.test, "seed": seed, **changes}
        return DataSpec(system="double_pendulum", **settings)

    found: list[Cell] = []
    for noise in (0.01, 0.05) if full else (0.05,):
        noisy = data(starts="random", noise=noise)
        found += _forecasts(preset, seed, noisy, f"a noise {noise:.0%}")
    if full:
        unstated = data(starts="random", noise=0.05, announced=False)
        found += _forecasts(preset, seed, unstated, "a noise 5%, unannounced", ceiling=False)
    few = data(starts="random", train=30 if full else 10)
    found += _forecasts(preset, seed, few, f"b {few.train} trajectories", ceiling=False)
    found += _forecasts(preset, seed, data(starts="random"), "c random starts", probe=True)
    far = data(starts="random", test=min(50, preset.test), test_states=OBSERVED + HORIZON)
    found += _forecasts(preset, seed, far, "d long horizon", ceiling=False, predicted=HORIZON)
    factors = FACTORS if full else FACTORS[:1]
    for starts in ("fixed", "random") if full else ("random",):
        for factor in factors:
            task = f"e {factor}x {starts} starts"
            found += _gaps(preset, seed, data(starts=starts), task, factor, neighbour(factors))
    chaos = data(g=9.81)
    found += _forecasts(preset, seed, chaos, "f chaos", probe=True, options={"angles": "periodic"})
    return found


def _forecasts(
    preset: Preset,
    seed: int,
    data: DataSpec,
    task: str,
    *,
    ceiling: bool = True,
    options: dict[str, Any] | None = None,
    **evaluation: Any,
) -> list[Cell]:
    entries = [*roster.HAMILTONIAN, roster.RESNET2]
    if preset.full:
        entries += [roster.HNN, roster.WINDOWED]
    else:
        entries = entries[:1] + entries[2:]
    found = []
    for entry in entries:
        more = {"rollout": "midpoint"} if entry.kind == "hnn" else {}
        found += roster.make_cells(
            entry, preset, data, "stress", seed=seed, seeds=preset.stress_seeds, task=task,
            options=options, **more, **evaluation,
        )  # fmt: skip
    kinds = {"persistence": "Persistence", "dmd": "DMD 8 delays"}
    found += [
        roster.classical(kind, label, data, "stress", task, **{**evaluation, "probe": False})
        for kind, label in kinds.items()
    ]
    if ceiling:
        more = {**evaluation, "probe": False, "trajectories": preset.fitted}
        found.append(
            roster.classical("parametric", "True system fitted", data, "stress", task, **more)
        )
    return found


def _gaps(
    preset: Preset, seed: int, data: DataSpec, task: str, factor: int, rival: roster.Entry
) -> list[Cell]:
    found = []
    for entry in (roster.DEFAULT, rival):
        found += roster.make_cells(
            entry, preset, data, "stress", seed=seed, seeds=preset.stress_seeds, task=task,
            factor=factor,
        )  # fmt: skip
    for kind, label in {"spline": "Cubic spline", "hermite": "Hermite, true slopes"}.items():
        found.append(roster.classical(kind, label, data, "stress", task, factor=factor))
    return found


def measure(cell: Cell, lab: Lab) -> Measured:
    if "factor" in cell.evaluation:
        factor = cell.evaluation["factor"]
        prediction, model = refine(lab, lab.truth.resample(factor), factor)
        metrics, curves = forecast_metrics(prediction, lab.truth)
        return Measured(metrics, curves, model)
    rows = slice(0, cell.evaluation.get("trajectories", cell.data.test))
    steps = cell.evaluation.get("predicted", PREDICTED)
    seen, truth = lab.measured[rows, :OBSERVED], lab.truth[rows]
    prediction, model = predict(lab, seen, steps)
    metrics, curves = forecast_metrics(prediction, truth)
    metrics |= valid_time(prediction, truth)
    if steps == HORIZON:
        metrics |= long_metrics(prediction, truth)
        curves = {k: v[::8] if isinstance(v, list) else v for k, v in curves.items()}
    if model is not None and cell.evaluation.get("probe"):
        metrics |= probe_metrics(model, seen, truth, "l2")
    return Measured(metrics, curves, model)


def valid_time(prediction: Trajectories, truth: Trajectories) -> dict[str, float]:
    """Predicted steps until the error of q, relative to its spread, is over `VALID`."""
    length = min(prediction.states, truth.states)
    unit = normal_units(truth)
    predicted, true = prediction.q[:, OBSERVED:length] / unit, truth.q[:, OBSERVED:length] / unit
    spread = np.sqrt(np.mean((true - true.mean((0, 1))) ** 2))
    error = np.sqrt(np.mean((predicted - true) ** 2, axis=2)) / spread
    wrong = ~(error <= VALID)
    first = np.where(wrong.any(1), wrong.argmax(1), wrong.shape[1])
    return {"valid_time": float(np.median(first)), "valid_time_mean": float(first.mean())}


def long_metrics(prediction: Trajectories, truth: Trajectories) -> dict[str, float]:
    """Energy error of the median trajectory, and by how many steps the last ones are early or late.

    The shift is the one that brings the prediction's last 128 states nearest to the truth.
    """
    length = min(prediction.states, truth.states)
    got, want = energy(prediction, dict(truth.params)), energy(truth)
    assert got is not None and want is not None
    square = np.mean((got[:, OBSERVED:length] - want[:, OBSERVED:length]) ** 2, axis=1)
    window = slice(length - SHIFTS - 128, length - SHIFTS)
    errors = []
    for shift in range(-SHIFTS, SHIFTS + 1):
        moved = prediction.q[:, window.start + shift : window.stop + shift]
        errors.append(np.mean((moved - truth.q[:, window]) ** 2, axis=(1, 2)))
    errors = np.where(np.isfinite(errors), errors, np.inf)
    shifts = np.abs(np.argmin(errors, axis=0) - SHIFTS)
    return {
        "energy_mse_median": float(np.median(square)),
        "phase_steps": float(np.median(shifts)),
    }
