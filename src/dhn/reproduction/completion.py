"""Completion (paper, Sec. 4.1): new trajectories from 16 states, which also give the code."""

from dhn.reproduction.cell import Cell
from dhn.reproduction.fit import sequence_cells
from dhn.reproduction.lab import Lab, Measured
from dhn.reproduction.predicting import forecast_metrics, predict
from dhn.reproduction.presets import Preset

OBSERVED, PREDICTED = 16, 112  # states
CLASSICAL = {
    "persistence": "Persistence",
    "dmd": "DMD 8 delays",
    "parametric": "True system fitted",
}


def cells(preset: Preset, seed: int) -> list[Cell]:
    return sequence_cells(preset, seed, "completion", True, CLASSICAL)


def measure(cell: Cell, lab: Lab) -> Measured:
    rows = slice(0, cell.evaluation.get("trajectories", cell.data.test))
    truth = lab.truth[rows]
    prediction, model = predict(lab, lab.measured[rows, :OBSERVED], PREDICTED)
    metrics, curves = forecast_metrics(prediction, truth)
    return Measured(metrics, curves, model)
