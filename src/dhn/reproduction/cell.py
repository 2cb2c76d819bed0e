"""A cell of the grid: everything that decides its result, and a name made of it."""

import hashlib
import json
import re
from typing import Annotated, Any, Literal

import pydantic

from dhn.models.config import Config, Positive


class DataSpec(Config):
    """Which trajectories are simulated. Training and test set differ in their seeds."""

    system: str
    """A system, or the name of a setting of `peers`."""
    train: Positive = 1000
    test: Positive = 200
    train_states: Positive = 129
    """Training sees only the first so many states of its trajectories."""
    test_states: Positive = 129
    noise: Annotated[float, pydantic.Field(ge=0.0)] = 0.0
    """Measurement noise as a fraction of each coordinate's standard deviation."""
    announced: bool = True
    """Whether the data state how noisy they are."""
    starts: Literal["fixed", "random"] = "fixed"
    g: float | None = None
    """Gravity; the system's own by default."""
    seed: int = 0


class Training(Config):
    """How long a model is trained: so many optimiser steps, or so many seconds."""

    steps: Positive | None = None
    seconds: Annotated[float, pydantic.Field(gt=0.0)] | None = None
    """Seconds after compilation, the same for every model of a comparison."""


class Cell(Config):
    """One independent run: a model, trained on some data, measured on one task."""

    experiment: Literal[
        "fit", "completion", "representation", "interpolation", "stress", "curves", "peers"
    ]
    task: str = ""
    """Which of the experiment's measurements, where it has several."""
    model: str
    """Short label for legends."""
    kind: str
    """`dhn` or a trainable baseline, or the name of a classical method, which trains nothing."""
    block_size: int = 0
    """0 where the model has no blocks."""
    stride: int = 0
    seed: int = 0
    preset: str = "default"
    """Named configuration of the DHN that `options` change."""
    options: dict[str, Any] = pydantic.Field(default_factory=dict)
    """Changes to the model's configuration and training recipe, by name."""
    match: dict[str, Any] | None = None
    """DHN options whose parameter count this model's width is made to match."""
    data: DataSpec
    training: Training = Training()
    evaluation: dict[str, Any] = pydantic.Field(default_factory=dict)
    """Options of the measurement: observed states, integrator, factor, ..."""

    @property
    def trained(self) -> bool:
        return self.kind in ("dhn", "hnn", "vanilla", "cnn", "neighbour")

    @property
    def model_key(self) -> str:
        """Cells with the same key share one trained model."""
        fields = ("kind", "seed", "preset", "options", "match", "training")
        data = self.data.model_dump(exclude={"test", "test_states"})
        return _digest({**self.model_dump(include=set(fields)), "data": data})

    @property
    def recipe_key(self) -> str:
        """Cells with the same key train the same model but for its seed, so they compile alike."""
        return self.model_copy(update={"seed": 0}).model_key if self.trained else self.name

    @property
    def name(self) -> str:
        """Readable, unique, and other as soon as the configuration is."""
        block = f"b{self.block_size}s{self.stride}" if self.block_size else ""
        parts = (
            self.experiment, self.task, self.data.system, self.model, block, f"seed{self.seed}",
            _digest(self.model_dump()),
        )  # fmt: skip
        return ".".join(re.sub(r"[^a-z0-9%]+", "-", p.lower()).strip("-") for p in parts if p)


def _digest(values: dict[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:8]
