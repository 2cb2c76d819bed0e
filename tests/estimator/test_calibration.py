"""Bands widened to what held-out forecasts showed."""

import numpy as np
import pytest

from dhn.reconstruct.calibration import LEVELS, Calibration

GROWTH = np.sqrt(np.arange(1.0, 41.0))[:, None, None]


def errors(m: int, seed: int) -> np.ndarray:
    """Growing with the horizon; momenta far worse and heavier-tailed than coordinates."""
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(m, 40, 1, 2))
    p = 30 * rng.standard_t(2, size=(m, 40, 1, 2))
    return GROWTH * np.concatenate([q, p], axis=2)


@pytest.mark.parametrize("part", [0, 1])
def test_bands_of_q_and_of_p_hold_what_they_claim(part):
    held, fresh = errors(300, 0), errors(300, 1)
    spread = np.full_like(held, 0.3)
    calibration = Calibration.fit(held, spread)
    widths = calibration.half_widths(spread)
    for level in LEVELS:
        inside = np.abs(fresh) <= widths[level]
        assert abs(inside[:, :, part].mean() - level) < 0.02
        # Early and late, too.
        assert abs(inside[:, :10, part].mean() - level) < 0.05
        assert abs(inside[:, 30:, part].mean() - level) < 0.05


def test_states_that_were_not_measured_do_not_count():
    held = errors(200, 0)
    spread = np.full_like(held, 0.3)
    broken = held.copy()
    broken[:100, 20:] = np.nan
    broken[:, 35:] = np.nan
    calibration = Calibration.fit(broken, spread)
    assert calibration.error.shape[0] == 35
    whole = Calibration.fit(held[100:], spread[100:])
    np.testing.assert_allclose(calibration.error[20:35], whole.error[20:35])
    assert np.isfinite(calibration.factors).all()
    # Beyond what was measured the bands go on growing.
    late = calibration.half_widths(np.zeros((1, 80, 2, 2)))[0.9][0, :, 0, 0]
    assert late[79] > late[40] > late[34]


def test_files_keep_it():
    calibration = Calibration.fit(errors(20, 0), np.ones((20, 40, 2, 2)))
    again = Calibration.from_arrays(calibration.to_arrays())
    assert again is not None
    np.testing.assert_array_equal(again.factors, calibration.factors)
    assert Calibration.from_arrays({}) is None
