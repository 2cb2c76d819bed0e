"""Periods, separatrix and sections: exact for the true flow, and of models in the package."""

import numpy as np
import pytest
from scipy.special import ellipk

import dhn
from dhn.estimator.pretrained import draw
from dhn.evaluation.phase_space import (
    ENERGIES,
    PoincareSection,
    period_curve,
    phase_space,
    poincare_section,
)
from dhn.systems import get_system

LENGTH, GRAVITY = 0.8, 0.981
ONE = {"l": LENGTH, "m": 1.0, "g": GRAVITY}


def swings(count=4):
    initial = {"theta": (-1.0, 1.0), "v_theta": (-0.5, 0.5)}
    return dhn.simulate("single_pendulum", count, seed=3, params=ONE, initial=initial)


def slowed(factor):
    """The pendulum under another gravity: all periods longer by 1 / sqrt(factor)."""

    def move(begun, states):
        step = float(begun.t[1] - begun.t[0])
        initial = {"theta": begun.q[:, 0, 0], "p_theta": begun.p[:, 0, 0]}
        params = ONE | {"g": factor * GRAVITY}
        return dhn.simulate(
            "single_pendulum", len(begun), params=params, initial=initial, time_step=step,
            steps=states - 1,
        )  # fmt: skip

    return lambda count: move


def test_true_periods_are_the_elliptic_integral():
    data = swings()
    system = get_system("single_pendulum")
    found = period_curve(system, ONE, data, slowed(1.0), float(data.t[1] - data.t[0]))
    amplitude = np.arccos(1 - found.energies / (GRAVITY * LENGTH))
    exact = 4 * np.sqrt(LENGTH / GRAVITY) * ellipk(np.sin(amplitude / 2) ** 2)
    np.testing.assert_allclose(found.true, exact, rtol=1e-5)
    np.testing.assert_allclose(found.errors(), 0, atol=1e-9)
    assert found.separatrix[1] == pytest.approx(2 * GRAVITY * LENGTH, rel=1e-6)
    assert found.separatrix[0] == pytest.approx(found.separatrix[1], rel=1e-3)


def test_a_wrong_flow_has_wrong_periods_and_another_separatrix():
    data = swings()
    system = get_system("single_pendulum")
    found = period_curve(system, ONE, data, slowed(1.21), float(data.t[1] - data.t[0]))
    assert found.learned[0] / found.true[0] == pytest.approx(1 / 1.1, rel=5e-3)
    assert found.separatrix[0] / found.separatrix[1] == pytest.approx(1.21, rel=1e-3)
    assert found.summary()["period_error_worst"] == found.errors().max() > 0.05
    assert "beyond what these data reach" in found.describe()


def test_a_flow_that_leaves_all_bounds_has_no_periods():
    def lost(begun, states):
        gone = np.arange(states)[None, :, None] > 5
        return begun.replace(
            q=np.where(gone, np.nan, begun.q), p=np.where(gone, np.nan, begun.p), v=None, known=None
        )

    data = swings()
    step = float(data.t[1] - data.t[0])
    found = period_curve(get_system("single_pendulum"), ONE, data, lambda count: lost, step)
    assert np.isinf(found.errors()).all() and np.isnan(found.separatrix[0])
    assert found.summary()["separatrix"] is None and "never turns over" in found.describe()


def test_sections_of_the_true_flow_coincide_and_of_another_do_not():
    data = dhn.simulate("coupled_oscillators", 2, seed=0)
    system = get_system("coupled_oscillators")
    step = float(data.t[1] - data.t[0])
    params = {name: np.asarray(values) for name, values in data.params.items()}
    same = poincare_section(system, params, data, lambda begun, states: begun, step)
    apart, own = same.distances()
    assert (apart == 0).all() and (own > 0).all()

    def shifted(begun, states):
        return begun.replace(p=begun.p + np.array([5 * begun.p[..., 0].std(), 0.0]))

    other = poincare_section(system, params, data, shifted, step)
    assert (other.distances()[0] > 1).all()


def test_distances_by_hand():
    true = np.array([[-1.0, -1.0], [1.0, 1.0], [-1.0, -1.0], [1.0, 1.0]])  # deviations of 1
    found = PoincareSection(("x", "y"), (np.array([[1.0, 1.5], [-1.0, -1.0]]),), (true,))
    apart, own = found.distances()
    np.testing.assert_allclose((apart, own), ([0.25], [0.0]))


@pytest.mark.parametrize("name", ["single_pendulum", "coupled_oscillators"])
def test_models_in_the_package_have_the_true_phase_space(name):
    model = dhn.pretrained(name)
    data = draw(name, 8, seed=11)
    found = phase_space(model.trained, data, model.posterior(data).codes)
    numbers = found.summary()
    if name == "single_pendulum":
        assert len(found.energies) == ENERGIES and numbers["period_error_seen"] < 1e-3
        assert numbers["separatrix"] == pytest.approx(numbers["separatrix_true"], rel=0.01)
    else:
        assert numbers["section_distance"] < 0.05


def test_nothing_is_compared_with_friction_or_without_a_system():
    model, data = dhn.pretrained("single_pendulum"), swings()
    codes = np.zeros((len(data), model.trained.model.latent_size))
    damped = data.replace(params={**data.params, "gamma": np.full(len(data), 0.1)})
    unnamed = data.replace(system=None, params={}, units={})
    for other in (damped, unnamed, data.replace(p=None)):
        assert phase_space(model.trained, other, codes) is None
