"""`fit`: train any model on trajectories, for so many steps or so much time, resumably."""

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import jax

from dhn.blocks import Codes
from dhn.checks import seconds
from dhn.files.source import AbstractSource
from dhn.files.stored import StoredTrajectories
from dhn.models.contract import AbstractModel
from dhn.training.config import TrainingConfig
from dhn.training.devices import is_first_process
from dhn.training.interrupt import watch_signals
from dhn.training.lock import lock_run
from dhn.training.pools import FirstCodes, Pooling, Pools
from dhn.training.progress import open_progress
from dhn.training.result import FitResult as FitResult
from dhn.training.result import Options
from dhn.training.result import TrainingDiverged as TrainingDiverged
from dhn.training.session import Session
from dhn.trajectories.container import Trajectories
from dhn.trajectories.scaling import Scaler


def fit(
    model: AbstractModel,
    data: Trajectories,
    scaler: Scaler,
    config: TrainingConfig,
    *,
    codes: Codes | None = None,
    source: AbstractSource | None = None,
    stored: StoredTrajectories | None = None,
    pooling: Pooling | None = None,
    first_codes: FirstCodes | None = None,
    **how: Any,
) -> FitResult:
    """Train `model` on `data`, for `config.steps` steps or for about `budget` seconds.

    `how` are fields of `Options`.

    With a budget the speed is measured first, on steps that are then thrown away, and sets the
    number of steps; `steps=result.steps` gives the same weights again. Only if the machine's speed
    changes a good deal later on is the schedule adapted (`Plan`), which the checkpoint records.
    `speed`, in steps a second, replaces the measurement.

    With a directory SIGINT, SIGTERM and SIGHUP save and raise `TrainingInterrupted`. With
    `resume=True` a queue may run the same call again and again.

    `codes`, one row a trajectory, are where the codebook begins instead of the recipe's start: a
    warm start goes with a model whose weights belong to them.

    With `stored`, training is on those trajectories, in pools that fit into memory (`pools`), and
    `data` is a sample of them; `first_codes` then takes the place of `codes`.

    All devices share the work (`devices`). Of several processes the first one writes, and its clock
    decides. Each trains on its rows of `source`; only the first needs all of them as `data`.

    The last weights are returned, where the learning rate has come to rest, unless an earlier
    validation loss was less than half as large.
    """
    options = Options(**how)
    if options.budget is not None:
        seconds("budget", options.budget)
    directory = options.directory
    with (
        lock_run(directory if is_first_process() else None),
        jax.enable_x64(config.precision == "float64"),
        open_progress(options.progress and is_first_process()) as shown,
        # Without a folder nothing can be saved, and a signal keeps its usual meaning.
        watch_signals(directory is not None) as interruption,
        contextlib.ExitStack() as stack,
    ):
        pools = None
        if stored is not None:
            scratch = directory or stack.enter_context(tempfile.TemporaryDirectory())
            pools = Pools(
                stored, scaler, tuple(model.training_shapes), config, Path(scratch),
                model.latent_size, pooling or Pooling(), first_codes,
            )  # fmt: skip
            stack.callback(pools.close)
        session = Session(model, data, scaler, config, options, shown, codes, pools, source)
        session.train(interruption)
        return session.result()
