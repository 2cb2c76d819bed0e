"""Noise, times and geometry against signals whose truth is known."""

import numpy as np
import pytest

from dhn.files.foreign.grid import Plan, is_regular, sampling_step, stretches, to_states
from dhn.files.foreign.markers import link_angles
from dhn.files.foreign.recording import COPIED, MISSING, Run
from dhn.trajectories.noise_level import noise_level


def plan(step, dt=None, own_times=False):
    """With a time step, rows are resampled to it; without, they stay as they are."""
    noise = np.full((2, 1), np.nan)
    return Plan(step, dt or step, own_times, dt is not None, noise)


def signal(t, period):
    """Two harmonics and their derivative."""
    w = 2 * np.pi / period
    x = np.sin(w * t) + 0.3 * np.sin(2 * w * t + 1)
    return x, w * np.cos(w * t) + 0.6 * w * np.cos(2 * w * t + 1)


def uneven(n, rng):
    return np.arange(n) + rng.uniform(-0.3, 0.3, n)


@pytest.mark.parametrize("period", [16, 50, 200])
@pytest.mark.parametrize("noise", [1e-3, 1e-2, 1e-1])
@pytest.mark.parametrize("even", [True, False])
def test_the_noise_is_found_within_a_fifth(period, noise, even):
    rng = np.random.default_rng(period)
    t = np.arange(800.0) if even else uneven(800, rng)
    x = signal(t, period)[0] + noise * rng.normal(size=len(t))
    assert noise_level([t], [x]) == pytest.approx(noise, rel=0.2)


def test_the_noise_of_rounding_is_that_of_a_uniform_error():
    t = np.arange(2000.0)
    x = np.round(100 * signal(t, 90)[0])
    assert noise_level([t], [x]) == pytest.approx(1 / np.sqrt(12), rel=0.2)


def test_an_encoder_read_faster_than_it_turns_still_rounds():
    t, unit = np.arange(8000.0), 2 * np.pi / 8192
    x = np.round(signal(t, 9000)[0] / unit) * unit  # most neighbours are equal
    assert noise_level([t], [x]) == pytest.approx(unit / np.sqrt(12), rel=0.2)


def test_holes_and_glitches_are_not_noise():
    rng = np.random.default_rng(1)
    t = np.delete(np.arange(1000.0), np.s_[300:420])
    x = signal(t, 60)[0] + 0.01 * rng.normal(size=len(t))
    x[[100, 500, 700]] += 5
    assert noise_level([t], [x]) == pytest.approx(0.01, rel=0.2)
    assert noise_level([t[:300], t[300:]], [x[:300], x[300:]]) == pytest.approx(0.01, rel=0.2)


def test_a_clean_signal_has_next_to_no_noise():
    t = np.arange(500.0)
    assert noise_level([t], [signal(t, 60)[0]]) < 1e-6


def test_the_step_of_a_clock_survives_rounding_and_holes():
    t = np.round(np.arange(900) / 29.97, 3)
    assert sampling_step([t]) == pytest.approx(1 / 29.97, rel=1e-4)
    assert sampling_step([np.delete(t, np.s_[100:400])]) == pytest.approx(1 / 29.97, rel=3e-4)
    assert sampling_step([np.arange(0, 5, 0.001)]) == pytest.approx(0.001, rel=1e-12)


@pytest.mark.parametrize("step", [0.01, 1 / 29.97, 1 / 6])
def test_rounded_times_are_those_of_a_regular_clock_and_jitter_is_not(step):
    rng = np.random.default_rng(0)
    t = 5.0 + np.arange(900) * step
    lost = np.sort(rng.choice(900, 700, replace=False))
    for times in (t, np.round(t, 3), np.round(t, 4), t[lost]):
        assert is_regular([times], sampling_step([times]))
    jitter = t + 0.02 * step * rng.uniform(-1, 1, 900)
    assert not is_regular([jitter], sampling_step([jitter]))
    drift = t + 0.3 * step * (np.arange(900) / 900) ** 2
    assert not is_regular([drift], sampling_step([drift]))


