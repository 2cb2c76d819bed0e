"""Interpolation (paper, Sec. 4.3): every fourth of 65 states, from where training began or not."""

from dhn.reproduction import roster
from dhn.reproduction.cell import Cell, DataSpec
from dhn.reproduction.fit import SYSTEMS
from dhn.reproduction.lab import Lab, Measured
from dhn.reproduction.predicting import forecast_metrics
from dhn.reproduction.presets import Preset
from dhn.reproduction.upsampling import refine

FACTOR, STATES = 4, 65  # grid steps of a gap, states of a trajectory
SEGMENTS = {"same start": 0, "unseen start": 64}
"""Task -> first state. Training sees states 0..64 only."""
BLOCKS = roster.blocks(2, 1, spacings=[4, 2, 1], mask="superresolution")
PAPER = roster.paper(2, 1, "paper-superresolution")
# Windows are whole trajectories of 65 states: fewer of them, for more steps, measured best.
CNN = roster.Entry("CNN", "cnn", {"factor": FACTOR, "batch_size": 16})
CNN_PAPER = roster.Entry("CNN (paper)", "cnn", {**CNN.options, "residual": False}, ranked=False)
NEIGHBOUR = roster.Entry("Two neighbours", "neighbour", ranked=False)
CLASSICAL = {"linear": "Linear", "spline": "Cubic spline", "hermite": "Hermite, true slopes"}


def cells(preset: Preset, seed: int) -> list[Cell]:
    found = []
    for system in SYSTEMS:
        data = DataSpec(
            system=system, train=preset.train, test=preset.test, train_states=STATES, seed=seed
        )
        entries = [roster.DEFAULT, BLOCKS, PAPER, CNN, CNN_PAPER, NEIGHBOUR]
        if not preset.full:
            small = [roster.DEFAULT, BLOCKS, PAPER, NEIGHBOUR]
            entries = [CNN] if system != SYSTEMS[-1] else small
        for task, first in SEGMENTS.items():
            for entry in entries:
                found += roster.make_cells(
                    entry, preset, data, "interpolation", seed=seed, task=task,
                    first=first, factor=FACTOR,
                )  # fmt: skip
            found += [
                roster.classical(
                    kind, label, data, "interpolation", task, first=first, factor=FACTOR
                )
                for kind, label in CLASSICAL.items()
            ]
    return found


def measure(cell: Cell, lab: Lab) -> Measured:
    """Only the states in between count; the code is fitted on the known ones alone."""
    first, factor = cell.evaluation["first"], cell.evaluation["factor"]
    truth = lab.truth[:, first : first + STATES]
    prediction, model = refine(lab, truth.resample(factor), factor)
    metrics, curves = forecast_metrics(prediction, truth)
    return Measured(metrics, curves, model)
