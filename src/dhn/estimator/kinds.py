"""`DHN`: the estimator that a person makes, in scikit-learn's manner."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, final

import jax

from dhn.checks import seconds, whole
from dhn.errors import UserError
from dhn.estimator.conventions import AbstractConventions
from dhn.estimator.learning import calibrated, check_held_out, held_out, learn
from dhn.estimator.network import AbstractNetworkAnswers
from dhn.estimator.options import apply_options
from dhn.estimator.storage import check_begun, check_run_folder, save
from dhn.estimator.streaming import learn_in_parts
from dhn.estimator.trained import TrainedModel
from dhn.files.accepting import TrajectoriesLike, as_trajectories
from dhn.files.source import AbstractSource
from dhn.files.stored import StoredTrajectories
from dhn.models.config import Config, DHNConfig
from dhn.models.presets import get_preset
from dhn.training.config import TrainingConfig
from dhn.training.devices import is_first_process
from dhn.training.pools import Pooling
from dhn.training.result import Options

WARM = 0.1
"""Learning rates of a warm start over the recipe's: larger ones undo what was learned."""


def in_parts(train: Any) -> AbstractSource | None:
    """Trajectories of which a process reads a part: too many for memory, or shared with others."""
    if not isinstance(train, AbstractSource):
        return None
    large = isinstance(train, StoredTrajectories) and len(train) > Pooling().trajectories
    return train if large or jax.process_count() > 1 else None


class AbstractEstimator(AbstractNetworkAnswers, AbstractConventions):
    """A configuration that can be fitted; afterwards it answers questions."""

    config: Any
    training: TrainingConfig
    fitted: TrainedModel | None
    loaded: bool = False
    """Whether it came from a file; what it has learned is then not replaced by `fit`."""

    @property
    def trained(self) -> TrainedModel:
        if self.fitted is None:
            raise UserError("this model has not been trained; call fit(...) first.")
        return self.fitted

    def _described(self) -> dict[str, Any]:
        if self.fitted is None:
            return {}
        summary, names = self.fitted.summary, ", ".join(self.fitted.names)
        return {
            "trained on": f"{summary['trajectories']} trajectories ({names})",
            "steps": summary["steps"],
            "parameters of the network": self.parameters,
            "time step": f"{self.time_step:.6g}",
        }

    def fit(
        self,
        train: TrajectoriesLike,
        *,
        steps: int | None = None,
        budget: float | int | str | None = None,
        directory: str | Path | None = None,
        resume: bool = False,
        progress: bool = False,
        calibrate: bool = False,
        validation: TrajectoriesLike | None = None,
        source: dict[str, Any] | None = None,
        start: "AbstractNetworkAnswers | None" = None,
    ) -> "AbstractEstimator":
        """Train on these trajectories, for `steps` optimiser steps or `budget` seconds.

        Arguments:
            train: Training trajectories; also a DataFrame, a Dataset, a dict of arrays or a path;
                or trajectories on disk (`dhn.open`), which are then read in pieces.
            steps: Optimiser steps; the recipe's own number by default.
            budget: Seconds instead of steps, or text such as "5m".
            directory: Receives checkpoints and the trained model.
            resume: Go on with the training that began in `directory`.
            progress: Show a progress line.
            calibrate: Scale error bands to forecasts of held-out trajectories.
            validation: The held-out trajectories; by default those that training kept aside.
            source: Where the data come from, kept with the model.
            start: A trained model of the same configuration, whose weights and units training
                begins with, at a tenth of the learning rates; a fresh model by default.

        Returns:
            The estimator itself. Of several processes that read a file together, only the first
            one has a fitted estimator.
        """
        if self.loaded:
            raise UserError(
                "this model was loaded from a file, and fit would replace what it has learned; "
                "fit a copy: sklearn.base.clone(model), or DHN(**model.get_params())."
            )
        if steps is not None and budget is not None:
            raise UserError("give steps or budget, not both.")
        if resume and directory is None:
            raise UserError("resume needs the directory of the training that is to go on.")
        budget = None if budget is None else seconds("budget", budget)
        parts = in_parts(train)
        training = self.training
        train = as_trajectories(train) if parts is None else parts.rows(0, 1)
        if start is not None:
            if not isinstance(start, AbstractNetworkAnswers):
                raise UserError(
                    f"training can begin with a trained network; got {type(start).__name__}."
                )
            training = self._warm(start.trained)
        if steps is not None:
            wanted = {"steps": whole("steps", steps)}
            training = apply_options({"training": training}, wanted)["training"]
        if validation is not None:
            validation = check_held_out(train, as_trajectories(validation))
        if directory is not None:
            directory = check_run_folder(directory, resume)
            if resume and is_first_process():
                check_begun(directory)
        options = Options(budget, directory, resume, progress)
        first = None if start is None else start.trained
        if parts is not None:
            found, held = learn_in_parts(parts, self.config, training, options, first)
            if found is None:
                return self
        else:
            found = learn(train, self.config, training, options, first)
            held = held_out(found, train) if calibrate and validation is None else None
        if calibrate:
            held = held if validation is None else validation
            found = found if held is None else calibrated(found, held)
        if source is not None:
            found = dataclasses.replace(found, summary={**found.summary, "data": source})
        self.fitted = found
        if directory is not None and is_first_process():
            save(found, directory)
        return self

    def _warm(self, start: TrainedModel) -> TrainingConfig:
        """The recipe with smaller learning rates, for trained weights."""
        if start.config != self.config:
            raise UserError(
                "training can only begin with a model of the same configuration; make the "
                "estimator from it: DHN(start.config)."
            )
        rates = ("learning_rate", "code_learning_rate")
        slower = {name: WARM * getattr(self.training, name) for name in rates}
        return self.training.model_copy(update={**slower, "precision": start.training.precision})


@final
class DHN(AbstractEstimator):
    """Denoising Hamiltonian Network in scikit-learn's manner.

    `DHN()` is the recipe that measured best; `DHN("paper")` is the paper's own. Any field of
    `DHNConfig`, `NetworkConfig` and `TrainingConfig` can be given by name:
    `DHN(block_size=2, stride=1, linked=False, width=64, learning_rate=1e-3, seed=1)`.

    Arguments:
        preset: Name of a recipe, or a whole configuration.
        options: Fields that differ from it.
    """

    def __init__(self, preset: str | DHNConfig = "default", **options: Any):
        base, training = (preset, {}) if isinstance(preset, Config) else get_preset(preset)
        made = apply_options(
            {"model": base, "training": TrainingConfig.model_validate(training)}, options
        )
        self.config = made["model"]
        self.training = made["training"]
        self.given = {"preset": preset, **options}
        self.fitted = None


_RESTORERS: dict[str, Callable[..., AbstractEstimator]] = {"dhn": DHN}
"""Kind of configuration -> the estimator, made from a configuration and options of training."""


def register_estimator(kind: str, make: Callable[..., AbstractEstimator]) -> None:
    """Name the estimator that `load` returns for models of this kind."""
    _RESTORERS[kind] = make


def restored(found: TrainedModel) -> AbstractEstimator:
    """The estimator whose training gave this model, fitted.

    Arguments:
        found: A trained model.

    Returns:
        An estimator of the class that was saved; `clone` of it trains in the same way.
    """
    make = _RESTORERS.get(found.config.kind)
    if make is None:
        raise UserError(f"no estimator is registered for models of kind {found.config.kind!r}.")
    model = make(found.config, **found.training.model_dump(exclude_defaults=True))
    model.fitted, model.loaded = found, True
    return model
