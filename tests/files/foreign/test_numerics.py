"""Noise, derivatives, grids and geometry against signals whose truth is known."""

import numpy as np
import pytest

from dhn.files.foreign.coordinates import Momenta, mass_matrix
from dhn.files.foreign.derivative import (
    ORDERS,
    Filter,
    choose_filter,
    differentiate,
    local_fit,
    noise_level,
    windows,
)
from dhn.files.foreign.grid import Plan, sampling_step, stretches, to_grid
from dhn.files.foreign.markers import link_angles
from dhn.files.foreign.recording import Run

PLAIN = (Filter(7, 3, 0.0),)


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


@pytest.mark.parametrize("order, degree", [(3, 3), (5, 5)])
def test_a_local_fit_is_exact_for_its_own_polynomials(order, degree):
    rng = np.random.default_rng(0)
    t = uneven(40, rng) / 40
    c = rng.normal(size=degree + 1)
    at = np.linspace(t[0], t[-1], 55)
    (value, slope), _ = local_fit(t, np.polyval(c, t), at, 9, order)
    np.testing.assert_allclose(value, np.polyval(c, at), atol=1e-10)
    np.testing.assert_allclose(slope, np.polyval(np.polyder(c), at), atol=1e-8)


def test_on_even_times_it_is_the_filter_of_savitzky_and_golay():
    from scipy.signal import savgol_filter

    x = np.random.default_rng(0).normal(size=60)
    t = np.arange(60.0)
    (value, slope), _ = local_fit(t, x, t, 11, 3)
    np.testing.assert_allclose(value, savgol_filter(x, 11, 3), atol=1e-12)
    np.testing.assert_allclose(slope, savgol_filter(x, 11, 3, deriv=1), atol=1e-12)


def test_the_gain_is_the_deviation_that_unit_noise_causes():
    rng = np.random.default_rng(0)
    t = np.arange(30.0)
    draws = np.stack([local_fit(t, rng.normal(size=30), t, 9, 3)[0] for _ in range(1500)])
    gains = local_fit(t, t, t, 9, 3)[1]
    np.testing.assert_allclose(draws.std(0), gains, rtol=0.12)


@pytest.mark.parametrize("period", [30, 100])
@pytest.mark.parametrize("noise", [1e-3, 1e-2, 1e-1])
@pytest.mark.parametrize("even", [True, False])
def test_the_chosen_window_is_near_the_best_there_is(period, noise, even):
    rng = np.random.default_rng(3)
    t = np.arange(600.0) if even else uneven(600, rng)
    clean, truth = signal(t, period)
    x = clean + noise * rng.normal(size=len(t))
    chosen = choose_filter([t], [x], noise_level([t], [x]))
    at = t[100:-100:3]

    def error(candidate):
        slope = differentiate(t, x, at, candidate)[1]
        return np.sqrt(np.mean((slope - truth[100:-100:3]) ** 2))

    best = min(error(Filter(w, o, 0.0)) for o in ORDERS for w in windows(o, 200))
    assert error(chosen) <= 1.3 * best
    # It also says how large the error is.
    assert chosen.error == pytest.approx(error(chosen), rel=0.4)


def test_more_noise_asks_for_a_wider_window():
    rng = np.random.default_rng(0)
    t = np.arange(600.0)
    x = signal(t, 80)[0]
    widths = []
    for noise in (1e-4, 1e-2, 1e-1):
        widths.append(choose_filter([t], [x + noise * rng.normal(size=600)], noise).window)
    assert widths == sorted(widths) and widths[0] < widths[-1] / 1.5


def test_uncertainty_stands_at_the_edges():
    t = np.arange(100.0)
    *_, uncertain = differentiate(t, np.sin(t / 9), t, Filter(15, 3, 0.0))
    where = np.flatnonzero(uncertain)
    assert len(where) > 0 and set(where) == {0, 99} | set(where)
    assert all(i < 7 or i > 92 for i in where)
    np.testing.assert_array_equal(uncertain, uncertain[::-1])


def test_the_step_of_a_clock_survives_rounding_and_holes():
    t = np.round(np.arange(900) / 29.97, 3)
    assert sampling_step([t]) == pytest.approx(1 / 29.97, rel=1e-4)
    assert sampling_step([np.delete(t, np.s_[100:400])]) == pytest.approx(1 / 29.97, rel=3e-4)
    assert sampling_step([np.arange(0, 5, 0.001)]) == pytest.approx(0.001, rel=1e-12)


