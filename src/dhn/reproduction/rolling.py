"""Predictions in the manner of the paper: a code fitted step by step, then a plain roll-out."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from dhn.blocks import StateBlock
from dhn.codes.autodecode import autodecode
from dhn.estimator.answers import extended, keep_known, refined
from dhn.estimator.trained import TrainedModel
from dhn.models.upsampler import AbstractUpsampler
from dhn.reconstruct.forecast import forecast
from dhn.training.prepare import usable_states
from dhn.trajectories.container import Trajectories


def _codes(trained: TrainedModel, observed: Trajectories) -> np.ndarray:
    return autodecode(
        trained.model, _scaled(trained, observed), usable_states(observed), trained.prior
    ).codes


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
        codes = _codes(trained, observed) if codes is None else codes
        path = forecast(trained.forecaster, _scaled(trained, observed), codes, steps, jr.key(seed))
    asked = extended(observed, steps, trained.context.time_step)
    return keep_known(asked, _filled(trained, asked, path, slice(-steps, None)))


def upsample(
    trained: TrainedModel, model: AbstractUpsampler, sparse: Trajectories, factor: int
) -> Trajectories:
    """States between the known ones by a model that fills them in directly."""
    with jax.enable_x64(trained.training.precision == "float64"):
        path = model.upsample(
            _scaled(trained, sparse), jnp.asarray(_codes(trained, sparse)), factor
        )
    fine = refined(sparse, factor)
    return keep_known(fine, _filled(trained, fine, path, slice(None)))


def _filled(trained: TrainedModel, asked: Trajectories, path: StateBlock, where: slice):
    q, p = trained.scaler.inverse(*(np.asarray(x, np.float64) for x in path))
    found = {"q": np.array(asked.q), trained.momenta_field: np.zeros_like(asked.q)}
    found["q"][:, where], found[trained.momenta_field][:, where] = q, p
    return asked.replace(**found)
