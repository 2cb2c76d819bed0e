"""A cell's workplace: its data and its model, trained at most once for all cells that share it."""

import dataclasses
import time
from pathlib import Path
from typing import Any, final

from dhn.estimator.kinds import AbstractEstimator
from dhn.estimator.storage import FILE, has_begun, load_trained
from dhn.models.contract import ModelContext
from dhn.models.registry import planned_parameters
from dhn.reproduction.baselines.matching import matched_width
from dhn.reproduction.cell import Cell
from dhn.reproduction.datasets import training_set, unseen_set
from dhn.reproduction.estimators import make_estimator
from dhn.training.prepare import make_context
from dhn.trajectories.container import Trajectories
from dhn.trajectories.scaling import Scaler

_COMPILED: set[str] = set()
"""Recipes whose programs this process has."""


@final
@dataclasses.dataclass(frozen=True)
class Lab:
    """Data and model of one cell, below the folder of the results."""

    cell: Cell
    folder: Path

    @property
    def train(self) -> Trajectories:
        return training_set(self.folder, self.cell.data)

    @property
    def truth(self) -> Trajectories:
        """Test trajectories without noise: what predictions are compared with."""
        return unseen_set(self.folder, self.cell.data)

    @property
    def measured(self) -> Trajectories:
        """Test trajectories as they were observed."""
        return unseen_set(self.folder, self.cell.data, noisy=True)

    def model(self) -> AbstractEstimator:
        """The trained model, from the disk if a cell before has trained it."""
        directory = self.folder / "models" / self.cell.model_key
        if (directory / FILE).exists():
            model = self._fresh()
            model.fitted = load_trained(directory)
            return model
        model, training = self._fresh(), self.cell.training
        if training.seconds is not None and self.cell.recipe_key not in _COMPILED:
            # The seconds then count training alone, whichever seed comes first.
            self._fresh().fit(self.train, steps=1)
            _COMPILED.add(self.cell.recipe_key)
        model.fit(
            self.train, steps=training.steps, budget=training.seconds, directory=directory,
            resume=has_begun(directory),
        )  # fmt: skip
        return model

    def _fresh(self) -> AbstractEstimator:
        cell = self.cell
        model = make_estimator(cell.kind, cell.preset, {**cell.options, "seed": cell.seed})
        if cell.match is not None:
            model.config = self._matched(model.config)
        return model

    def _matched(self, config: Any) -> Any:
        """The configuration with as many parameters as the reference DHN has on these data."""
        assert self.cell.match is not None
        context = self._context()
        options = dict(self.cell.match)
        target = make_estimator("dhn", options.pop("preset"), options).config
        return matched_width(config, context, planned_parameters(target, context))

    def _context(self) -> ModelContext:
        return make_context(self.train, Scaler.fit(self.train))


@final
@dataclasses.dataclass(frozen=True)
class Measured:
    """What an experiment says about a cell."""

    metrics: dict[str, float]
    curves: dict[str, Any]
    model: AbstractEstimator | None = None


@final
class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start