def test_a_uniform_run_comes_through_unchanged():
    rng = np.random.default_rng(0)
    t = 3.7 + np.arange(200) * 0.01
    run = Run("a", t, rng.normal(size=(200, 2)), rng.normal(size=(200, 2)))
    grid = to_grid(run, Plan(0.01, 0.01, PLAIN * 2, derive=False), t[0])
    np.testing.assert_array_equal(grid.q, run.q)
    np.testing.assert_array_equal(grid.v, run.v)
    assert (grid.kind == 3).all() and grid.known.all()
    # Once more, from what came out.
    again = to_grid(
        Run("a", grid.t, grid.q, grid.v), Plan(0.01, 0.01, PLAIN * 2, derive=False), t[0]
    )
    np.testing.assert_array_equal(again.q, grid.q)
    np.testing.assert_array_equal(again.t, grid.t)


def test_a_coarser_grid_picks_measurements_and_a_finer_one_claims_no_more_of_them():
    t = np.arange(101) * 0.01
    run = Run("a", t, np.sin(7 * t)[:, None], np.cos(7 * t)[:, None])
    coarse = to_grid(run, Plan(0.01, 0.05, PLAIN, derive=False), 0.0)
    np.testing.assert_array_equal(coarse.q, run.q[::5])
    fine = to_grid(run, Plan(0.01, 0.0025, PLAIN, derive=False), 0.0)
    assert len(fine) == 401 and fine.known.sum() == 101
    np.testing.assert_allclose(fine.q[:, 0], np.sin(7 * fine.t), atol=1e-6)


def test_holes_stay_holes():
    t = np.delete(np.arange(100) * 0.1, np.s_[40:60])
    run = Run("a", t, np.sin(t)[:, None], np.cos(t)[:, None])
    grid = to_grid(run, Plan(0.1, 0.1, PLAIN, derive=False), 0.0)
    assert len(grid) == 100
    assert (grid.kind[40:60] == 0).all() and np.isnan(grid.q[40:60]).all()
    assert (grid.kind[:40] == 3).all() and (grid.kind[60:] == 3).all()
    assert [(x.start, x.stop) for x in stretches(t, 0.1)] == [(0, 40), (40, 80)]


def test_a_single_lost_row_is_interpolated_but_not_known():
    t = np.delete(np.arange(60) * 0.1, 30)
    grid = to_grid(Run("a", t, np.sin(t)[:, None]), Plan(0.1, 0.1, PLAIN), 0.0)
    assert grid.kind[30] == 1 and not grid.known[30]
    assert grid.q[30, 0] == pytest.approx(np.sin(3.0), abs=1e-5)


def test_uneven_times_are_resampled_accurately():
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, 60, 1200))
    t = t[np.concatenate([[True], np.diff(t) > 0.003])]
    run = Run("a", t, np.sin(t)[:, None], np.cos(t)[:, None])
    grid = to_grid(run, Plan(sampling_step([t]), 0.05, PLAIN, derive=False), t[0])
    valued = grid.kind > 0
    error = np.abs(grid.q[valued, 0] - np.sin(grid.t[valued]))
    # Stretches of two or three rows between holes allow a straight line only.
    assert np.quantile(error, 0.98) < 2e-4 and error.max() < 5e-3
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


def test_momenta_of_a_mass_matrix_and_their_noise():
    rng = np.random.default_rng(0)
    matrix = mass_matrix((2.0, 0.5, 0.5, 1.0), 2)
    q, v = rng.normal(size=(2, 4000, 2))
    momenta = Momenta(matrix=matrix)
    np.testing.assert_allclose(momenta(q, v), np.einsum("ij,nj->ni", matrix, v))
    noise = np.array([[0.1, 0.2], [0.01, 0.03]])
    noisy = momenta(q, v + noise[1] * rng.normal(size=v.shape)) - momenta(q, v)
    np.testing.assert_allclose(momenta.noise(q, v, noise), noisy.std(0), rtol=0.05)


def test_momenta_of_a_system_are_its_own_and_noise_follows_the_lagrangian():
    import dhn

    system = dhn.get_system("double_pendulum")
    data = dhn.simulate(system, trajectories=4, seed=0, params={"l2": 0.8})
    q, p = data.q.reshape(-1, 2), data.p.reshape(-1, 2)
    v = system.velocities(q, p, {"l2": 0.8})
    momenta = Momenta(system=system, params={"l2": 0.8})
    np.testing.assert_allclose(momenta(q, v), p, atol=1e-9)
    rng = np.random.default_rng(0)
    noise = np.array([[0.01, 0.01], [0.02, 0.03]])
    noisy = momenta(
        q + noise[0] * rng.normal(size=q.shape), v + noise[1] * rng.normal(size=q.shape)
    )
    np.testing.assert_allclose(momenta.noise(q, v, noise), (noisy - p).std(0), rtol=0.15)
