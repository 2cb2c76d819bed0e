"""Calibrated bands: each number of a state has the factor that its own errors ask for."""

import numpy as np

from dhn.reconstruct.bands import Bands, horizons

SIZES = np.array([1.0, 3.0])


def scores(count: int, seed: int) -> np.ndarray:
    """Absolute errors of two numbers, of which the second is three times as wrong as it claims."""
    return SIZES * np.abs(np.random.default_rng(seed).normal(size=(count, 40, 2)))


def ahead(count: int) -> np.ndarray:
    seen = np.zeros((count, 40, 2), bool)
    seen[:, :8] = True
    return horizons(seen)


def test_bands_hold_new_errors_of_every_number():
    bands = Bands.fit(scores(64, 0), ahead(64))
    fresh = scores(2000, 1)
    zero = np.zeros(fresh.shape)
    levels = bands.quantiles(zero, np.ones(fresh.shape), ahead(2000))
    for low, high, share in ((0.25, 0.75, 0.5), (0.05, 0.95, 0.9)):
        np.testing.assert_allclose(levels[low], -levels[high])
        inside = (fresh <= levels[high]).mean((0, 1))
        np.testing.assert_allclose(inside, share, atol=0.04)


def test_a_number_without_errors_takes_those_of_the_others():
    some = scores(64, 0)
    some[..., 1] = np.nan
    factors = Bands.fit(some, ahead(64)).factors
    np.testing.assert_array_equal(factors[:, 0], factors[:, 1])


def test_momenta_inferred_from_positions_have_factors_of_their_own():
    """Errors of sparse states are as claimed, those of momenta without measurements are tripled."""
    sparse, positions = np.zeros((2, 64, 40, 2), bool)
    sparse[:, ::4] = positions[..., 0] = True
    place = horizons(np.concatenate([sparse, positions]))
    errors = np.abs(np.random.default_rng(0).normal(size=(128, 40, 2)))
    errors[64:, :, 1] *= 3
    known = np.concatenate([sparse, positions])
    bands = Bands.fit(np.where(known, np.nan, errors), place)
    whole = bands.quantiles(np.zeros((1, 1, 2)), np.ones((1, 1, 2)), np.zeros((1, 1)))
    partly = bands.quantiles(np.zeros((1, 1, 2)), np.ones((1, 1, 2)), horizons(positions[:1, :1]))
    np.testing.assert_allclose(whole[0.95], 1.645, rtol=0.1)
    np.testing.assert_allclose(partly[0.95][..., 1], 3 * 1.645, rtol=0.1)
    np.testing.assert_allclose(bands.widening(positions[:2]), 3.0, rtol=0.1)
    np.testing.assert_array_equal(bands.widening(sparse[:2]), 1.0)
    np.testing.assert_array_equal(Bands.gaussian().widening(positions[:2]), 1.0)


def test_bands_come_back_from_arrays_also_with_one_factor_for_all():
    bands = Bands.fit(scores(64, 0), ahead(64))
    back = Bands.from_arrays(bands.to_arrays())
    np.testing.assert_array_equal(back.factors, bands.factors)
    old = {"bands/edges": np.zeros(1), "bands/factors": np.array([[0.7, 1.6]])}
    one = np.ones((1, 1, 2))
    levels = Bands.from_arrays(old).quantiles(0 * one, one, np.zeros((1, 1)))
    np.testing.assert_array_equal(levels[0.95], 1.6 * one)
