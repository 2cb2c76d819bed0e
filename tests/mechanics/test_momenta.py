"""Momenta from positions: against the true ones of simulated systems."""

import numpy as np
import pytest

import dhn
from dhn.errors import UserError
from dhn.estimator.turns import with_first_momenta

VARIED = {"theta1": (-1.5, 1.5), "theta2": (-1.5, 1.5)}


def test_exact_positions_give_the_true_momenta_up_to_the_first_inertia():
    truth = dhn.simulate("double_pendulum", 12, seed=3, initial=VARIED)
    found = with_first_momenta(truth.replace(p=None))
    # m_11 = (m1 + m2) l1² = 2 for masses and a length of 1.
    assert truth.p is not None and found.p is not None
    error = np.sqrt(np.mean((2 * found.p - truth.p)[:, 4:-4] ** 2) / np.mean(truth.p**2))
    assert error < 5e-3


def test_noise_of_positions_hardly_moves_the_masses():
    """Differentiated velocities are noisy, but the mass matrix averages over the trajectory."""
    truth = dhn.simulate("double_pendulum", 24, seed=4, initial=VARIED)
    noisy = dhn.simulate("double_pendulum", 24, seed=4, initial=VARIED, noise=0.002)
    found = with_first_momenta(noisy.replace(p=None))
    assert truth.p is not None and found.p is not None
    error = np.sqrt(np.mean((2 * found.p - truth.p) ** 2, axis=(1, 2)) / np.mean(truth.p**2))
    assert np.median(error) < 0.03
    # The factor between found and true momenta of each trajectory is that of the masses.
    factor = (found.p * truth.p).sum((1, 2)) / (truth.p**2).sum((1, 2))
    np.testing.assert_allclose(factor, 0.5, rtol=0.02)


def test_lost_positions_are_bridged():
    truth = dhn.simulate("single_pendulum", 6, seed=0)
    known = np.random.default_rng(0).random(truth.known.shape) > 0.1
    found = with_first_momenta(truth.replace(p=None, known=known))
    assert found.p is not None and np.isfinite(found.p).all()


def test_a_mass_matrix_of_another_form_is_refused():
    """In polar coordinates the inertia of the angle goes with the square of the length."""
    stretched = dhn.simulate(
        "elastic_pendulum", 6, seed=0, initial={"r": (0.5, 2.5), "v_theta": (-2.0, 2.0)}
    )
    with pytest.raises(UserError, match="momenta cannot be found from these positions"):
        with_first_momenta(stretched.replace(p=None))
