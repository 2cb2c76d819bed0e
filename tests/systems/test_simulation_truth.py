"""Every built-in system against SciPy on hand-written equations, and its own conserved values."""

import functools

import numpy as np
import pytest
from equations_by_hand import BY_HAND
from scipy.integrate import solve_ivp

from dhn.systems import SYSTEMS, get_system, simulate

COUNT = 4


@functools.cache
def simulated(name):
    """One simulation a system over its default horizon: compiling is what takes the time."""
    return simulate(name, COUNT, seed=3)


def constants(data, i):
    return {key: float(value[i]) for key, value in data.params.items()}


def test_every_built_in_system_is_tested_here():
    assert set(BY_HAND) <= set(SYSTEMS)
    assert len(BY_HAND) == 10


@pytest.mark.parametrize("name", BY_HAND)
def test_agrees_with_scipy_on_equations_written_by_hand(name):
    data = simulated(name)
    assert data.q.shape == (COUNT, 129, get_system(name).dim)
    for i in range(COUNT):
        y0 = np.concatenate([data.q[i, 0], data.p[i, 0]])
        exact = solve_ivp(
            BY_HAND[name], (data.t[0], data.t[-1]), y0, method="DOP853", t_eval=data.t,
            rtol=1e-12, atol=1e-13, args=(constants(data, i),),
        ).y.T  # fmt: skip
        np.testing.assert_allclose(np.hstack([data.q[i], data.p[i]]), exact, rtol=0, atol=1e-7)
        assert np.ptp(exact, axis=0).max() > 0.1  # something happens


@pytest.mark.parametrize("name", BY_HAND)
def test_energy_and_other_conserved_quantities_do_not_drift(name):
    data, system = simulated(name), get_system(name)
    kinetic = system.energy(data.q, data.p, data.params) - system.energy(
        data.q, np.zeros_like(data.p), data.params
    )
    # The double pendulum starts at energy zero, so drift is relative to what is exchanged.
    scale = np.abs(kinetic).max(axis=1, keepdims=True)
    for quantity, value in system.conserved(data.q, data.p, data.params).items():
        assert value.shape == (COUNT, 129)
        relative = np.abs(value - value[:, :1]) / (scale if quantity == "energy" else 1.0)
        assert relative.max() <= 1e-8, quantity


@pytest.mark.parametrize("name", BY_HAND)
def test_each_conserved_quantity_is_one(name):
    """Its Poisson bracket with H vanishes at states that no simulation visited."""
    system = get_system(name)
    rng = np.random.default_rng(0)
    q, p = rng.uniform(0.5, 1.5, (2, 8, system.dim)) * (1 + np.arange(system.dim))
    params = {key: rng.uniform(0.5, 1.5) for key in system.params}
    dq, dp = system.derivatives(q, p, params)
    step = 1e-6
    for quantity, after in system.conserved(q + step * dq, p + step * dp, params).items():
        before = system.conserved(q - step * dq, p - step * dp, params)[quantity]
        rate = (after - before) / (2 * step)
        assert np.abs(rate).max() < 1e-6 * (1 + np.abs(after).max()), quantity


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


def test_double_pendulum_momenta_and_energy_are_the_papers():
    system = get_system("double_pendulum")
    rng = np.random.default_rng(1)
    q, v = rng.normal(size=(2, 5, 7, 2))
    c = {key: rng.uniform(0.5, 1.5, (5, 1)) for key in ("m1", "m2", "l1", "l2")}
    m1, m2, l1, l2 = c.values()
    cross = m2 * l1 * l2 * np.cos(q[..., 0] - q[..., 1])
    p1 = (m1 + m2) * l1**2 * v[..., 0] + cross * v[..., 1]
    p2 = m2 * l2**2 * v[..., 1] + cross * v[..., 0]
    p = system.momenta(q, v, c)
    np.testing.assert_allclose(p, np.stack([p1, p2], -1), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(system.velocities(q, p, c), v, rtol=1e-11, atol=1e-11)
    kinetic = 0.5 * (p1 * v[..., 0] + p2 * v[..., 1])
    heights = (m1 + m2) * l1 * np.cos(q[..., 0]) + m2 * l2 * np.cos(q[..., 1])
    np.testing.assert_allclose(system.energy(q, p, c), kinetic - 0.981 * heights, rtol=1e-11)


def test_defaults_of_both_pendulums_are_the_papers():
    single, double = simulated("single_pendulum"), simulated("double_pendulum")
    for data, varied, low, high in ((single, "l", 0.5, 1.0), (double, "l2", 0.5, 1.5)):
        assert np.all(data.q[:, 0] == np.pi / 2) and np.all(data.p[:, 0] == 0)
        np.testing.assert_allclose(np.diff(data.t), 10 / 128)
        assert all(data.angles)
        drawn = simulate(data.system, 2000, steps=0).params
        assert low <= drawn[varied].min() < low + 0.01 < high - 0.01 < drawn[varied].max() <= high
        for key, value in drawn.items():
            if key != varied:
                assert np.all(value == (0.981 if key == "g" else 1.0))
