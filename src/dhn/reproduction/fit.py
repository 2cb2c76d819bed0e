"""Fit (paper, Sec. 4.1): training trajectories again from their first 8 states and their codes."""

from typing import Any

from dhn.reproduction import roster
from dhn.reproduction.cell import Cell, DataSpec
from dhn.reproduction.lab import Lab, Measured
from dhn.reproduction.predicting import forecast_metrics, predict
from dhn.reproduction.presets import Preset

OBSERVED, PREDICTED = 8, 120  # states
SYSTEMS = ("single_pendulum", "double_pendulum")
SMALL = ("Default", "ResNet 2")
"""Models of a grid that is not full, on all systems but the last."""
LEFT_OUT = ("Blocks b=8", "Paper b=4", "Paper b=8", "ResNet 1", "Vanilla transformer")
"""Models that a grid that is not full has nowhere."""


def sequence_models(preset: Preset, system: str, vanilla: bool) -> list[roster.Entry]:
    """The models that predict the future."""
    entries = [roster.DEFAULT]
    for form in (roster.blocks, roster.paper):
        entries += [form(b, b // 2) for b in (2, 4, 8)]
    entries += [roster.HNN, roster.HNN_EULER]
    if preset.full:
        entries += [roster.HNN_TRANSFORMER]
    if vanilla:
        entries += [roster.RESNET1, roster.RESNET2, roster.VANILLA_TRANSFORMER]
    if not preset.full:
        small = system != SYSTEMS[-1]
        entries = [e for e in entries if (e.model in SMALL if small else e.model not in LEFT_OUT)]
    return entries


def sequence_cells(
    preset: Preset, seed: int, experiment: str, vanilla: bool, classical: dict[str, str]
) -> list[Cell]:
    """Every model on both pendulums; an HNN once for each integrator."""
    found = []
    for system in SYSTEMS:
        data = DataSpec(system=system, train=preset.train, test=preset.test, seed=seed)
        for entry in sequence_models(preset, system, vanilla):
            rules = [None]
            if entry.kind == "hnn":
                rules = list(roster.INTEGRATORS if preset.full else ("euler", "midpoint"))
                rules = ["midpoint"] if entry.transformer else rules
            for rule in rules:
                more: dict[str, Any] = {} if rule is None else {"rollout": rule}
                found += roster.make_cells(
                    entry, preset, data, experiment, seed=seed,
                    label="" if rule is None else f" {rule}", **more,
                )  # fmt: skip
        for kind, label in classical.items():
            more: dict[str, Any] = {"trajectories": preset.fitted} if kind == "parametric" else {}
            found.append(roster.classical(kind, label, data, experiment, **more))
    return found


def cells(preset: Preset, seed: int) -> list[Cell]:
    return sequence_cells(
        preset, seed, "fit", False, {"persistence": "Persistence", "dmd": "DMD 8 delays"}
    )


def measure(cell: Cell, lab: Lab) -> Measured:
    """Codes come from the codebook; nothing is fitted on the states shown."""
    rows = slice(0, cell.data.test)
    truth = lab.train[rows]
    codes = lab.model().trained.codes[rows] if cell.trained else None
    prediction, model = predict(lab, truth[:, :OBSERVED], PREDICTED, codes)
    metrics, curves = forecast_metrics(prediction, truth)
    return Measured(metrics, curves, model)