def test_rows_of_a_regular_clock_stay_as_measured_and_lost_ones_hold_no_number():
    rng = np.random.default_rng(0)
    t = np.delete(3.7 + np.arange(200) * 0.01, np.s_[40:60])
    q = rng.normal(size=(180, 2))
    q[7, 1], q[9] = np.nan, np.nan
    states = to_states(Run("a", t, q, rng.normal(size=(180, 2))), plan(0.01), t[0])
    assert len(states) == 200
    np.testing.assert_allclose(states.t, 3.7 + np.arange(200) * 0.01, rtol=1e-12)
    np.testing.assert_array_equal(np.delete(states.q, np.s_[40:60], 0), q)
    assert (states.kind[40:60] == MISSING).all() and np.isnan(states.q[40:60]).all()
    assert states.known[7], "one of two coordinates was measured"


def test_rows_at_uneven_times_keep_them():
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, 60, 300))
    run = Run("a", t, rng.normal(size=(300, 1)))
    states = to_states(run, plan(0.2, own_times=True), t[0])
    np.testing.assert_array_equal(states.t, t)
    np.testing.assert_array_equal(states.q, run.q)
    assert (states.kind == COPIED).all()


def test_a_coarser_grid_picks_measurements_and_a_finer_one_claims_no_more_of_them():
    t = np.arange(101) * 0.01
    run = Run("a", t, np.sin(7 * t)[:, None], np.cos(7 * t)[:, None])
    coarse = to_states(run, plan(0.01, 0.05), 0.0)
    np.testing.assert_array_equal(coarse.q, run.q[::5])
    np.testing.assert_array_equal(coarse.v, run.v[::5])
    fine = to_states(run, plan(0.01, 0.0025), 0.0)
    assert len(fine) == 401 and fine.known.sum() == 101
    np.testing.assert_allclose(fine.q[:, 0], np.sin(7 * fine.t), atol=1e-6)


def test_holes_stay_holes():
    t = np.delete(np.arange(100) * 0.1, np.s_[40:60])
    run = Run("a", t, np.sin(t)[:, None], np.cos(t)[:, None])
    grid = to_states(run, plan(0.1, 0.1), 0.0)
    assert len(grid) == 100
    assert (grid.kind[40:60] == 0).all() and np.isnan(grid.q[40:60]).all()
    assert (grid.kind[:40] == 3).all() and (grid.kind[60:] == 3).all()
    assert [(x.start, x.stop) for x in stretches(t, 0.1)] == [(0, 40), (40, 80)]


def test_a_single_lost_row_is_interpolated_but_not_known():
    t = np.delete(np.arange(60) * 0.1, 30)
    grid = to_states(Run("a", t, np.sin(t)[:, None]), plan(0.1, 0.1), 0.0)
    assert grid.kind[30] == 1 and not grid.known[30]
    assert grid.q[30, 0] == pytest.approx(np.sin(3.0), abs=1e-5)


def test_uneven_times_are_resampled_accurately():
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, 60, 1200))
    t = t[np.concatenate([[True], np.diff(t) > 0.003])]
    run = Run("a", t, np.sin(t)[:, None], np.cos(t)[:, None])
    grid = to_states(run, plan(sampling_step([t]), 0.05), t[0])
    valued = grid.kind > 0
    error = np.abs(grid.q[valued, 0] - np.sin(grid.t[valued]))
    # Stretches of two or three rows between holes allow a straight line only.
    assert np.quantile(error, 0.98) < 1e-3 and error.max() < 5e-3
    reach = 0.5 * min(0.05, sampling_step([t])) * (1 + 1e-6)
    nearest = np.abs(grid.t[:, None] - t).min(1)
    np.testing.assert_array_equal(grid.kind >= 2, valued & (nearest <= reach))


@pytest.mark.parametrize("y_down", [False, True])
def test_markers_give_the_angles_of_the_pendulum_that_made_them(y_down):
    rng = np.random.default_rng(0)
    theta = rng.uniform(-np.pi, np.pi, (50, 3))
    lengths = np.array([2.0, 1.0, 0.5])
    links = lengths[:, None] * np.stack([np.sin(theta), -np.cos(theta)], -1)
    points = np.concatenate([np.zeros((50, 1, 2)), links.cumsum(1)], axis=1) + np.array([3, -1.0])
    if y_down:
        points[..., 1] = 1000 - points[..., 1]
    found, measured = link_angles(points, y_down)
    np.testing.assert_allclose(found, theta, atol=1e-12)
    np.testing.assert_allclose(measured, np.tile(lengths, (50, 1)), rtol=1e-12)
