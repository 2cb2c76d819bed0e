"""Predictions in the manner of the paper: a code fitted step by step, then a plain roll-out."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Key

from dhn.blocks import Known, StateBlock
from dhn.codes.autodecode import autodecode
from dhn.errors import UserError
from dhn.estimator.answers import extended, keep_known, refined
from dhn.estimator.trained import TrainedModel
from dhn.models.config import DenoisingConfig
from dhn.models.denoise import denoise
from dhn.models.dhn import as_dhn
from dhn.models.stage import AbstractStage
from dhn.reconstruct.forecast import forecast
from dhn.reproduction.baselines.upsampler import AbstractUpsampler
from dhn.training.prepare import prepare
from dhn.training.step import Run, initial_state, run_steps
from dhn.trajectories.container import Trajectories


def fit_codes(trained: TrainedModel, observed: Trajectories, seed: int = 0) -> np.ndarray:
    """Codes of new trajectories, found as the recipe of the model found those of training.

    A recipe of whole trajectories (the paper's) fits them for as many epochs as training took;
    any other by least squares.

    Arguments:
        trained: A model with codes.
        observed: (n, T, d) states, complete windows among them.
        seed: Of the first codes and of the noise.

    Returns:
        (n, k) codes.
    """
    recipe = trained.training
    if recipe.batch_of == "trajectories":
        epochs = recipe.steps * recipe.batch_size / len(trained.codes)
        return codes_by_epochs(trained, observed, epochs, seed)
    with jax.enable_x64(recipe.precision == "float64"):
        states = _scaled(trained, observed)
        return autodecode(trained.model, states, observed.complete, trained.prior).codes


def codes_by_epochs(
    trained: TrainedModel, observed: Trajectories, epochs: float, seed: int = 0
) -> np.ndarray:
    """Codes by the training's own loss, optimiser and batches, with the weights held.

    Arguments:
        trained: A model trained on batches of whole trajectories.
        observed: (n, T, d) states, complete windows among them.
        epochs: How often every trajectory is seen.
        seed: Of the first codes and of the noise.

    Returns:
        (n, k) codes.
    """
    held = trained.training.model_copy(update={"learning_rate": 0.0, "seed": seed})
    steps = max(1, math.ceil(epochs * len(observed) / held.batch_size))
    with jax.enable_x64(held.precision == "float64"):
        states = jax.tree.map(lambda x: jnp.asarray(x, held.precision), _scaled(trained, observed))
        shapes = trained.model.training_shapes
        data = prepare(states, observed.complete, shapes, np.arange(len(observed)))
        static = eqx.filter(trained.model, eqx.is_inexact_array, inverse=True)
        drawn, total = jnp.asarray(seed % 2**32, jnp.uint32), jnp.asarray(steps, jnp.int32)
        run = Run(static, data, held, drawn, total)
        first = initial_state(trained.model, len(observed), held)
        state, log = run_steps(run, first, jnp.asarray(steps, jnp.int32))
        if not bool(log.finite):
            raise UserError(
                "codes of new trajectories met a number that is not finite; expected a model "
                "whose losses are finite on them. Check the states, or train the model further."
            )
        return np.asarray(state.codebook.rows)


def _scaled(trained: TrainedModel, data: Trajectories) -> StateBlock:
    return StateBlock(*(np.nan_to_num(x) for x in trained.scaler.transform(data)))


def roll_forward(
    trained: TrainedModel,
    observed: Trajectories,
    steps: int,
    codes: np.ndarray | None,
    seed: int,
) -> Trajectories:
    """The observed states and `steps` more, from the last observed ones and a code.

    Arguments:
        trained: A model that can forecast.
        observed: Complete states on the model's grid.
        steps: States to predict.
        codes: (n, k), or None to fit them on the observed states.
        seed: Of the denoising noise, where the model has any.

    Returns:
        Observed and predicted states.
    """
    with jax.enable_x64(trained.training.precision == "float64"):
        codes = fit_codes(trained, observed, seed) if codes is None else codes
        path = forecast(trained.forecaster, _scaled(trained, observed), codes, steps, jr.key(seed))
    asked = extended(observed, steps, trained.context.time_step)
    return keep_known(asked, _filled(trained, asked, path, slice(-steps, None)))


def upsample(
    trained: TrainedModel, model: AbstractUpsampler, sparse: Trajectories, factor: int
) -> Trajectories:
    """States between the known ones by a model that fills them in directly.

    Codes are fitted on the model's grid, where only the windows of known states count.
    """
    fine = refined(sparse, factor)
    with jax.enable_x64(trained.training.precision == "float64"):
        codes = np.zeros((len(sparse), model.latent_size), np.float32)
        if model.uses_code:
            codes = fit_codes(trained, fine)
        path = model.upsample(_scaled(trained, sparse), jnp.asarray(codes), factor)
    return keep_known(fine, _filled(trained, fine, path, slice(None)))


def superresolve(
    trained: TrainedModel, sparse: Trajectories, factor: int, seed: int
) -> Trajectories:
    """States between the known ones, stage by stage, each doubling the resolution.

    Each window has two known ends and an unknown middle, which the stage of that spacing denoises.

    Arguments:
        trained: A DHN with a stage for `factor`, to fit codes with, and for each finer doubling.
        sparse: Complete states, `factor` steps of the model's grid apart.
        factor: Steps of the model's grid between known states, a power of two.
        seed: Of the denoising noise, where the model has any.

    Returns:
        Trajectories on the model's grid.
    """
    model, fine = as_dhn(trained.model), refined(sparse, factor)
    with jax.enable_x64(trained.training.precision == "float64"):
        codes = jnp.asarray(fit_codes(trained, fine, seed))
        path = jax.tree.map(jnp.asarray, _scaled(trained, fine))
        for stage in sorted(model.stages, key=lambda stage: -stage.spacing):
            if stage.spacing < factor:
                key = jr.fold_in(jr.key(seed), stage.spacing)
                path = double_resolution(stage, model.config.inference, path, codes, key)
    return keep_known(fine, _filled(trained, fine, path, slice(None)))


@eqx.filter_jit
def double_resolution(
    stage: AbstractStage,
    config: DenoisingConfig,
    path: StateBlock,
    codes: Float[Array, "n k"],
    key: Key[Array, ""],
) -> StateBlock:
    """Denoise the middle between every two states that are twice the stage's spacing apart.

    Arguments:
        stage: With windows of three states.
        config: Rounds of denoising; without noisy ones they begin at the mean of both ends.
        path: (n, T, d), right at multiples of twice the spacing.
        codes: One a trajectory.
        key: Of the denoising noise.

    Returns:
        The path with multiples of the spacing filled in.
    """
    n, length, d = path.q.shape
    middles = np.arange(stage.spacing, length, 2 * stage.spacing)
    places = middles[:, None] + stage.spacing * np.arange(-1, 2)
    rows = n * len(middles)
    window = jax.tree.map(lambda x: x[:, places].reshape(rows, 3, d), path)
    window = jax.tree.map(lambda x: x.at[:, 1].set((x[:, 0] + x[:, 2]) / 2), window)
    ends = jnp.broadcast_to(jnp.array([True, False, True]), (rows, 3))
    z = jnp.repeat(codes, len(middles), axis=0)
    found = denoise(stage, window, Known(ends, ends), z, key, config)
    return jax.tree.map(
        lambda x, y: x.at[:, middles].set(y[:, 1].reshape(n, len(middles), d)), path, found
    )


def _filled(trained: TrainedModel, asked: Trajectories, path: StateBlock, where: slice):
    q, p = trained.scaler.inverse(*(np.asarray(x, np.float64) for x in path))
    found = {"q": np.array(asked.q), trained.momenta_field: np.zeros_like(asked.q)}
    found["q"][:, where], found[trained.momenta_field][:, where] = q, p
    return asked.replace(**found)
