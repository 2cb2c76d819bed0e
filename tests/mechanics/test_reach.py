"""Bands of a fitted model, and valid until where the theory of linear filters knows the answer."""

import dataclasses

import numpy as np
import pytest
from scipy.linalg import expm, solve_discrete_are
from scipy.optimize import brentq
from scipy.stats import binom

from dhn.mechanics import fit_mechanics
from dhn.mechanics.bands import independent_windows
from dhn.mechanics.layout import Layout
from dhn.mechanics.likelihood import Entries
from dhn.mechanics.rows import Run
from dhn.mechanics.scoring import Scored, drawn
from dhn.mechanics.windows import Windows
from dhn.trajectories import Trajectories

DAMPING, STEP, NOISE = 0.05, 0.05, 0.002
SYSTEM = np.array([[0.0, 1.0], [-1.0, -DAMPING]])
"""A damped oscillator of frequency one, driven by white acceleration of size one."""
SEEN, TRAIN, STATES = 32, 3000, 12000


def moved(time: float) -> tuple[np.ndarray, np.ndarray]:
    """Transition over a time, and covariance of what the noise adds (Van Loan)."""
    block = np.block([[-SYSTEM, np.diag([0.0, 1.0])], [np.zeros((2, 2)), SYSTEM.T]])
    found = expm(time * block)
    transition = found[2:, 2:].T
    return transition, transition @ found[:2, 2:]


def shaken(count: int, seed: int) -> np.ndarray:
    """Positions of the oscillator, begun in its stationary state."""
    rng = np.random.default_rng(seed)
    transition, added = moved(STEP)
    root = np.linalg.cholesky(added)
    x, found = rng.normal(0, np.sqrt(1 / (2 * DAMPING)), 2), []
    for _ in range(count):
        x = transition @ x + root @ rng.normal(size=2)
        found.append(x[0])
    return np.array(found)


def theory(deviation: float) -> float:
    """Time at which 1.645 standard deviations of the best forecast reach a fifth of the motion."""
    transition, added = moved(STEP)
    look = np.array([[1.0, 0.0]])
    before = solve_discrete_are(transition.T, look.T, added, np.array([[NOISE**2]]))
    gain = before @ look.T / (before[0, 0] + NOISE**2)
    after = before - gain @ look @ before

    def excess(time: float) -> float:
        transition, added = moved(time)
        variance = (transition @ after @ transition.T + added)[0, 0] + NOISE**2
        return 1.645 * np.sqrt(variance) - 0.2 * deviation

    return brentq(excess, 1e-3, 3.0)


def measured(count: int, seed: int) -> np.ndarray:
    return (shaken(count, seed) + np.random.default_rng(seed + 1).normal(0, NOISE, count))[:, None]


@pytest.fixture(scope="module")
def oscillator():
    """Readings, and the model fitted to them."""
    y = measured(STATES, 0)
    data = Trajectories.from_list([y], STEP * np.arange(STATES))
    return y, fit_mechanics(data[:, :TRAIN], data[:, TRAIN:], groups=())


@pytest.mark.slow
def test_an_oscillator_driven_by_noise_is_valid_for_the_time_that_theory_says(oscillator):
    y, model = oscillator
    length = SEEN + round(4 * np.pi / STEP)
    windows = np.lib.stride_tricks.sliding_window_view(y[TRAIN - SEEN :, 0], length)
    truth = np.median([theory(x) for x in windows.std(1)[::50]])
    found = model.describe()["valid_until"]
    assert found["median"] == pytest.approx(truth, rel=0.15)
    assert 0 < found["least"] < truth < found["greatest"] and found["beyond"] == 0


@pytest.mark.slow
def test_bands_hold_their_share_of_new_measurements_at_every_horizon(oscillator):
    ahead, count = 63, 64  # half a period
    y = measured(count * (SEEN + ahead), 10).reshape(count, SEEN + ahead, 1)
    data = Trajectories(q=y, t=STEP * np.arange(SEEN + ahead))
    found = oscillator[1].forecast(data[:, :SEEN], ahead)
    for level, (low, high) in found.bands.items():
        held = ((low <= y[:, SEEN:]) & (y[:, SEEN:] <= high)).sum(0)[:, 0]
        least, most = binom.interval(0.99, count, level)
        for horizon in (1, 6, 13, 31, 63):
            assert least <= held[horizon - 1] <= most


def test_windows_count_by_how_their_errors_are_correlated():
    count, step = 400, 0.1
    pieces = [Run(0, step * np.array([k]), *[np.zeros((1, 1))] * 2, np.zeros(1, int))
              for k in range(count)]  # fmt: skip
    ahead = step * np.arange(1, 101)
    windows = Windows(
        pieces, [np.zeros(100, int)] * count, 32, np.zeros((count, 100, 1)), ("run",) * count, ahead
    )
    white = np.random.default_rng(0).normal(size=(count + 99, 1))
    assert independent_windows(windows, white[:count], 10.0) > 0.7 * count
    smooth = np.convolve(white[:, 0], np.ones(20) / 20, "valid")[:count, None]
    # The variance of a mean of n of these is that of n / 20 independent ones.
    assert 10 < independent_windows(windows, smooth, 10.0) < 40
    still = np.ones((count, 1)) + np.linspace(0, 1e-6, count)[:, None]
    apart = 40.0 / 10.4  # starts over 40 units of time, each forecast 10 and four steps long
    assert independent_windows(windows, still, 10.0) == pytest.approx(apart, rel=0.2)


def test_coefficients_are_drawn_from_their_distribution():
    layout = Layout((True,))
    active = np.zeros(layout.size, bool)
    for name in ("sine", "viscous", "log_white"):
        active[layout.slices[name]] = True
    entries = Entries.of(active, np.zeros(layout.size, bool), 1)
    theta = np.where(active, 1.0, 0.0)[None]
    covariance = np.array([[0.04, 0.006, 0.0], [0.006, 0.01, 0.0], [0.0, 0.0, 1.0]])
    scored = Scored(theta, 0.0, covariance, entries, 1, 0, 100)
    found = drawn(scored, layout, 20000)[:, 0]
    places = [layout.slices[x].start for x in ("sine", "viscous", "log_white")]
    np.testing.assert_allclose(np.cov(found[:, places[:2]].T), covariance[:2, :2], rtol=0.1)
    assert (found[:, places[2]] == 1.0).all()  # noise levels are left alone
    assert (found[:, ~active] == 0).all()
    wide = dataclasses.replace(scored, covariance=100 * covariance)
    assert drawn(wide, layout, 100)[:, 0, places[1]].min() == 0  # friction is never negative
