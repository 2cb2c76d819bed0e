"""The stress suite's numbers say what their names promise."""

import numpy as np
import pytest

from dhn.evaluation.metrics import compare, joined, units_of
from dhn.reproduction.stress import OBSERVED, long_metrics, valid_time
from dhn.systems import simulate


@pytest.fixture(scope="module")
def truth():
    return simulate("single_pendulum", 3, seed=0, steps=400)


def predicted(truth, **changes):
    known = np.zeros(truth.q.shape[:2], bool)
    known[:, :OBSERVED] = True
    return truth.replace(known=known, **changes)


def test_the_truth_is_valid_to_the_end_and_in_phase(truth):
    said = predicted(truth)
    assert valid_time(said, truth)["valid_time"] == truth.states - OBSERVED
    assert long_metrics(said, truth) == {"energy_mse_median": 0.0, "phase_steps": 0.0}


def test_a_late_prediction_is_so_many_steps_late(truth):
    late = np.roll(truth.q, 5, axis=1)
    assert long_metrics(predicted(truth, q=late), truth)["phase_steps"] == 5


def test_validity_ends_where_the_error_begins(truth):
    q = truth.q.copy()
    q[:, OBSERVED + 10 :] += 3.0
    assert valid_time(predicted(truth, q=q), truth)["valid_time"] == 10


def test_a_prediction_that_is_no_number_is_no_good_one(truth):
    q = truth.q.copy()
    q[0, -1] = np.nan
    found = compare(predicted(truth, q=q), truth).summary()
    assert found["mse"] == np.inf and found["blow_ups"] == 1
    assert valid_time(predicted(truth, q=q), truth)["valid_time_mean"] < truth.states - OBSERVED


def test_drift_is_relative_to_the_energy_exchanged(truth):
    """A pendulum released at 90 degrees exchanges m g l, wherever its energy is zero."""
    assert truth.p is not None
    found = compare(predicted(truth), truth)
    exchanged = truth.params["m"] * truth.params["g"] * truth.params["l"]
    # The grid of times misses the lowest point a little.
    assert found.energy_scale == pytest.approx(exchanged.mean(), rel=1e-2)
    assert found.energy_drift == 0.0
    grown = truth.p * np.linspace(1.0, 1.5, truth.states)[:, None]
    drift = compare(predicted(truth, p=grown), truth).energy_drift
    assert drift is not None and 0.05 < drift < 1.0


def test_a_run_that_ends_early_says_nothing_about_drift_and_nonsense_drifts_without_end(truth):
    known = np.ones(truth.q.shape[:2], bool)
    known[0, truth.states // 2 :] = False
    short = truth.replace(known=known)
    grown = truth.p * np.linspace(1.0, 1.5, truth.states)[:, None]
    whole = compare(predicted(truth[1:], p=grown[1:]), truth[1:]).energy_drift
    assert compare(predicted(truth, p=grown), short).energy_drift == pytest.approx(whole)
    nonsense = np.where(np.arange(truth.states)[:, None] > truth.states - 3, np.nan, truth.p)
    assert compare(predicted(truth, p=nonsense), truth).energy_drift == np.inf


def test_metrics_of_parts_join_to_those_of_all():
    truth = simulate("elastic_pendulum", 7, seed=2, steps=9)
    gappy = truth.replace(known=np.random.default_rng(0).uniform(size=(7, 10)) > 0.2)
    random = np.random.default_rng(1)
    guess = truth.replace(
        q=truth.q + 0.1 * random.normal(size=truth.q.shape),
        p=truth.p * 1.1,
        known=np.broadcast_to(np.arange(10) < 3, (7, 10)),
    )
    whole = compare(guess, gappy).summary()
    cuts = [slice(0, 3), slice(3, 4), slice(4, 7)]
    units = units_of(gappy[cut] for cut in cuts)
    parts = joined([compare(guess[cut], gappy[cut], units) for cut in cuts]).summary()
    assert parts == pytest.approx(whole)
