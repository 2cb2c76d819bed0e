"""Learn: trajectories are scaled, cut into windows and fitted; out comes a `TrainedModel`."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from dhn.blocks import window_starts
from dhn.codes.autodecode import CodePrior
from dhn.errors import UserError
from dhn.estimator.asking import ABSURD, answer, ask
from dhn.estimator.code_size import CodeSize, fresh, needed_codes
from dhn.estimator.trained import TrainedModel
from dhn.estimator.turns import (
    NOISY,
    SHARES,
    momenta_of,
    noise_per_step,
    smooth_start,
    with_first_momenta,
    with_states,
)
from dhn.memory import check_memory
from dhn.models.contract import AbstractModel
from dhn.models.registry import skeleton
from dhn.reconstruct.bands import Bands, horizons
from dhn.reconstruct.engine import refine
from dhn.reconstruct.guess import Examples
from dhn.training.checkpoint import has_checkpoint
from dhn.training.config import TrainingConfig
from dhn.training.fit import FitResult, fit
from dhn.training.pace import CLOCKS
from dhn.training.prepare import make_context
from dhn.training.result import Options
from dhn.training.validation import choose_split
from dhn.trajectories.container import Trajectories
from dhn.trajectories.origins import origins
from dhn.trajectories.scaling import Scaler

_BYTES = 4  # of a float32; gradients and activations come on top
OBSERVED = 16
"""States that a forecast is usually made from."""
LEAST_SHARE = 0.1
"""Of a budget that each training of a sequence gets, however long reconstruction took."""
ANCHOR = 0.03
"""Assumed noise of inferred first momenta, scaled. Positions leave the unit of momenta of each
trajectory open, and codes would absorb it; a loose tie to `M(q) v` fixes it without its errors."""
SPARSE = (4, 16)
"""Steps from one known state to the next in the interpolations that bands are calibrated with."""
HELD_OUT = 64
"""Held-out trajectories that set the error bands: enough for 90 % quantiles."""


def learn(
    train: Trajectories,
    config: Any,
    training: TrainingConfig,
    options: Options,
    start: TrainedModel | None = None,
) -> TrainedModel:
    """Train a model on these trajectories.

    Arguments:
        train: Training trajectories on one even grid of times. Without momenta and velocities,
            momenta are inferred, in units of the first coordinate's inertia.
        config: Configuration of the model.
        training: The recipe; its `steps` count unless there is a budget.
        options: How the training runs.
        start: A trained model of the same configuration whose weights and units training begins
            with; a fresh model by default.

    Returns:
        The trained model, with error bands of the bare posterior.
    """
    codes = None if start is None else warm_codes(start, train)
    measured, train = train, with_first_momenta(train) if train.momenta is None else train
    scaler = Scaler.fit(train, training.scaling) if start is None else start.scaler
    noise, share = noise_per_step(measured, train, scaler)
    if share > NOISY or measured.momenta is None:
        return _learn_in_turns(
            measured, train, config, training, scaler, noise, options, start, codes
        )
    context = make_context(train, scaler) if start is None else start.context
    # Before weights are drawn and a folder is made.
    _check_windows(skeleton(config, context) if start is None else start.model, train, training)
    search = CodeSize(config, {}, 0.0)
    if start is None:
        search = needed_codes(config, context, train, scaler, training, options, noisy=False)
    config = search.config
    model = fresh(config, context, training) if start is None else start.model
    options = left_of(options, search.seconds)
    found = fit(model, train, scaler, training, codes=codes, **vars(options))
    return packed(train, config, training, scaler, context, noise, found, search)


def left_of(options: Options, spent: float) -> Options:
    """What is left of a budget, at least a tenth of it.

    Without a budget if a checkpoint knows what was left when its training began.
    """
    if options.budget is None:
        return options
    if options.resume and has_checkpoint(options.directory):
        return dataclasses.replace(options, budget=None)
    return dataclasses.replace(
        options, budget=max(options.budget - spent, LEAST_SHARE * options.budget)
    )


def check_learnable(train: Trajectories, config: Any, training: TrainingConfig) -> None:
    """A `UserError` unless a fresh model of this configuration can be trained on these data."""
    if train.momenta is None:
        with_first_momenta(train)
        return
    scaler = Scaler.fit(train, training.scaling)
    if noise_per_step(train, train, scaler)[1] <= NOISY:
        _check_windows(skeleton(config, make_context(train, scaler)), train, training)


def _check_windows(model: AbstractModel, train: Trajectories, training: TrainingConfig) -> None:
    for shape in model.training_shapes:
        window_starts(train.complete, shape.length, shape.spacing)
        check_memory(
            _BYTES * training.batch_size * shape.length * 2 * train.dim,
            f"a batch of {training.batch_size} windows",
            "choose a smaller batch_size",
        )


def warm_codes(start: TrainedModel, train: Trajectories) -> np.ndarray:
    """(n, k) codes that the starting model finds for the new trajectories."""
    step = start.context.time_step
    if not np.isclose(train.time_step, step, rtol=1e-4):
        raise UserError(
            f"the starting model has time step {step:.6g}, but these data have "
            f"{train.time_step:.6g}. Resample them to that grid, or begin with a fresh model."
        )
    momenta = momenta_of(train)
    if momenta != start.momenta:
        raise UserError(
            f"the starting model was trained with {start.momenta} as momenta, but these data have "
            f"{momenta}. Begin with a fresh model."
        )
    return start.encode(train)


def _learn_in_turns(
    measured, train, config, training, scaler, noise, options: Options, start, codes
) -> TrainedModel:
    """Training and reconstruction of the training set in turns; see `turns`.

    `train` are the measured trajectories, with first momenta where none were measured.
    """
    clock = CLOCKS[training.clock]
    started = clock()
    values = np.concatenate(scaler.transform(train), axis=-1)
    known = np.asarray(train.known)[..., None] & np.isfinite(values)
    each = scaler.number_noise(train, noise)
    states = smooth_start(np.where(known, values, 0.0), known, np.concatenate(noise))
    if measured.momenta is None:
        each = np.array(each)
        each[..., train.dim :] = ANCHOR
    data = with_states(train, scaler, states)
    # The units of the model's residuals stay the same in all turns.
    context = make_context(data, scaler) if start is None else start.context
    search = CodeSize(config, {}, 0.0)
    if start is None:
        search = needed_codes(config, context, data, scaler, training, options, noisy=True)
    config = search.config
    model, trained = fresh(config, context, training) if start is None else start.model, None
    speed, pause = None, 0.0
    for number, share in enumerate(SHARES):
        later = len(SHARES) - 1 - number
        turn = dataclasses.replace(options, speed=speed)
        if options.budget is not None:
            left = options.budget - (clock() - started) - pause * later
            seconds = max(left * share / sum(SHARES[number:]), LEAST_SHARE * options.budget)
            turn = dataclasses.replace(turn, budget=seconds)
        if options.directory is not None and later:
            turn = dataclasses.replace(turn, directory=Path(options.directory) / f"turn{number}")
        recipe = training.model_copy(update={"steps": max(1, round(training.steps * share))})
        if turn.resume and has_checkpoint(turn.directory):
            turn = dataclasses.replace(turn, budget=None)  # the checkpoint knows it
        found = fit(model, data, scaler, recipe, codes=codes, **vars(turn))
        model, codes = found.model, np.asarray(found.codes)
        speeds = [record["steps_per_second"] for record in found.history]
        speed = float(np.median(speeds)) if speeds else None
        trained = packed(data, config, training, scaler, context, noise, found, search)
        if later:
            begun = clock()
            states, codes, _ = refine(trained.knowledge, values, known, each, states, codes)
            data = with_states(train, scaler, states)
            pause = clock() - begun
    assert trained is not None
    whole = {"seconds": clock() - started, "fingerprint": measured.fingerprint()}
    return dataclasses.replace(
        trained, momenta=momenta_of(measured), summary={**trained.summary, **whole}
    )


def packed(
    train, config, training, scaler, context, noise, found: FitResult, search: CodeSize
) -> TrainedModel:
    """The result of a training with all that is needed to use it."""
    states = np.concatenate(scaler.transform(train), axis=-1)
    states = np.where(train.complete[..., None], states, np.nan)
    codes = np.asarray(found.codes)
    return TrainedModel(
        model=found.model,
        config=config,
        training=training,
        context=context,
        scaler=scaler,
        codes=codes,
        prior=CodePrior.fit(codes, found.noise),
        examples=Examples.make(states, codes),
        bands=Bands.gaussian(),
        noise=noise,
        momenta="v" if train.p is None else "p",
        ids=train.ids,
        params=dict(train.params),
        names=train.names,
        units=dict(train.units),
        system=train.system,
        summary={
            "steps": found.steps,
            "seconds": found.seconds + search.seconds,
            "code_search": {str(size): value for size, value in search.residuals.items()},
            "validation": found.validation,
            "chosen": found.chosen,
            "residual": found.noise,
            "trajectories": len(train),
            "fingerprint": train.fingerprint(),
        },
    )


def held_out(trained: TrainedModel, train: Trajectories) -> Trajectories | None:
    """The trajectories that training kept aside, if there are any."""
    known = train.complete
    split = choose_split(
        known, trained.model.training_shapes, trained.training.validation, trained.training.seed
    )
    rows = np.flatnonzero(split.held_out & known.all(1))
    return train[rows] if len(rows) else None


def check_held_out(train: Trajectories, held: Trajectories) -> Trajectories:
    """`held`, if a model trained on `train` can forecast it; otherwise a `UserError`."""
    came = None
    if held.dim != train.dim:
        came = f"{held.dim} coordinates ({', '.join(held.names)}) instead of {train.dim}"
    elif (held.p is None, held.v is None) != (train.p is None, train.v is None):
        came = "other momenta or velocities than the training data"
    elif not np.isclose(held.time_step, train.time_step, rtol=1e-4):
        came = f"time step {held.time_step:.6g} instead of {train.time_step:.6g}"
    elif not held.complete.any():
        came = "no known state"
    elif np.nanmax(np.abs(held.q)) > ABSURD * np.nanmax(np.abs(train.q)):
        came = f"numbers more than {ABSURD:g} times as large as those it learns from"
    if came is not None:
        raise UserError(f"the validation data have {came}; keep part of the training data aside.")
    return held


def calibrated(
    trained: TrainedModel, held: Trajectories, observe: int | None = None
) -> TrainedModel:
    """The same model with error bands that hold on trajectories it was not trained on.

    Arguments:
        trained: A model.
        held: Trajectories that training did not see.
        observe: States that a forecast is made from; by default a quarter of them, up to 16.

    Returns:
        A model whose bands are scaled to the errors of forecasts and interpolations of these.
    """
    observe = min(OBSERVED, held.states // 4) if observe is None else observe
    if observe < 1 or observe >= held.states:
        return trained
    if len(held) < HELD_OUT:
        # Few long runs are forecast from many starting points.
        ahead = max(1, 2 * (held.states - observe) // 3)
        held = origins(held, observe, ahead, most=HELD_OUT)
    asked = ask(trained, held[:HELD_OUT])
    if not asked.on_grid:
        return trained
    scores, horizon = [], []
    for mask in _masks(asked.known.shape, observe):
        seen = asked.known & mask
        rows = seen.any((1, 2)) & (asked.known & ~seen).any((1, 2))
        if not rows.any():
            continue
        some = dataclasses.replace(
            asked, values=asked.values[rows], known=seen[rows], noise=asked.noise[rows],
            place=asked.place[rows],
        )  # fmt: skip
        found = answer(trained, some)
        # Held-out numbers are measured: the factors contain their noise, and bands hold
        # measurements.
        wrong = np.abs(found.states - some.values) / found.deviation
        scores.append(np.where((asked.known & ~seen)[rows], wrong, np.nan))
        horizon.append(horizons(some.known))
    if not scores:
        return trained
    bands = Bands.fit(np.concatenate(scores), np.concatenate(horizon))
    return dataclasses.replace(trained, bands=bands)


def _masks(shape: tuple[int, ...], observe: int) -> list[np.ndarray]:
    """Questions with which bands are calibrated: a forecast, sparse states, and positions alone.

    Their posteriors err differently, so that factors of the one do not suit the other.
    """
    time, number = np.arange(shape[1])[:, None], np.arange(shape[2])
    whole = np.ones(shape[2], bool)
    found = [(time < observe) & whole]
    for step in (step for step in SPARSE if 2 * step < shape[1]):
        found.append(((time % step == 0) | (time == shape[1] - 1)) & whole)
    return [*found, (time >= 0) & (number < shape[2] // 2)]
