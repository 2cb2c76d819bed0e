"""Long runs as many windows: where forecasts start, what they are measured on."""

import numpy as np
import pytest

from dhn.errors import UserError
from dhn.trajectories import Trajectories
from dhn.trajectories.origins import origins
from dhn.trajectories.period import characteristic_period


def counting(states: int, **fields) -> Trajectories:
    """q tells the time: 0, 1, 2, ..."""
    q = np.arange(states, dtype=float)[None, :, None]
    return Trajectories(q=q, v=np.ones_like(q), t=0.5 * np.arange(states), **fields)


def test_every_start_is_used_and_the_end_is_padded():
    found = origins(counting(10), 3, 4)
    assert found.q.shape == (7, 7, 1)
    np.testing.assert_array_equal(found.q[:, 0, 0], np.arange(7))
    # From state 6 three are seen, one is left to forecast, three lie behind the end.
    np.testing.assert_array_equal(found.known[6], [1, 1, 1, 1, 0, 0, 0])
    assert np.isnan(found.q[6, 4:]).all() and np.isnan(found.v[6, 4:]).all()
    # Times go on past the end, as a forecast's do.
    np.testing.assert_allclose(found.t[6], 3 + 0.5 * np.arange(7))
    assert found.ids[6] == "0@6"


def test_a_forecast_starts_only_from_known_states_with_something_known_ahead():
    known = np.ones((1, 12), bool)
    known[0, 5] = False
    found = origins(counting(12, known=known), 3, 2, start_from=2)
    ends = np.array([int(name.partition("@")[2]) + 2 for name in found.ids])
    np.testing.assert_array_equal(ends, [2, 3, 4, 7, 8, 9, 10])
    assert all(window.known[0, 1:3].all() for window in found)
    assert found.known[:, 3:].any(1).all()


def test_overlapping_segments_give_every_stretch_once_from_where_it_reaches_furthest():
    q = np.stack([np.arange(6.0), np.arange(3.0, 9.0)])[..., None]
    t = np.stack([np.arange(6.0), np.arange(3.0, 9.0)])
    data = Trajectories(q=q, v=np.ones_like(q), t=t, ids=("run/seg0", "run/seg1"))
    found = origins(data, 2, 3)
    starts = found.q[:, 0, 0]
    np.testing.assert_array_equal(np.sort(starts), np.arange(7))
    # State 3 begins a window in either segment; the second knows more of what follows.
    assert found.known[list(starts).index(3.0)].all()
    other = data.replace(ids=("a", "b"))
    assert len(origins(other, 2, 3)) == 8


def test_windows_are_thinned_evenly():
    found = origins(counting(103), 2, 1, most=11)
    np.testing.assert_array_equal(np.diff(found.q[:, 0, 0]), 10)


def test_angles_begin_near_zero_and_move_as_before():
    data = counting(40, angles=(True,))
    found = origins(data, 2, 5)
    assert np.abs(found.q[:, 1]).max() <= np.pi
    step = np.diff(found.q, axis=1)
    np.testing.assert_allclose(step[np.isfinite(step)], 1.0, atol=1e-12)


@pytest.mark.parametrize("observe, ahead", [(0, 3), (10, 3), (3, 0)])
def test_windows_need_something_to_see_and_to_forecast(observe, ahead):
    with pytest.raises(UserError, match="one state to see and one to forecast"):
        origins(counting(10), observe, ahead)


def test_without_a_known_stretch_there_is_nothing_to_start_from():
    known = np.arange(10)[None] % 2 == 0
    with pytest.raises(UserError, match="no trajectory has 2 known states in a row"):
        origins(counting(10, known=known), 3, 2, start_from=2)


def test_uneven_times_stay_those_of_the_data():
    t = np.cumsum([0.0, 0.4, 0.6, 0.5, 0.5, 0.7, 0.3, 0.5])
    data = counting(8).replace(t=t)
    assert data.usual_step == pytest.approx(0.5)
    found = origins(data, 3, 3)
    assert len(found) == 5
    np.testing.assert_allclose(found.times[0], t[:6])
    np.testing.assert_allclose(found.times[4], [*t[4:], t[7] + 0.5, t[7] + 1.0])
    even = 0.02 * np.arange(600)
    own = np.sort(even + np.random.default_rng(0).uniform(0, 0.01, 600))
    for times in (even, own):
        swing = Trajectories(q=np.cos(5 * times)[None, :, None], t=times)
        assert characteristic_period(swing) == pytest.approx(2 * np.pi / 5, rel=0.01)
