"""Learning curves: errors of completion, energy and probe against the time of training."""

from typing import Any

from dhn.reproduction import roster
from dhn.reproduction.cell import Cell, DataSpec, Training
from dhn.reproduction.completion import OBSERVED, PREDICTED
from dhn.reproduction.fit import SYSTEMS
from dhn.reproduction.lab import Lab, Measured
from dhn.reproduction.predicting import forecast_metrics, predict, probe_metrics
from dhn.reproduction.presets import Preset

BUDGETS = (20.0, 60.0, 300.0)
"""Seconds of training, with several seeds on both pendulums."""
LONG = 1800.0
"""Seconds of training, with one seed on the double pendulum."""
LENGTHS = {"single_pendulum": "l", "double_pendulum": "l2"}
"""The parameter that differs between trajectories."""


def cells(preset: Preset, seed: int) -> list[Cell]:
    """Every form at every budget; each is trained from the beginning with its own schedule."""
    entries = [
        roster.DEFAULT,
        *(roster.blocks(b, b // 2) for b in (2, 4, 8)),
        roster.paper(2, 1),
        roster.HNN,
        roster.RESNET2,
    ]
    plan: list[tuple[str, float | None, int | None]]
    plan = [(system, seconds, None) for system in SYSTEMS for seconds in BUDGETS]
    plan.append((SYSTEMS[-1], LONG, 1))
    if preset.training.steps:  # a trial of the grid
        plan = [(SYSTEMS[0], None, None)]
    found = []
    for system, seconds, seeds in plan:
        data = DataSpec(system=system, train=preset.train, test=preset.test, seed=seed)
        budget = preset.training if seconds is None else Training(seconds=seconds)
        scaled = preset.model_copy(update={"training": budget})
        for entry in entries:
            more: dict[str, Any] = {"rollout": "midpoint"} if entry.kind == "hnn" else {}
            found += roster.make_cells(
                entry, scaled, data, "curves", seed=seed, seeds=seeds,
                task="trial" if seconds is None else f"{seconds:g} s", **more,
            )  # fmt: skip
    return found


def measure(cell: Cell, lab: Lab) -> Measured:
    """Completion of new trajectories from 16 states, and the parameter read off their codes."""
    seen = lab.measured[:, :OBSERVED]
    prediction, model = predict(lab, seen, PREDICTED)
    metrics, curves = forecast_metrics(prediction, lab.truth)
    assert model is not None
    metrics |= probe_metrics(model, seen, lab.truth, LENGTHS[cell.data.system])
    return Measured(metrics, curves, model)
