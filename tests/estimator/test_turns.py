"""Learning in turns: from noisy trajectories and from positions alone."""

import jax
import numpy as np
import pytest

import dhn
from dhn.errors import UserError
from dhn.evaluation.metrics import compare

OPTIONS = {"width": 32, "depth": 2, "latent_size": 2, "seed": 0}


def fitted(train, steps):
    with jax.enable_x64(False):
        return dhn.DHN(**OPTIONS).fit(train, steps=steps)


@pytest.fixture(scope="module")
def truth():
    return dhn.simulate("single_pendulum", trajectories=12, seed=1)


@pytest.fixture(scope="module")
def noisy():
    return fitted(dhn.simulate("single_pendulum", trajectories=40, seed=0, noise=0.05), 800)


@pytest.fixture(scope="module")
def blind():
    train = dhn.simulate("single_pendulum", trajectories=40, seed=0, noise=0.002)
    return fitted(train.replace(p=None), 800)


def test_noise_of_the_training_set_is_reconstructed_away(truth, noisy):
    """Errors of forecasts from exact states are far below the noise that the model learned from."""
    error = compare(noisy.complete(truth, 16), truth).summary()["mse"]
    assert error < 0.05**2 * np.mean(truth.q**2)


def test_a_saved_model_answers_as_the_trained_one(truth, noisy, tmp_path):
    """Residuals are in one unit in all turns, the one that is saved."""
    noisy.save(tmp_path / "model")
    again = dhn.load(tmp_path / "model")
    np.testing.assert_allclose(
        again.complete(truth, 16).q, noisy.complete(truth, 16).q, rtol=1e-6, atol=1e-6
    )


def test_units_come_from_the_first_turn(noisy):
    trained = noisy.trained
    assert [stage.scale for stage in trained.model.stages] == [trained.context.change(1)]


def test_positions_alone_are_enough(truth, blind):
    seen = truth.replace(p=None)
    error = compare(blind.complete(seen, 32), truth).summary()["mse"]
    assert error < 1e-3 * np.mean(truth.q**2)


def test_momenta_of_other_data_are_not_mixed_with_inferred_ones(truth, blind):
    """Inferred momenta are in units of the first inertia; energies in joules would be wrong."""
    with pytest.raises(UserError, match=r"trained on positions alone.*leave them out"):
        blind.complete(truth, 32)
    found = blind.complete(truth.replace(p=None), 32)
    assert found.p is not None and found.system is None


def test_inferred_momenta_are_those_of_unit_inertia(truth, blind):
    found = blind.reconstruct(truth.replace(p=None)).trajectories
    inertia = (truth.params["m"] * truth.params["l"] ** 2)[:, None, None]
    left = np.sqrt(np.mean((found.p * inertia - truth.p) ** 2) / np.mean(truth.p**2))
    # Positions leave each trajectory's unit open; the tie to its first momenta is loose (`ANCHOR`).
    assert left < 0.05
