"""Learn from trajectories of which each process has a part in memory at a time."""

import dataclasses
import json
from typing import Any

import numpy as np

from dhn.blocks import window_starts
from dhn.errors import UserError
from dhn.estimator.code_size import CodeSize, fresh, needed_codes
from dhn.estimator.learning import held_out, learn, left_of, packed, warm_codes
from dhn.estimator.trained import TrainedModel
from dhn.estimator.turns import NOISY, noise_per_step
from dhn.files.source import AbstractSource
from dhn.files.stored import StoredTrajectories
from dhn.models.contract import ModelContext
from dhn.models.registry import skeleton
from dhn.training.config import TrainingConfig
from dhn.training.devices import Devices
from dhn.training.fit import fit
from dhn.training.pools import Pooling
from dhn.training.prepare import make_context
from dhn.training.result import Options
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


def learn_in_parts(
    source: AbstractSource,
    config: Any,
    training: TrainingConfig,
    options: Options,
    start: TrainedModel | None = None,
) -> tuple[TrainedModel | None, Trajectories | None]:
    """Train a model on trajectories of which each process reads the rows that it holds.

    The first process sets units, noise and typical changes, for all of them. From a folder of more
    trajectories than a pool has, it takes them from a sample, and the model that comes out has the
    codes of the last pool; the codes of all trajectories are in the file `codes.bin`.

    Arguments:
        source: Training trajectories on one even grid of times, with momenta or velocities.
        config: Configuration of the model.
        training: The recipe.
        options: How the training runs.
        start: A trained model whose weights and units training begins with.

    Returns:
        The trained model, and the trajectories that training kept aside; nothing in processes
        other than the first.
    """
    pooling, devices, stored = Pooling(), Devices(), None
    if isinstance(source, StoredTrajectories) and len(source) > pooling.trajectories:
        stored = source
    if not devices.first:
        some = source.rows(0, 1)
    elif stored is not None:
        some = sample(stored, pooling.trajectories, training.seed)
    else:
        some = source.rows(0, len(source))
    found = _units(some, training, start) if devices.first else {}
    found = json.loads(devices.text_from_first(json.dumps(found)))
    noise, share = np.array(found["noise"]), found["share"]
    if share > NOISY and stored is not None:
        raise UserError(
            f"the trajectories of {stored.path} are noisy ({100 * share:.2g} % of a typical "
            f"change), and learning from noise in turns needs them in memory; write a part of them "
            f"into a file, dhn.write(dhn.open({str(stored.path)!r})[:4096], 'part.npz'), and train "
            f"on that."
        )
    if share > NOISY:  # every process reconstructs all of them
        data = source.rows(0, len(source))
        trained = learn(data, config, training, options, start)
        return trained, held_out(trained, data)
    scaler = Scaler.from_dict(found["scaler"])
    context = ModelContext.from_dict(found["context"])
    search = CodeSize(config, {}, 0.0)
    model = skeleton(config, context) if start is None else start.model
    if devices.first:
        for shape in model.training_shapes:  # before a folder is made
            window_starts(some.complete, shape.length, shape.spacing)
    first_codes = codes = None
    if start is not None and stored is not None:
        first_codes = lambda data: warm_codes(start, data)  # noqa: E731
    elif start is not None:
        empty = np.zeros((len(source), model.latent_size))
        codes = devices.from_first(warm_codes(start, some) if devices.first else empty)
    reader: dict[str, Any] = {"source": source, "stored": stored, "pooling": pooling}
    if start is None:
        search = needed_codes(
            config, context, some, scaler, training, options, noisy=False, **reader
        )
        config = search.config
        model = fresh(config, context, training)
    result = fit(
        model, some, scaler, training, **vars(left_of(options, search.seconds)), **reader,
        codes=codes, first_codes=first_codes,
    )  # fmt: skip
    if not devices.first:
        return None, None
    kept = some if stored is None else stored.chunks(result.chunks)
    trained = packed(kept, config, training, scaler, context, noise, result, search)
    if stored is not None:
        whole = {
            "trajectories": len(stored), "fingerprint": stored.fingerprint(), "kept": len(kept)
        }  # fmt: skip
        trained = dataclasses.replace(trained, summary={**trained.summary, **whole})
    held = np.flatnonzero(result.held_out & kept.complete.all(1))
    return trained, kept[held] if len(held) else None


def _units(
    some: Trajectories, training: TrainingConfig, start: TrainedModel | None
) -> dict[str, Any]:
    """What one process finds in the data, or a starting model brings, as JSON values."""
    scaler = Scaler.fit(some, training.scaling) if start is None else start.scaler
    noise, share = noise_per_step(some, some, scaler)
    context = make_context(some, scaler) if start is None else start.context
    return {
        "scaler": scaler.to_dict(), "noise": noise.tolist(), "share": share,
        "context": dataclasses.asdict(context),
    }  # fmt: skip
