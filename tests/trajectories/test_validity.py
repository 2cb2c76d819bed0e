"""Valid until: the time at which a band of known width reaches a fifth of a known motion."""

import numpy as np
import pytest

from dhn.trajectories import Trajectories
from dhn.trajectories.validity import forecast_validity, measured_validity, valid_until

STEP, SEEN, AHEAD = 0.1, 100, 200
T = STEP * np.arange(SEEN + AHEAD)
AMPLITUDE = np.array([1.0, 3.0])
GROWTH = 0.02
"""Standard deviation of the error after one unit of time; it grows with the root of time."""


def walk() -> Trajectories:
    """Two sines forecast with the bands of a random walk."""
    q = AMPLITUDE[:, None, None] * np.sin(2 * np.pi * T)[None, :, None]
    ahead = np.maximum(T - T[SEEN - 1], 0.0)
    half = np.broadcast_to((1.645 * GROWTH * np.sqrt(ahead))[None, :, None], q.shape)
    known = np.arange(len(T)) < SEEN
    return Trajectories(
        q=q, t=T, known=np.tile(known, (2, 1)), q_quantiles={0.05: q - half, 0.5: q, 0.95: q + half}
    )


def test_a_random_walk_is_valid_for_a_time_in_closed_form():
    found = forecast_validity(walk())
    assert found is not None
    closed = (0.2 * AMPLITUDE / np.sqrt(2) / 1.645 / GROWTH) ** 2
    assert closed[0] == pytest.approx(18.48, abs=0.01) and closed[1] > T[-1]
    assert closed[0] - STEP <= found.until[0] <= closed[0] + 1e-9
    assert found.until[1] == pytest.approx(AHEAD * STEP)
    assert found.beyond.tolist() == [False, True]
    said = found.summary("s")
    assert said["sentence"] == (
        "valid until: 19.2 s ahead (median of 2, 18.4 to 20): error below 20% of the motion's "
        "standard deviation with 90% probability"
    )


def test_errors_of_the_promised_size_are_measured_to_be_valid_as_long():
    rng = np.random.default_rng(0)
    ahead = STEP * np.arange(1, AHEAD + 1)
    error = np.cumsum(rng.normal(0, GROWTH * np.sqrt(STEP), (4000, AHEAD, 1)), axis=1)
    found = measured_validity(ahead, error, np.full((4000, 1), 0.6 / np.sqrt(2)))
    assert found == pytest.approx((0.2 * 0.6 / np.sqrt(2) / 1.645 / GROWTH) ** 2, rel=0.1)


def test_nothing_is_valid_where_the_first_band_is_too_wide():
    found = valid_until(np.array([[1.0, 2.0]]), np.array([[[0.3], [0.1]]]), np.array([[1.0]]))
    assert found.until.tolist() == [0.0] and not found.beyond[0]


def test_without_bands_or_a_forecast_nothing_is_said():
    data = walk()
    assert forecast_validity(data.replace(q_quantiles={})) is None
    assert forecast_validity(data[:, :SEEN]) is None
