"""Codes of new trajectories by the training's own steps, with the weights held."""

import dataclasses

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import dhn
from dhn.blocks import cut_windows
from dhn.codes.autodecode import autodecode
from dhn.reproduction.rolling import codes_by_epochs, fit_codes, roll_forward
from dhn.training.step import initial_state

SMALL = {"width": 16, "depth": 1, "heads": 2, "latent_size": 3}
RATE = 0.05
COUNT = 8


@pytest.fixture(scope="module")
def trained():
    data = dhn.simulate("single_pendulum", 16, seed=0, steps=24)
    model = dhn.DHN(
        "paper", batch_size=COUNT, learning_rate=3e-3, code_learning_rate=RATE, l2=0.0, **SMALL
    )
    return model.fit(data, steps=400).trained


@pytest.fixture(scope="module")
def observed():
    return dhn.simulate("single_pendulum", COUNT, seed=1, steps=24)[:, :16]


def first_codes(trained, seed=0):
    config = trained.training.model_copy(update={"seed": seed})
    return np.asarray(initial_state(trained.model, COUNT, config).codebook.rows)


def losses(trained, observed, codes):
    """Mean equation loss over all windows of the observed states."""
    states = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), trained.scaler.transform(observed))
    (shape,) = trained.model.training_shapes
    starts = np.arange(observed.states - shape.reach)
    row, start = (
        jnp.asarray(x.reshape(-1)) for x in np.meshgrid(np.arange(COUNT), starts, indexing="ij")
    )
    window = cut_windows(dhn.blocks.StateBlock(*states), row, start, *shape)
    return float(trained.model.losses((window,), (jnp.asarray(codes)[row],), jr.key(0))["equation"])


def test_the_first_step_moves_every_number_by_the_rate(trained, observed):
    """Adam's first step is the sign of the gradient times the rate, less where that vanishes."""
    moved = np.abs(codes_by_epochs(trained, observed, 1.0) - first_codes(trained))
    assert moved.max() < 1.0001 * RATE
    np.testing.assert_allclose(np.median(moved), RATE, rtol=1e-3)


def test_more_epochs_lower_the_loss_and_the_weights_stay(trained, observed):
    before = [np.array(x) for x in jax.tree.leaves(trained.model) if hasattr(x, "shape")]
    found = [losses(trained, observed, first_codes(trained))]
    for epochs in (5.0, 100.0):
        found.append(losses(trained, observed, codes_by_epochs(trained, observed, epochs)))
    assert found[0] > found[1] > found[2]
    after = [np.array(x) for x in jax.tree.leaves(trained.model) if hasattr(x, "shape")]
    for x, y in zip(before, after, strict=True):
        np.testing.assert_array_equal(x, y)


def test_as_many_epochs_as_training_took(trained, observed):
    epochs = 400 * COUNT / 16
    expected = codes_by_epochs(trained, observed, epochs, seed=3)
    np.testing.assert_array_equal(fit_codes(trained, observed, seed=3), expected)
    forecast = roll_forward(trained, observed, 4, None, 3)
    again = roll_forward(trained, observed, 4, expected, 3)
    np.testing.assert_array_equal(forecast.q, again.q)


def test_other_recipes_fit_codes_by_least_squares(trained, observed):
    windows = trained.training.model_copy(update={"batch_of": "windows"})
    other = dataclasses.replace(trained, training=windows)
    states = dhn.blocks.StateBlock(*trained.scaler.transform(observed))
    expected = autodecode(trained.model, states, observed.complete, trained.prior).codes
    np.testing.assert_array_equal(fit_codes(other, observed), expected)
