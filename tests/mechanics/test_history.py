"""Parts of runs joined again, and bands by hand."""

import numpy as np
import pytest

from dhn.mechanics.bands import Bands, _quantile
from dhn.mechanics.history import held_back, with_history
from dhn.mechanics.windows import Forecasts
from dhn.trajectories import Trajectories


def run(start, count, offset=0.0, name="a"):
    t = start + np.arange(count) * 0.5
    return Trajectories.from_list([np.sin(t) + offset], [t], angles=(True,), ids=(name,))


def test_a_part_gets_the_states_before_it_on_the_same_turn():
    joined = with_history(run(0.0, 20), run(10.0, 10, 2 * np.pi), 6)
    assert joined.states == 16
    np.testing.assert_allclose(joined.t.ravel(), 7.0 + 0.5 * np.arange(16))
    np.testing.assert_allclose(joined.q[0, :, 0], np.sin(joined.t.ravel()) + 2 * np.pi)


def test_states_lost_between_parts_stay_lost():
    joined = with_history(run(0.0, 18), run(10.0, 10), 6)
    assert joined.states == 16
    assert np.flatnonzero(~np.asarray(joined.known)[0]).tolist() == [4, 5]
    assert joined.is_uniform


@pytest.mark.parametrize("other", [run(30.0, 10), run(10.0, 10, name="b")])
def test_other_runs_have_no_history(other):
    assert with_history(run(0.0, 20), other, 6).states == 10


def test_runs_are_divided_in_time():
    early, late = held_back(run(0.0, 20), 0.15)
    assert (early.states, late.states) == (17, 3)
    assert late.times[0, 0] == early.times[0, -1] + 0.5


def test_bands_grow_with_the_amplitude_but_not_the_sensor_noise():
    bands = Bands(np.array([1.0, 2.0]), np.array([[0.7, 0.9], [1.5, 2.5]]), np.ones(2), 1.0)
    shape = (2, 1, 1)
    found = Forecasts(
        np.zeros(shape), np.full(shape, 5.0), np.full(shape, 1.0), np.array([1.0, 0.5]),
        np.zeros(shape), np.zeros(2, bool),
    )  # fmt: skip
    sd = bands.spread(found)
    np.testing.assert_allclose(sd.ravel(), np.sqrt([5.0, 2.0]))
    half = bands.half_width(sd, np.array([[1.5], [9.0]]), 0.9)
    np.testing.assert_allclose(half.ravel(), [2.0 * np.sqrt(5.0), 2.5 * np.sqrt(2.0)])


def test_a_weighted_quantile():
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 1.0])
    assert [_quantile(values, weights, x) for x in (0.5, 0.75, 1.0)] == [1.0, 2.0, 3.0]
