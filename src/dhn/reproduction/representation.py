"""Representation (paper, Sec. 4.2): the ratio l2/l1 read off the codes of unseen trajectories."""

from dhn.evaluation.blocks import MOST, diagnose
from dhn.reproduction import roster
from dhn.reproduction.cell import Cell, DataSpec
from dhn.reproduction.lab import Lab, Measured
from dhn.reproduction.predicting import probe_metrics
from dhn.reproduction.presets import Preset

TARGET = "l2"
"""l1 is 1 in all trajectories, so this is the ratio."""
STRIDES = {2: (1,), 4: (1, 2, 3), 8: (1, 2, 3, 4, 5, 6, 7)}
"""Block size -> strides, the authors' grid."""


def cells(preset: Preset, seed: int) -> list[Cell]:
    """DHN with random masks over blocks and strides; the baselines as they are for completion."""
    data = DataSpec(system="double_pendulum", train=preset.train, test=preset.test, seed=seed)
    entries = [roster.DEFAULT]
    for b, strides in STRIDES.items() if preset.full else {4: (2,)}.items():
        entries += [roster.blocks(b, s, mask="random") for s in strides]
        entries += [roster.paper(b, s, "paper-random") for s in strides]
    entries += [roster.HNN, roster.RESNET2]
    if preset.full:
        entries += [roster.VANILLA_TRANSFORMER]
    found = []
    for entry in entries:
        found += roster.make_cells(entry, preset, data, "representation", seed=seed)
    return found


def measure(cell: Cell, lab: Lab) -> Measured:
    """The probe, and over blocks and strides what appendix B measures."""
    model, truth = lab.model(), lab.truth
    metrics = probe_metrics(model, truth, truth, TARGET)
    blocks = diagnose(model.trained, truth, model.encode(truth[:MOST]))
    if blocks is not None:
        metrics |= {k: float(v) for k, v in blocks.summary().items() if v is not None}
    return Measured(metrics, {}, model)
