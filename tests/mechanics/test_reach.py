"""Valid until of a fitted model, where the theory of linear filters knows the answer."""

import numpy as np
import pytest
from scipy.linalg import expm, solve_discrete_are
from scipy.optimize import brentq

from dhn.mechanics import fit_mechanics
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


def shaken(count: int) -> np.ndarray:
    """Positions of the oscillator, begun in its stationary state."""
    rng = np.random.default_rng(0)
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


def test_an_oscillator_driven_by_noise_is_valid_for_the_time_that_theory_says():
    y = (shaken(STATES) + np.random.default_rng(1).normal(0, NOISE, STATES))[:, None]
    data = Trajectories.from_list([y], STEP * np.arange(STATES))
    model = fit_mechanics(data[:, :TRAIN], data[:, TRAIN:], groups=())
    length = SEEN + round(4 * np.pi / STEP)
    windows = np.lib.stride_tricks.sliding_window_view(y[TRAIN - SEEN :, 0], length)
    truth = np.median([theory(x) for x in windows.std(1)[::50]])
    found = model.describe()["valid_until"]
    assert found["median"] == pytest.approx(truth, rel=0.15)
    assert 0 < found["least"] < truth < found["greatest"] and found["beyond"] == 0
