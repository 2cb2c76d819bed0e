"""Truths about the baselines that need no network."""

import numpy as np
import pytest

import dhn
from dhn.errors import UserError
from dhn.evaluation.extrapolation import LinearDMD, persistence
from dhn.reproduction.baselines.parametric import fit_system
from dhn.reproduction.baselines.splines import (
    cubic_spline,
    hermite_spline,
    linear_interpolation,
    system_slopes,
)


@pytest.fixture(scope="module")
def springs():
    """A linear system with one constant: every trajectory obeys the same linear map."""
    return dhn.simulate(
        "mass_spring", 6, seed=1, params={"k": 1.7, "m": 0.6}, initial={"x": (-1.0, 1.0)}, steps=40
    )


@pytest.fixture(scope="module")
def pendulums():
    return dhn.simulate("single_pendulum", 6, seed=2)


def test_persistence_repeats_the_last_state(springs):
    observed = springs[:, :16]
    said = persistence(observed, 5)
    assert (said.q[:, 16:] == observed.q[:, -1:]).all()
    assert (said.p[:, 16:] == observed.p[:, -1:]).all()
    assert said.known.sum(1).tolist() == [16] * 6
    np.testing.assert_allclose(said.t, springs.t[:21], rtol=1e-12)


@pytest.mark.parametrize("delays", [1, 3])
def test_dmd_is_exact_for_a_linear_system(springs, delays):
    model = LinearDMD.fit(springs[:4], delays=delays)
    said = model.forecast(springs[4:, :8], 33)
    np.testing.assert_allclose(said.q, springs[4:].q, atol=1e-8)
    np.testing.assert_allclose(said.p, springs[4:].p, atol=1e-8)


def test_delays_let_dmd_tell_systems_apart():
    """Springs of two stiffnesses: no one-step map serves both, a map of two states does."""
    k = np.array([1.0, 3.0, 1.0, 3.0, 1.0, 3.0])
    data = dhn.simulate(
        "mass_spring", 6, seed=3, params={"k": k, "m": 1.0}, initial={"x": (-1.0, 1.0)}, steps=40
    )
    errors = [
        np.abs(LinearDMD.fit(data, delays=n).forecast(data[:, :8], 33).q - data.q).max()
        for n in (1, 4)
    ]
    assert errors[1] < 1e-6 < 1e-2 < errors[0]


def test_ridge_shrinks_the_operator(springs):
    plain, shrunk = (LinearDMD.fit(springs, ridge=r).operator for r in (0.0, 1.0))
    assert np.linalg.norm(shrunk) < np.linalg.norm(plain)


def test_dmd_says_when_too_little_is_observed(springs):
    with pytest.raises(UserError, match="sees 4 states, but only 2 were observed"):
        LinearDMD.fit(springs, delays=4).forecast(springs[:, :2], 3)


def test_lines_are_exact_for_uniform_motion_and_cubics_for_cubics():
    t = np.linspace(0.0, 2.0, 9)
    line = dhn.Trajectories(q=(1 + 2 * t)[None, :, None], p=np.full((1, 9, 1), 2.0), t=t)
    said = linear_interpolation(line.resample(4), 4)
    np.testing.assert_allclose(said.q, line.q, atol=1e-14)
    fine = np.linspace(0.0, 2.0, 33)
    cubic = dhn.Trajectories(
        q=(fine**3 - fine)[None, :, None], p=(3 * fine**2 - 1)[None, :, None], t=fine
    )
    said = cubic_spline(cubic.resample(8), 8)
    np.testing.assert_allclose(said.q, cubic.q, atol=1e-12)
    said = hermite_spline(cubic.resample(16), 16, lambda data: (data.p, None))
    np.testing.assert_allclose(said.q, cubic.q, atol=1e-12)


def interpolation_error(said, truth):
    assert (said.q[said.known] == truth.q[said.known]).all()
    return float(np.mean((said.q - truth.q)[~said.known] ** 2))


@pytest.mark.parametrize(
    ("fill", "order"),
    [
        (linear_interpolation, 2),
        (cubic_spline, 4),
        (lambda s, n: hermite_spline(s, n, system_slopes(dhn.get_system("single_pendulum"))), 4),
    ],
    ids=["linear", "cubic", "hermite"],
)
def test_interpolation_error_falls_with_the_order(pendulums, fill, order):
    errors = [interpolation_error(fill(pendulums.resample(n), n), pendulums) for n in (4, 8)]
    slope = np.log2(errors[1] / errors[0]) / 2  # of the error itself: the metric is its square
    assert order - 0.5 < slope < order + 1.0


def test_gaps_are_filled_and_nothing_is_extrapolated(pendulums):
    known = np.ones(pendulums.q.shape[:2], bool)
    known[:, 3] = False
    known[:, -1] = False
    said = cubic_spline(pendulums.replace(known=known), 1)
    np.testing.assert_allclose(said.q[:, 3], pendulums.q[:, 3], atol=1e-4)
    assert np.isnan(said.q[:, -1]).all()
    with pytest.raises(UserError, match="two known states in every trajectory"):
        cubic_spline(pendulums.replace(known=np.zeros_like(known)), 1)


def test_a_parametric_fit_finds_the_length(pendulums):
    fit = fit_system(pendulums[:, :16], "single_pendulum")
    np.testing.assert_allclose(fit.params["l"], pendulums.params["l"], atol=1e-6)
    said = fit.forecast(pendulums[:, :16], 113)
    np.testing.assert_allclose(said.q, pendulums.q, atol=1e-5)
    np.testing.assert_allclose(said.t, pendulums.t, rtol=1e-12)


@pytest.mark.slow
def test_shooting_pays_where_states_are_noisy():
    clean = dhn.simulate("single_pendulum", 4, seed=5)
    noisy = dhn.simulate("single_pendulum", 4, seed=5, noise=0.02)[:, :32]
    errors = []
    for shooting in (False, True):
        fit = fit_system(noisy, "single_pendulum", shooting=shooting)
        said = fit.states(clean.t)
        errors.append(float(np.median(np.mean((said.q - clean.q) ** 2, axis=(1, 2)))))
    assert errors[1] < 0.5 * errors[0]
    # Residuals are in units of the noise, so an honest fit leaves about one.
    assert 0.5 < fit.cost.mean() < 1.5


def test_a_parameter_without_a_range_cannot_be_searched(pendulums):
    with pytest.raises(UserError, match="parameter 'g' of 'single_pendulum' has no range"):
        fit_system(pendulums[:, :16], "single_pendulum", free=("g",))
