"""Peers: the default, unchanged, on the settings of others, beside their published numbers."""

import numpy as np

from dhn.reproduction import roster
from dhn.reproduction.cell import Cell, DataSpec, Training
from dhn.reproduction.lab import Lab, Measured
from dhn.reproduction.peers.rivals import RIVALS, fit_rival
from dhn.reproduction.peers.settings import SETTINGS, Scores
from dhn.reproduction.presets import Preset

LABELS = {
    "persistence": "Persistence",
    "dmd": "DMD",
    "parrot": "Parroting",
    "kernel": "Kernel ridge",
    "sindy": "PySINDy",
}
SECONDS = 300.0
"""Training of each model, the same for every setting."""
PUBLISHED = "published"
DIVERGED = 1.0
"""Error, in the units of a setting, beyond which a run counts as diverged."""


def cells(preset: Preset, seed: int) -> list[Cell]:
    """Our default with several seeds, every rival, and a row for each published method."""
    budget = preset.training if preset.training.steps else Training(seconds=SECONDS)
    scaled = preset.model_copy(update={"training": budget})
    found = []
    for name, setting in SETTINGS.items():
        data = DataSpec(system=name, seed=seed)
        found += roster.make_cells(
            roster.DEFAULT, scaled, data, "peers", seed=seed, task=setting.title
        )
        found += [
            roster.classical(kind, LABELS[kind], data, "peers", setting.title) for kind in RIVALS
        ]
        found += [
            roster.classical(PUBLISHED, f"{method} (published)", data, "peers", setting.title)
            for method in setting.published
        ]
    return found


def measure(cell: Cell, lab: Lab) -> Measured:
    """Errors at the published times: mean as published, median run and share that diverged."""
    setting = SETTINGS[cell.data.system]
    if cell.kind == PUBLISHED:
        method = cell.model.removesuffix(" (published)")
        return Measured(dict(setting.published[method]), {})
    task = setting.make(cell.data.seed)
    if cell.trained:
        model = lab.model()
        return Measured(summary(task.score(model.forecast(task.start, task.steps))), {}, model)
    found = fit_rival(cell.kind, task.train)(task.start, task.steps)
    return Measured(summary(task.score(found)), {})


def summary(scores: Scores) -> dict[str, float]:
    """Flat numbers of the errors of all runs; one run out of bounds makes the mean infinite."""
    found = {}
    for label, errors in scores.items():
        errors = np.where(np.isfinite(errors), errors, np.inf)
        found[label] = float(np.mean(errors))
        found[f"{label}, median run"] = float(np.median(errors))
        found[f"{label}, diverged"] = float(np.mean(errors > DIVERGED))
    return found
