"""Friction that a window of observed positions tells anew."""

import dataclasses

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dhn.mechanics.layout import Layout
from dhn.mechanics.predicting import Mechanics
from dhn.mechanics.rows import Scale
from dhn.mechanics.windows import errors, forecasts, score, windows_from
from dhn.trajectories import Trajectories

STEP, SEEN, NOISE, VISCOUS = 0.2, 32, 1e-4, 0.05


def swings(factor: float) -> Trajectories:
    """Four pendulums with so many times the fitted friction."""
    rng, t = np.random.default_rng(0), STEP * np.arange(60)
    found = [
        solve_ivp(
            lambda _, x: [x[1], -np.sin(x[0]) - factor * VISCOUS * x[1]], (0, t[-1]), [start, 0.0],
            t_eval=t, rtol=1e-9, atol=1e-10,
        ).y[0] + rng.normal(0, NOISE, len(t)) for start in (0.5, 0.8, 1.1, 1.4)
    ]  # fmt: skip
    return Trajectories.from_list([x[:, None] for x in found], t, angles=(True,))


@pytest.fixture(scope="module")
def mechanics() -> Mechanics:
    layout = Layout((True,))
    theta = np.zeros(layout.size)
    levels = {"log_white": NOISE, "log_kick": 5e-3, "log_slow": 1e-7, "log_slow_time": 1.0}
    for name, value in levels.items():
        theta[layout.slices[name]] = np.log(value)
    theta[layout.slices["sine"]], theta[layout.slices["viscous"]] = 1.0, VISCOUS
    scale = Scale(1.0, np.zeros(1), np.ones(1), np.ones(1), STEP)
    return Mechanics(layout, scale, theta[None], np.full(1, 0.04))


@pytest.mark.parametrize("factor", [0.7, 1.4])
def test_forecasts_take_the_friction_that_the_window_tells(mechanics, factor):
    windows = windows_from(swings(factor), mechanics.scale, SEEN)
    systems, found = np.zeros(4, int), []
    for wander in (0.0, 0.3):
        changed = dataclasses.replace(mechanics, wander=wander)
        mean = forecasts(changed, windows, systems).mean
        found.append(np.sqrt((errors(mean, windows, (True,)) ** 2).mean()))
    assert found[1] < 0.25 * found[0]


def test_where_friction_is_as_fitted_the_window_changes_little(mechanics):
    windows = windows_from(swings(1.0), mechanics.scale, SEEN)
    systems = np.zeros(4, int)
    still, moved = (
        forecasts(dataclasses.replace(mechanics, wander=x), windows, systems) for x in (0.0, 0.1)
    )
    assert (np.abs(moved.mean - still.mean) < 2 * np.sqrt(still.variance)).all()


def test_a_window_whose_motion_diverges_is_answered_by_its_last_position(mechanics):
    wild = mechanics.theta.copy()
    wild[:, mechanics.layout.slices["sine"]] = -1e9
    windows = windows_from(swings(1.0), mechanics.scale, SEEN)
    found = forecasts(dataclasses.replace(mechanics, theta=wild), windows, np.zeros(4, int))
    assert found.diverged.all() and np.isfinite(found.variance).all()
    last = np.array([x.y[SEEN - 1] for x in windows.pieces])
    np.testing.assert_array_equal(found.mean, np.repeat(last[:, None], 28, axis=1))
    still = np.zeros(4, int)
    assert score(dataclasses.replace(mechanics, theta=wild), windows, still, np.pi) == np.inf
    assert score(mechanics, windows, still, np.pi) < 0.01
