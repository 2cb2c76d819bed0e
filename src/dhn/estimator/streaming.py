"""Learn from trajectories on disk, of which only a part is in memory at a time."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from dhn.blocks import window_starts
from dhn.errors import UserError
from dhn.estimator.learning import fresh, packed
from dhn.estimator.trained import TrainedModel
from dhn.estimator.turns import NOISY, noise_per_step
from dhn.files.stored import StoredTrajectories
from dhn.training.config import TrainingConfig
from dhn.training.fit import fit
from dhn.training.pools import Pooling
from dhn.training.prepare import make_context, usable_states
from dhn.trajectories.container import Trajectories
from dhn.trajectories.scaling import Scaler

STREAM = 0xD15C
"""Keeps the random numbers of the sample apart from other uses of the same seed."""


def sample(stored: StoredTrajectories, trajectories: int, seed: int) -> Trajectories:
    """Trajectories of some chunks, drawn at random."""
    count = -(-len(stored) // stored.chunk)
    wanted = min(count, max(1, trajectories // stored.chunk))
    rng = np.random.default_rng([STREAM, seed])
    return stored.chunks(np.sort(rng.permutation(count)[:wanted]).tolist())


def learn_from_disk(
    stored: StoredTrajectories,
    config: Any,
    training: TrainingConfig,
    *,
    budget: float | None = None,
    directory: str | Path | None = None,
    resume: bool = False,
    progress: bool = False,
    pooling: Pooling | None = None,
) -> tuple[TrainedModel, Trajectories | None]:
    """Train a model on trajectories that are read in pieces.

    Units, noise and typical changes are those of a sample. The model that comes out has the codes
    of the last pool; the codes of all trajectories are in the file `codes.bin` of the folder.

    Arguments:
        stored: Training trajectories on one even grid of times, with momenta or velocities.
        config: Configuration of the model.
        training: The recipe.
        budget: Seconds, by the recipe's clock.
        directory: Receives checkpoints and codes, so that the run can be resumed.
        resume: Go on from the last checkpoint in `directory`.
        progress: Show a progress line.
        pooling: How many trajectories are in memory at a time, and for how many steps.

    Returns:
        The trained model, and the trajectories that training kept aside.
    """
    pooling = Pooling() if pooling is None else pooling
    some = sample(stored, pooling.trajectories, training.seed)
    scaler = Scaler.fit(some, training.scaling)
    noise, share = noise_per_step(some, scaler)
    if share > NOISY:
        raise UserError(
            f"the trajectories of {stored.path} are noisy ({100 * share:.2g} % of a typical "
            f"change), and learning from noise in turns needs them in memory; train on a part: "
            f"dhn.open(...)[:10000]."
        )
    context = make_context(some, scaler)
    model = fresh(config, context, training)
    for shape in model.training_shapes:  # before a folder is made
        window_starts(usable_states(some), shape.length, shape.spacing)
    found = fit(
        model, some, scaler, training, budget=budget, directory=directory, resume=resume,
        progress=progress, stored=stored, pooling=pooling,
    )  # fmt: skip
    kept = found.trajectories
    trained = packed(kept, config, training, scaler, context, noise, found)
    whole = {"trajectories": len(stored), "fingerprint": stored.fingerprint(), "kept": len(kept)}
    trained = dataclasses.replace(trained, summary={**trained.summary, **whole})
    held = np.flatnonzero(found.held_out & usable_states(kept).all(1))
    return trained, kept[held] if len(held) else None
