"""Rivals that see past positions alone."""

import numpy as np
import pytest

from dhn.evaluation.delays import delay_forecasts
from dhn.evaluation.rivals import rivals
from dhn.trajectories import Trajectories
from dhn.trajectories.origins import origins

OBSERVED, AHEAD = 16, 10


def waves(rates, count=200, noise=0.0, ids=None):
    """Oscillations of given rates, one a run, on a grid of 0.1."""
    t, rng = np.arange(count) * 0.1, np.random.default_rng(0)
    q = [np.cos(rate * t)[:, None] + rng.normal(0, noise, (count, 1)) for rate in rates]
    fields = {} if ids is None else {"ids": ids}
    return Trajectories.from_list(q, t, **fields)


def errors(train, validation, test, observed=OBSERVED):
    shown = origins(validation, observed, AHEAD, most=20)
    asked = origins(test, observed, AHEAD, most=20)
    whole = asked[np.flatnonzero(asked.has_value.all(1))]
    found = delay_forecasts(train, shown, whole[:, :observed], AHEAD, AHEAD)
    return {
        x.name: float(np.sqrt(np.nanmean((x.mean - whole.q[:, observed:]) ** 2))) for x in found
    }, {x.name: x.how for x in found}


@pytest.mark.parametrize("observed", [OBSERVED, 3])
def test_all_rivals_forecast_an_oscillation(observed):
    data = waves([2.0], 300)
    found, _ = errors(data[:, :200], data[:, 200:250], data[:, 250:], observed)
    assert list(found) == ["linear", "kernel ridge", "nearest window"]
    assert found["linear"] < 1e-6 and found["kernel ridge"] < 1e-3
    assert found["nearest window"] < 0.1


def test_runs_that_differ_get_models_of_their_own():
    data = waves([1.0, 2.3, 3.1], 200, 0.01, ("a", "b", "c"))
    found, how = errors(data[:, :140], data[:, 140:170], data[:, 170:])
    assert how["linear"].endswith("a model for each run")
    assert found["linear"] < 0.03


def test_nothing_sees_the_future():
    """Later positions of the test windows change no forecast."""
    data = waves([2.0], 300, 0.01)
    train, validation = data[:, :200], data[:, 200:250]
    truth = origins(data[:, 250:], OBSERVED, AHEAD, most=5)
    later = truth.q.copy()
    later[:, OBSERVED:] += 5.0
    first, second = (
        rivals(x, OBSERVED, train, validation) for x in (truth, truth.replace(q=later))
    )
    names = ["persistence", "linear", "kernel ridge", "nearest window"]
    assert [x.name for x in first] == names
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a.prediction.q, b.prediction.q)


@pytest.mark.parametrize("turns", [0, 3])
def test_full_turns_do_not_matter(turns):
    t = np.arange(300) * 0.1
    q = np.pi + 0.5 * np.cos(2 * t)
    data = Trajectories.from_list([q], t, angles=(True,))
    shown = origins(data[:, 200:250], OBSERVED, AHEAD, most=20)
    asked = origins(data[:, 250:], OBSERVED, AHEAD, most=10)[:10]
    moved = asked.replace(q=asked.q + 2 * np.pi * turns)
    for x in delay_forecasts(data[:, :200], shown, moved[:, :OBSERVED], AHEAD, AHEAD):
        error = x.mean - moved.q[:, OBSERVED:]
        assert np.nanmax(np.abs(error)) < 0.1
