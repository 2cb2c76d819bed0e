"""A system's own equations: its parameters are found, held or bounded."""

import json

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dhn
from dhn.errors import UserError
from dhn.mechanics import MechanicalModel, fit_mechanics
from dhn.mechanics.classical import classical
from dhn.mechanics.layout import Layout
from dhn.mechanics.motion import acceleration, energy
from dhn.mechanics.rows import Scale
from dhn.systems import get_system
from dhn.trajectories import Trajectories

UNIT = Scale(0.4, np.zeros(2), np.ones(2), np.ones(2), 0.1)
TRUE = {"l1": 1.2, "l2": 0.9, "m1": 1.0, "m2": 0.7, "g": 9.81}


def layout_of(system, params, scale=UNIT):
    own = classical(get_system(system), params, scale, np.full(scale.size.shape, 0.3))
    return Layout(get_system(system).angle_flags, classical=own)


def test_accelerations_are_those_of_the_system():
    layout = layout_of("double_pendulum", TRUE)
    q, v = np.array([0.7, -0.4]), np.array([0.3, 1.1])
    found = acceleration(layout, np.zeros(layout.size), q, v, np.ones(2))
    system = get_system("double_pendulum")

    def slope(_, x):
        dq, dp = system.derivatives(x[:2], x[2:], TRUE)
        return np.concatenate([dq, dp])

    p = system.momenta(q, v / UNIT.time, TRUE)
    after = solve_ivp(slope, (0, 1e-4), np.concatenate([q, p]), rtol=1e-10, atol=1e-12).y[:, -1]
    truth = (system.velocities(after[:2], after[2:], TRUE) - v / UNIT.time) / 1e-4 * UNIT.time**2
    np.testing.assert_allclose(found, truth, rtol=1e-3)
    level = energy(layout, np.zeros(layout.size), q, v)
    assert layout.classical is not None
    unit = layout.classical.inertia / UNIT.time**2
    assert float(level) * unit == pytest.approx(float(system.energy(q, p, TRUE)), rel=1e-5)


def test_a_hamiltonian_gives_the_same_accelerations_as_its_lagrangian():
    lagrangian = get_system("double_pendulum")
    other = dhn.System(
        name="by momenta", coordinates=lagrangian.coordinates, angles=lagrangian.angles,
        hamiltonian=lagrangian.H, params=dict(lagrangian.params),
    )  # fmt: skip
    q, v = np.array([0.7, -0.4]), np.array([0.3, 1.1])
    found = [
        np.asarray(acceleration(layout, np.zeros(layout.size), q, v, np.ones(2)))
        for layout in (
            layout_of("double_pendulum", TRUE),
            Layout((True, True), classical=classical(other, TRUE, UNIT, np.full(2, 0.3))),
        )
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-3)


def test_parameters_are_held_bounded_or_free():
    layout = layout_of("double_pendulum", {"g": 9.81, "m2": (0.5, 0.8)})
    own = layout.classical
    assert own is not None and own.held == {"g": 9.81}
    bounds = {p.name: (p.start, p.low, p.high) for p in own.free}
    assert bounds["l2"][1:] == (0.5, 1.5)  # the system's own
    assert bounds["m2"][1:] == (0.5, 0.8) and 0.5 < bounds["m2"][0] < 0.8
    assert bounds["l1"] == (1.0, 0.0, np.inf)
    low, high = layout.bounds()
    place = layout.slices["params"]
    for p, least, most in zip(own.free, low[place], high[place], strict=True):
        assert float(p.value(most)) == pytest.approx(p.high)
        assert float(p.value(least)) == pytest.approx(p.low, abs=1e-6)


def test_mistakes_are_explained():
    with pytest.raises(UserError, match="has no parameter 'mass'; its parameters are l1"):
        layout_of("double_pendulum", {"mass": 1.0})
    with pytest.raises(UserError, match="bounds of 'm1' must increase; got 2 and 1"):
        layout_of("double_pendulum", {"m1": (2.0, 1.0)})
    data = Trajectories(q=np.zeros((1, 40, 1)), t=np.arange(40.0), angles=(True,))
    with pytest.raises(UserError, match="'double_pendulum' has the coordinates theta1, theta2"):
        fit_mechanics(data, system=get_system("double_pendulum"))
    with pytest.raises(UserError, match="params belong to a system"):
        dhn.Mechanics(params={"g": 9.81})


@pytest.mark.slow
def test_masses_and_lengths_of_a_double_pendulum_within_two_percent():
    data = dhn.simulate(
        "double_pendulum", 3, seed=0, params=TRUE, times=0.05 * np.arange(240), damping=0.02,
        initial={"theta1": (0.8, 1.6), "theta2": (-1.0, 1.6)},
    )  # fmt: skip
    noisy = data.q + np.random.default_rng(0).normal(0, 0.003, data.q.shape)
    runs = Trajectories(q=noisy, t=data.times, angles=(True, True))
    model = fit_mechanics(
        runs, systems="one", groups=(), system=get_system("double_pendulum"),
        params={"g": 9.81, "m1": 1.0, "m2": (0.1, 10.0)},
    )  # fmt: skip
    found = {x["name"]: x for x in model.describe()["systems"][0]["parameters"]}
    assert found["g"]["note"] == found["m1"]["note"] == "held"
    for name in ("l1", "l2", "m2"):
        assert found[name]["value"] == pytest.approx(TRUE[name], rel=0.02)
        assert abs(found[name]["value"] - TRUE[name]) < 4 * found[name]["error"]
    again = MechanicalModel.from_arrays(model.to_arrays(), json.loads(json.dumps(model.metadata())))
    seen = runs[:, :32]
    np.testing.assert_allclose(again.forecast(seen, 5).mean, model.forecast(seen, 5).mean)
