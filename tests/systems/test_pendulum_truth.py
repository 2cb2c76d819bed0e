"""The pendulums against SciPy on hand-written equations, and against the paper's formulas."""

import numpy as np
import pytest
from truth_checks import check_brackets, check_drift, check_scipy, simulated

from dhn.systems import get_system, simulate

NAMES = ("single_pendulum", "double_pendulum", "triple_pendulum", "elastic_pendulum")


@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_scipy_on_equations_written_by_hand(name):
    check_scipy(name)


@pytest.mark.parametrize("name", NAMES)
def test_energy_and_other_conserved_quantities_do_not_drift(name):
    check_drift(name)


@pytest.mark.parametrize("name", NAMES)
def test_each_conserved_quantity_is_one(name):
    check_brackets(name)


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
