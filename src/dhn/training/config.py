"""How a model is trained; the defaults measured best (docs/lab/experiments.md)."""

from typing import Annotated, Literal

import pydantic

from dhn.models.config import Config, Fraction, Positive, Weight
from dhn.trajectories.scaling import Units

PositiveFloat = Annotated[float, pydantic.Field(gt=0.0)]


class TrainingConfig(Config):
    """One recipe: optimiser, schedule, batch, validation."""

    scaling: Units = "spread"
    """Units in which the network learns; see `Scaler.fit`."""
    steps: Positive = 20000
    """Optimiser steps; ignored when a wall-clock budget sets them."""
    batch_size: Positive = 256
    """Windows (per stage) or whole trajectories of a step."""
    batch_of: Literal["windows", "trajectories"] = "windows"
    """`trajectories`: every window of each one, all trajectories in turn (the paper's)."""
    chunk_size: Annotated[int, pydantic.Field(ge=0)] = 0
    """Windows differentiated at once, so that they fit the cache; 0 is the platform's default."""
    optimiser: Literal["adam", "muon"] = "muon"
    """Muon makes the updates of hidden matrices orthogonal; Adam has the rest, or all."""
    learning_rate: PositiveFloat = 8e-3
    code_learning_rate: PositiveFloat = 8e-3
    code_start: Weight = 0.0
    """Standard deviation of the first codes."""
    code_updates: Literal["batch", "all"] = "batch"
    """Codes that a step moves: those of its batch, or (the authors') all, by momentum and `l2`."""
    code_search: Fraction = 0.05
    """Share of the steps (1000 or more) or of the budget that each of a few short trainings takes,
    which find how many of the `latent_size` numbers of a code are needed; 0 uses all of them."""
    l2: Weight = 0.0
    """Times weights and codes, added to their gradient."""
    warmup: Annotated[int, pydantic.Field(ge=0)] = 200
    """Steps of linear warm-up; then a cosine to `final_learning_rate`."""
    final_learning_rate: Fraction = 1e-4
    """As a fraction of the peak; 1 keeps the rate constant."""
    clip: Weight = 1.0
    """Largest global norm of the weights' gradient; 0 is no limit."""
    average: Annotated[float, pydantic.Field(ge=0.0, lt=1.0)] = 0.0
    """Decay of the exponential moving average of the weights; 0 is none."""
    validation: Annotated[float, pydantic.Field(ge=0.0, lt=1.0)] = 0.05
    """Fraction of the training set kept aside for model selection."""
    clock: Literal["wall", "processor"] = "wall"
    """What a budget counts: seconds on the wall, or of processor time, which is fair among runs
    that share a busy machine."""
    precision: Literal["float32", "float64"] = "float32"
    seed: Annotated[int, pydantic.Field(ge=0, lt=2**63)] = 0
