"""The other systems against SciPy on hand-written equations, and against closed forms."""

import numpy as np
import pytest
from equations_by_hand import BY_HAND
from truth_checks import COUNT, check_brackets, check_drift, check_scipy, constants, simulated

from dhn.systems import SYSTEMS, get_system

NAMES = tuple(name for name in BY_HAND if "pendulum" not in name)


@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_scipy_on_equations_written_by_hand(name):
    check_scipy(name)


@pytest.mark.parametrize("name", NAMES)
def test_energy_and_other_conserved_quantities_do_not_drift(name):
    check_drift(name)


@pytest.mark.parametrize("name", NAMES)
def test_each_conserved_quantity_is_one(name):
    check_brackets(name)


def test_every_built_in_system_has_equations_written_by_hand():
    assert set(BY_HAND) <= set(SYSTEMS)
    assert len(BY_HAND) == 10


def test_oscillator_against_its_closed_form():
    data = simulated("mass_spring")
    k, m = (data.params[key][:, None] for key in ("k", "m"))
    w = np.sqrt(k / m)
    q0, p0 = data.q[:, :1, 0], data.p[:, :1, 0]
    exact = q0 * np.cos(w * data.t) + p0 / (m * w) * np.sin(w * data.t)
    np.testing.assert_allclose(data.q[..., 0], exact, atol=1e-9)


def test_coupled_oscillators_against_their_normal_modes():
    data = simulated("coupled_oscillators")
    k, c, m = (data.params[key][:, None] for key in ("k", "coupling", "m"))
    together, apart = (data.q[:, :1, 0] + s * data.q[:, :1, 1] for s in (1, -1))
    slow = together * np.cos(np.sqrt(k / m) * data.t)
    fast = apart * np.cos(np.sqrt((k + 2 * c) / m) * data.t)
    exact = np.stack([(slow + fast) / 2, (slow - fast) / 2], axis=-1)
    np.testing.assert_allclose(data.q, exact, atol=1e-9)


def test_kepler_against_keplers_equation():
    data = simulated("kepler")
    for i in range(COUNT):
        c = constants(data, i)
        mu = c["G"] * (c["m1"] + c["m2"])
        # It starts at separation 1 with velocity across the line: an end of the ellipse.
        speed = data.p[i, 0, 3] / c["m2"] - data.p[i, 0, 1] / c["m1"]
        axis = 1 / (2 - speed**2 / mu)
        eccentricity = 1 - 1 / axis  # negative when it starts at the far end
        mean = np.sqrt(mu / axis**3) * data.t
        anomaly = mean.copy()
        for _ in range(100):
            gap = anomaly - eccentricity * np.sin(anomaly) - mean
            anomaly -= gap / (1 - eccentricity * np.cos(anomaly))
        x = axis * (np.cos(anomaly) - eccentricity)
        y = axis * np.sqrt(1 - eccentricity**2) * np.sin(anomaly)
        relative = data.q[i, :, 2:] - data.q[i, :, :2]
        np.testing.assert_allclose(relative, np.stack([x, y], -1), atol=1e-8)


def test_charge_goes_round_a_circle_and_momentum_is_not_mass_times_velocity():
    data, system = simulated("charged_particle"), get_system("charged_particle")
    v = system.velocities(data.q, data.p, data.params)
    m, charge, field = (data.params[key][:, None, None] for key in ("m", "charge", "field"))
    turned = np.stack([v[..., 1], -v[..., 0]], axis=-1)
    centre = data.q + m / (charge * field) * turned
    np.testing.assert_allclose(centre, np.broadcast_to(centre[:, :1], centre.shape), atol=1e-9)
    # A is the field times half the distance from the origin, turned.
    potential = 0.5 * field * np.stack([-data.q[..., 1], data.q[..., 0]], axis=-1)
    np.testing.assert_allclose(data.p, m * v + charge * potential, atol=1e-12)
    assert np.abs(data.p - m * v).max() > 0.1
