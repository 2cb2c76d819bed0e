"""What a training gives back, or why it gives nothing back."""

import dataclasses
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Bool

from dhn.blocks import Codes
from dhn.errors import UserError
from dhn.models.contract import AbstractModel
from dhn.training.history import Record
from dhn.training.pace import CHUNK_SECONDS


@final
class TrainingDiverged(UserError):
    """A loss or gradient was no longer a number."""


@final
@dataclasses.dataclass(frozen=True)
class FitResult:
    """A trained model and how it came about."""

    model: AbstractModel
    """With the averaged weights if the configuration asks for an average."""
    codes: Codes
    """The latent code of every trajectory: of the training set, or of `chunks`."""
    noise: float
    """Root mean square residual of training windows, in units of a typical change."""
    steps: int
    seconds: float
    history: list[Record]
    """One record a chunk of steps, as in metrics.jsonl."""
    validation: float | None
    """Validation loss of the returned model."""
    chosen: str
    """"last" or "best": which weights these are."""
    chunks: tuple[int, ...]
    """Of trajectories on disk, the chunks of the last pool; empty for others."""
    held_out: Bool[np.ndarray, " n"]
    """Which of these trajectories no step has seen."""


@final
@dataclasses.dataclass(frozen=True)
class Options:
    """How a training runs. Of all these only the budget, or its lack, changes the result."""

    budget: float | None = None
    """Seconds, by the recipe's clock, instead of its steps."""
    directory: str | Path | None = None
    """Receives checkpoints and metrics.jsonl, so that the run can be resumed; locked meanwhile."""
    resume: bool = False
    """Go on bit for bit from the last checkpoint in `directory`, or begin if there is none."""
    progress: bool = True
    """Show a progress line."""
    checkpoint_seconds: float = 30.0
    """About so long between two checkpoints."""
    chunk_seconds: float = CHUNK_SECONDS
    """About so long between two returns to Python."""
    speed: float | None = None
    """Steps a second, if an earlier training of the same programs has measured them."""
