"""How many numbers the codes of a data set need.

A code has to tell systems apart, and as many numbers as parameters vary are enough. A network with
more of them uses the rest to correct its own errors trajectory by trajectory, for instance by the
amplitude of each motion. A few states with noise do not determine such corrections, and forecasts
from them become many times worse (docs/lab/codes.md). So short trainings with codes of one size
after another come first, and the smallest size is taken that explains the training set about as
well as the largest does.
"""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple, final

import jax
import jax.random as jr

from dhn.models.contract import AbstractModel, ModelContext
from dhn.models.registry import build_model
from dhn.training.config import TrainingConfig
from dhn.training.fit import fit
from dhn.training.result import FitResult, Options
from dhn.trajectories.container import Trajectories
from dhn.trajectories.scaling import Scaler

FOLDER = "codes"
"""Of the short trainings, inside that of the training."""
LEAST_STEPS = 1000
"""Of a short training: fewer leave errors in which a missing parameter does not show."""
PILOT_STEPS = 64
"""By which the speed is measured before a budget becomes steps."""
LONGEST = 2.0
"""A short training may take so many times its share of a budget; else there is no search."""
AS_GOOD = 2.0
"""A residual (root mean square) up to so many times that of the largest size counts as the same.
One number for one parameter made it up to 1.5 times as large, one parameter too few 2.6 times and
more (docs/lab/codes.md)."""
AS_GOOD_NOISY = 1.05
"""The same where noise makes most of the residuals, which therefore hardly differ by chance."""


@final
class CodeSize(NamedTuple):
    """What a search found."""

    config: Any
    """The model's configuration with the size that is needed."""
    residuals: dict[int, float]
    """Size -> root mean square residual of the training set; empty without a search."""
    seconds: float
    """Of all short trainings."""


def fresh(config: Any, context: ModelContext, training: TrainingConfig) -> AbstractModel:
    """An untrained model."""
    with jax.enable_x64(training.precision == "float64"):
        return build_model(config, context, jr.key(training.seed))


def needed_codes(
    config: Any,
    context: ModelContext,
    data: Trajectories,
    scaler: Scaler,
    training: TrainingConfig,
    options: Options,
    *,
    noisy: bool,
    **reading: Any,
) -> CodeSize:
    """The smallest codes that explain the training set, by short trainings.

    There is no search where a twentieth of the training (`TrainingConfig.code_search`) has fewer
    than `LEAST_STEPS` steps: the size stays that of the configuration.

    Arguments:
        config: Configuration of the model; its `latent_size` is the largest size.
        context: What the model must know of the data.
        data, scaler: Training trajectories and their units.
        training: The recipe of the whole training.
        options: How the whole training runs; short ones are kept in its folder, and resumed.
        noisy: Whether noise makes most of the residuals.
        reading: What `fit` reads the trajectories from.

    Returns:
        The configuration to train with, and the residuals found.
    """
    share, largest, budget = training.code_search, config.latent_size, options.budget
    steps = round(share * training.steps)
    if share == 0 or largest < 2 or (budget is None and steps < LEAST_STEPS):
        return CodeSize(config, {}, 0.0)
    taken = 0.0

    def tried(size: int, steps: int, name: str) -> FitResult:
        nonlocal taken
        some = config.model_copy(update={"latent_size": size})
        recipe = training.model_copy(update={"steps": steps, "validation": 0.0})
        folder = options.directory and Path(options.directory) / FOLDER / name
        how = dataclasses.replace(options, budget=None, directory=folder)
        found = fit(fresh(some, context, recipe), data, scaler, recipe, **vars(how), **reading)
        taken += found.seconds
        return found

    if budget is not None:
        pilot = tried(largest, PILOT_STEPS, "pilot")
        speed = pilot.history[-1]["steps_per_second"]
        steps = max(LEAST_STEPS, int(share * budget * speed))
        if steps > LONGEST * share * budget * speed:
            return CodeSize(config, {}, taken)
    found = tried(largest, steps, f"size{largest}")
    residuals = {largest: found.noise}
    enough = (AS_GOOD_NOISY if noisy else AS_GOOD) * residuals[largest]
    for size in range(1, largest):
        residuals[size] = tried(size, steps, f"size{size}").noise
        if residuals[size] <= enough:
            return CodeSize(config.model_copy(update={"latent_size": size}), residuals, taken)
    return CodeSize(config, residuals, taken)
