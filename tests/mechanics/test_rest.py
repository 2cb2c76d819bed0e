"""The learned rest: its features, and that it is kept where formulas fail and only there."""

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dhn.mechanics import fit_mechanics
from dhn.mechanics.rest import REACH, count, features, offers, orders
from dhn.reports.physics import lines
from dhn.trajectories import Trajectories


def test_orders_hold_no_vector_beside_its_negative():
    found = orders((True, True))
    assert len(set(found)) == len(found) == 6
    assert not {tuple(-n for n in x) for x in found} & set(found)
    assert offers(1) and offers(2) and not offers(3)


@pytest.mark.parametrize("angles", [(True,), (False,), (True, True), (False, True)])
def test_features_are_periodic_in_angles_and_bounded_elsewhere(angles):
    d = len(angles)
    with jax.enable_x64(True):
        q, rates = np.random.default_rng(0).standard_normal((2, d))
        here = np.asarray(features(angles, q, rates))
        turned = np.asarray(features(angles, q + np.where(angles, 2 * np.pi, 0.0), rates))
        far = np.asarray(features(angles, np.full(d, 1e6), np.full(d, 1e6)))
    assert here.shape == (count(angles),)
    np.testing.assert_allclose(turned, here, atol=1e-12)
    assert np.abs(far).max() <= REACH**6 + 1e-9  # a power of four times two rates
    assert len(np.unique(here.round(12))) == len(here)  # no feature twice


def swing(force, count: int, step: float, seed: int) -> Trajectories:
    """A pendulum with a force of its own, measured with noise."""
    t = np.arange(count) * step
    found = solve_ivp(
        lambda _, x: [x[1], -4 * np.sin(x[0]) - 0.01 * x[1] + force(*x)],
        (0, t[-1]), [1.6, 0.0], t_eval=t, rtol=1e-9, atol=1e-10,
    )  # fmt: skip
    y = found.y[0] + np.random.default_rng(seed).normal(0, 0.001, count)
    return Trajectories.from_list([y[:, None]], t, angles=(True,))


def said(model) -> str:
    return next(x for x in lines(model.describe()) if x.startswith("learned rest: "))


@pytest.mark.slow
def test_an_unnamed_force_is_learned_and_said():
    data = swing(lambda q, v: -0.06 * np.sin(q) ** 2 * v + 0.1 * np.sin(3 * q), 900, 0.05, 0)
    train, validation, test = data[:, :600], data[:, 600:750], data[:, 750:]
    plain = fit_mechanics(train, validation, groups=())
    found = fit_mechanics(train, validation, groups=("learned rest",))
    assert found.groups == ("learned rest",)
    errors = []
    for model in (plain, found):
        mean = model.forecast(test[:, :32], 60).mean
        errors.append(np.sqrt(((mean - test.q[:, 32:92]) ** 2).mean()))
    assert errors[1] < 0.5 * errors[0]
    assert "kept (validation error" in said(found) and "27 weights" in said(found)
    again = type(found).from_arrays(found.to_arrays(), found.metadata())
    np.testing.assert_array_equal(
        again.forecast(test[:, :32], 5).mean, found.forecast(test[:, :32], 5).mean
    )


@pytest.mark.slow
def test_where_formulas_suffice_no_rest_is_looked_for():
    data = swing(lambda q, v: 0.0, 500, 0.05, 1)
    model = fit_mechanics(data[:, :400], data[:, 400:], groups=("learned rest",))
    assert model.groups == () and said(model).startswith("learned rest: not tried")


@pytest.mark.slow
def test_systems_that_differ_have_a_rest_of_their_own():
    runs = [swing(lambda q, v, k=k: k * np.sin(3 * q), 700, 0.05, 2) for k in (0.05, -0.05)]
    data = Trajectories.from_list(
        [x.q[0] for x in runs], runs[0].times[0], angles=(True,), ids=("a", "b")
    )
    train, validation, test = data[:, :450], data[:, 450:560], data[:, 560:]
    plain, found = (
        fit_mechanics(train, validation, groups=x, systems="each") for x in ((), ("learned rest",))
    )
    kept = [x.name for x in found.stages if x.kept]
    assert kept[-1] == "learned rest of each run"
    weights = found.mechanics.theta[:, found.mechanics.layout.slices["rest"]]
    assert not np.allclose(*weights)
    errors = [
        np.sqrt(((x.forecast(test[:, :32], 60).mean - test.q[:, 32:92]) ** 2).mean())
        for x in (plain, found)
    ]
    assert errors[1] < 0.7 * errors[0]
