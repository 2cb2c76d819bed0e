"""Training for measured data: the classical part first, then the network along paths.

The classical part holds outside what was measured, but may be too simple. The network can be
anything, also where there are no data. Which of the two forecasts better is not known beforehand,
so states that neither of them saw decide.
"""

import dataclasses
from pathlib import Path
from typing import final

import equinox as eqx
import jax
import numpy as np

from dhn.errors import UserError
from dhn.models.contract import AbstractModel
from dhn.models.dhn import DHNModel
from dhn.training.checkpoint import Checkpoints
from dhn.training.classical import fit_classical, path_noise
from dhn.training.config import TrainingConfig
from dhn.training.fit import FitResult, fit
from dhn.training.pace import CLOCKS
from dhn.training.prepare import prepare, usable_states
from dhn.training.progress import open_progress
from dhn.training.step import TrainingData
from dhn.training.validation import Validator, choose_split
from dhn.trajectories.container import Trajectories
from dhn.trajectories.scaling import Scaler

LEAST_SHARE = 0.3
"""Of a budget for the paths, however long the classical part took to compile."""
CLEARLY_BETTER = 0.7
"""A network replaces the classical part alone if its path loss is below this share of it: where
both do as well, the simpler one holds further outside the data."""
LEAST_NOISE = 1e-3
"""Of a scaled coordinate, when coordinates are weighed against each other."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class _Candidate:
    name: str
    model: DHNModel
    codes: np.ndarray
    score: float


def fit_along_paths(
    model: AbstractModel,
    data: Trajectories,
    scaler: Scaler,
    config: TrainingConfig,
    *,
    budget: float | None = None,
    directory: str | Path | None = None,
    resume: bool = False,
    progress: bool = True,
    tensorboard: bool = False,
) -> FitResult:
    """As `fit`, for a model with `path > 0`; steps and budget are those of the network."""
    if not isinstance(model, DHNModel) or not model.config.path:
        raise UserError("training along paths needs a DHN with path > 0.")
    clock = CLOCKS[config.clock]
    started = clock()
    with jax.enable_x64(config.precision == "float64"):
        judge = _Judge(model, data, scaler, config)
        noise = np.full((2, data.dim), LEAST_NOISE)
        if data.noise is not None:
            noise = np.maximum(noise, scaler.scaled_noise(data.noise))
        nothing = np.zeros((len(data), model.latent_size))
        model = _cast(model, config)
        classical = fit_classical(model, judge.arrays, noise, config.seed)
        found = [judge.candidate("classical", classical, nothing)]
        with open_progress(progress) as shown:
            shown.say(f"classical part: path loss {found[0].score:.3g} on states kept aside")
    steps, history = 0, []
    if judge.enabled:
        refined = fit(
            _along(classical), data, scaler, config,
            budget=_rest(budget, clock() - started, directory if resume else None),
            directory=directory, resume=resume, progress=progress, tensorboard=tensorboard,
        )  # fmt: skip
        with jax.enable_x64(config.precision == "float64"):
            found.append(judge.candidate("paths", refined.model, refined.codes))
        steps, history = refined.steps, refined.history
    best = _best(found)
    with jax.enable_x64(config.precision == "float64"):
        if best.name == "classical":
            # So few unknowns may also see what was kept aside to choose.
            everything = prepare(data, scaler, model.training_shapes, config.precision)
            best = dataclasses.replace(
                best, model=fit_classical(model, everything, noise, config.seed)
            )
        best = judge.with_noise(best)
        residual = judge.validator.noise(best.model, judge.rows(best.codes))
    with open_progress(progress) as shown:
        scores = ", ".join(f"{one.name} {one.score:.3g}" for one in found)
        shown.say(f"path loss on states kept aside: {scores}; kept: {best.name}")
    return FitResult(
        model=best.model,
        codes=best.codes,
        noise=residual,
        steps=steps,
        seconds=clock() - started,
        history=history,
        validation=best.score if judge.enabled else None,
        chosen=best.name,
    )


def _rest(budget: float | None, spent: float, directory: str | Path | None) -> float | None:
    """Seconds for the paths; a run that goes on knows them already."""
    if budget is None or (directory is not None and Checkpoints(Path(directory)).paths()):
        return None
    return max(budget - spent, LEAST_SHARE * budget)


def _best(found: list[_Candidate]) -> _Candidate:
    """The first one, or the last one if that is clearly better."""
    first, last = found[0], found[-1]
    return last if last.score < CLEARLY_BETTER * first.score else first


def _cast(model: DHNModel, config: TrainingConfig) -> DHNModel:
    weights, static = eqx.partition(model, eqx.is_inexact_array)
    return eqx.combine(jax.tree.map(lambda x: x.astype(config.precision), weights), static)


def _along(model: DHNModel) -> DHNModel:
    """The same model, trained along paths alone."""
    config = model.config.model_copy(update={"equation_weight": 0.0, "path_weight": 1.0})
    return dataclasses.replace(model, config=config)


@final
class _Judge:
    """Path losses on states that no training sees; the same split as in the trainings."""

    def __init__(self, model: DHNModel, data: Trajectories, scaler: Scaler, config: TrainingConfig):
        shapes = model.training_shapes
        split = choose_split(usable_states(data), shapes, config.validation, config.seed)
        self.config = model.config
        self.arrays: TrainingData = prepare(data, scaler, shapes, config.precision, split.train)
        self.validator = Validator(
            data, scaler, shapes, split, self.arrays, config.precision, config.seed
        )
        self.enabled = self.validator.enabled

    def rows(self, codes: np.ndarray) -> jax.Array:
        """Codes of trajectories, padded as the training data are."""
        padded = np.zeros((self.arrays.states.q.shape[0], codes.shape[1]), codes.dtype)
        padded[: len(codes)] = codes
        return jax.numpy.asarray(padded, self.arrays.states.q.dtype)

    def candidate(self, name: str, model: AbstractModel, codes: np.ndarray) -> _Candidate:
        assert isinstance(model, DHNModel)
        score = self.validator.loss(_along(model), self.rows(codes))
        model = dataclasses.replace(model, config=self.config)
        score = float("inf") if score is None or not np.isfinite(score) else score
        return _Candidate(name, model, np.asarray(codes), score)

    def with_noise(self, best: _Candidate) -> _Candidate:
        noise = path_noise(best.model, self.arrays, self.rows(best.codes))
        return dataclasses.replace(
            best, model=eqx.tree_at(lambda m: m.path_noise, best.model, noise)
        )
