"""`DHN`: the estimator that a person makes, in scikit-learn's manner."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, final

from dhn.errors import UserError
from dhn.estimator.conventions import AbstractConventions
from dhn.estimator.learning import calibrated, held_out, learn
from dhn.estimator.network import AbstractNetworkAnswers
from dhn.estimator.options import apply_options
from dhn.estimator.storage import save
from dhn.estimator.trained import TrainedModel
from dhn.files.accepting import TrajectoriesLike, as_trajectories
from dhn.models.config import DHNConfig
from dhn.models.presets import get_preset
from dhn.training.config import TrainingConfig


class AbstractEstimator(AbstractNetworkAnswers, AbstractConventions):
    """A configuration that can be fitted; afterwards it answers questions."""

    config: Any
    training: TrainingConfig
    fitted: TrainedModel | None

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
        budget: float | None = None,
        directory: str | Path | None = None,
        resume: bool = False,
        progress: bool = False,
        calibrate: bool = False,
        validation: TrajectoriesLike | None = None,
        source: dict[str, Any] | None = None,
    ) -> "AbstractEstimator":
        """Train on these trajectories, for `steps` optimiser steps or `budget` seconds.

        Arguments:
            train: Training trajectories; also a DataFrame, a Dataset, a dict of arrays or a path.
            steps: Optimiser steps; the recipe's own number by default.
            budget: Seconds, instead of steps.
            directory: Receives checkpoints and the trained model.
            resume: Go on from the last checkpoint in `directory`.
            progress: Show a progress line.
            calibrate: Scale error bands to forecasts of held-out trajectories.
            validation: The held-out trajectories; by default those that training kept aside.
            source: Where the data come from, kept with the model.

        Returns:
            The estimator itself.
        """
        train, training = as_trajectories(train), self.training
        if steps is not None:
            training = apply_options({"training": training}, {"steps": steps})["training"]
        found = learn(
            train, self.config, training,
            budget=budget, directory=directory, resume=resume, progress=progress,
        )  # fmt: skip
        if calibrate:
            held = held_out(found, train) if validation is None else as_trajectories(validation)
            found = found if held is None else calibrated(found, held)
        if source is not None:
            found = dataclasses.replace(found, summary={**found.summary, "data": source})
        self.fitted = found
        if directory is not None:
            save(found, directory)
        return self


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
        base, training = get_preset(preset) if isinstance(preset, str) else (preset, {})
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
    model.fitted = found
    return model
