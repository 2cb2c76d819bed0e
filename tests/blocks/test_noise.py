"""Noise: the level told to a token is the level applied to it."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from dhn.blocks import (
    Known,
    NoiseLevel,
    StateBlock,
    corrupt,
    corrupt_nearby,
    draw_any_level,
    draw_noise_level,
    no_noise,
    noise_levels,
    rung_above,
    select,
)

N, T, D = 400, 3, 2


def random_states(dtype="float32"):
    draw = np.random.default_rng(0)
    return StateBlock(*(jnp.asarray(x, dtype) for x in draw.normal(size=(2, N, T, D))))


def random_known():
    return Known(*(jnp.asarray(x < 0.5) for x in np.random.default_rng(1).random((2, N, T))))


@pytest.mark.parametrize("steps", [1, 2, 10])
def test_the_ladder_rises_from_clean_to_pure_noise(steps):
    ladder = np.asarray(noise_levels(steps))
    assert ladder[0] == 0.0 and ladder[-1] == 1.0 and len(ladder) == steps + 1
    assert (np.diff(ladder) > 0).all()


def test_known_tokens_are_clean_and_unknown_ones_take_every_level():
    known = random_known()
    level = draw_noise_level(jr.key(0), known, 10)
    ladder = np.asarray(noise_levels(10))
    for drawn, is_known in zip(level, known, strict=True):
        drawn, is_known = np.asarray(drawn), np.asarray(is_known)
        assert (drawn[is_known] == 0).all()
        np.testing.assert_array_equal(np.unique(drawn[~is_known]), ladder[1:])
        # Uniform over the ten levels: about 60 of 600 each, five deviations are 37.
        counts = np.bincount(np.rint(drawn[~is_known] * 10).astype(int))[1:]
        assert np.abs(counts - counts.mean()).max() < 40
    # Drawn independently for each token, q and p apart.
    assert (np.asarray(level.q) != np.asarray(level.p))[~(known.q | known.p)].mean() > 0.8


def test_the_told_level_is_the_applied_one():
    """`x̃ = (1-α) x + α ε` with the noise of that very key, one α for all coordinates."""
    states, key = random_states(), jr.key(7)
    level = draw_noise_level(jr.key(0), random_known(), 10)
    noised = corrupt(key, states, level)
    for x, noisy, alpha, part in zip(states, noised, level, jr.split(key), strict=True):
        noise = jr.normal(part, x.shape)
        alpha = np.asarray(alpha)[..., None]
        np.testing.assert_allclose(noisy, (1 - alpha) * x + alpha * noise, atol=1e-6)


def test_the_applied_level_can_be_read_off_without_the_key():
    """The same noise on other states: what is left of their difference is `1 - α`, exactly told."""
    with jax.enable_x64(True):
        states = random_states("float64")
        moved = jax.tree.map(lambda x: x + 1.0, states)
        level = draw_noise_level(jr.key(0), random_known(), 10)
        pair = corrupt(jr.key(3), states, level), corrupt(jr.key(3), moved, level)
        for a, b, alpha in zip(*pair, level, strict=True):
            np.testing.assert_allclose(
                b - a, np.broadcast_to(1 - np.asarray(alpha)[..., None], a.shape), atol=1e-12
            )


def test_noise_has_the_size_it_should_and_no_memory():
    states = random_states()
    ones = NoiseLevel(*(jnp.ones((N, T)),) * 2)
    q, p = corrupt(jr.key(0), states, ones)
    for noise in (q, p):
        # 2400 draws: the mean is within 0.1 and the variance within 0.15, five deviations each.
        assert abs(float(noise.mean())) < 0.1
        assert abs(float(noise.var()) - 1) < 0.15
    for a, b in ((q, states.q), (p, states.p), (q, p)):
        assert abs(np.corrcoef(np.ravel(a), np.ravel(b))[0, 1]) < 0.1


def test_clean_tokens_come_through_bit_for_bit():
    states = random_states()
    assert no_noise(states).q.shape == (N, T)
    for x, y in zip(states, corrupt(jr.key(0), states, no_noise(states)), strict=True):
        np.testing.assert_array_equal(x, y)


def test_selection_is_by_token():
    states, known = random_states(), random_known()
    other = jax.tree.map(lambda x: x + 1, states)
    chosen = select(known, states, other)
    for x, y, is_known in zip(chosen, states, known, strict=True):
        np.testing.assert_array_equal((x == y).all(-1), is_known)
        np.testing.assert_array_equal((x == y).any(-1), is_known)


def test_single_precision_stays_single_where_double_is_allowed():
    with jax.enable_x64(True):
        level = draw_noise_level(jr.key(0), random_known(), 10, "float32")
        assert level.q.dtype == jnp.float32
        assert corrupt(jr.key(0), random_states("float32"), level).q.dtype == jnp.float32


def test_any_level_is_uniform_and_told_as_the_rung_above():
    """Rounding up keeps 0 for clean tokens alone; rounding to the nearest would not."""
    known = random_known()
    level = draw_any_level(jr.key(0), known)
    for drawn, told, is_known in zip(level, rung_above(level, 10), known, strict=True):
        drawn, told, is_known = (np.asarray(x) for x in (drawn, told, is_known))
        np.testing.assert_array_equal(told == 0, is_known)
        np.testing.assert_array_equal(drawn == 0, is_known)
        above = told - drawn
        assert (above >= -1e-6).all() and (above < 0.1).all()
        np.testing.assert_allclose(told * 10, np.rint(told * 10), atol=1e-5)
        # Uniform in (0, 1]: mean 1/2, variance 1/12, of about 600 draws.
        assert abs(drawn[~is_known].mean() - 0.5) < 0.06
        assert abs(drawn[~is_known].var() - 1 / 12) < 0.02


def test_nearby_states_move_where_unknown_by_the_told_size():
    """`level = σ / (1 + σ)` gives σ back, and the moves have that size, in typical changes."""
    states, known, change = random_states(), random_known(), 0.5
    moved, level, weight = corrupt_nearby(jr.key(2), states, known, change)
    sizes = []
    for x, y, alpha, is_known in zip(states, moved, level, known, strict=True):
        x, y, alpha, is_known = (np.asarray(a) for a in (x, y, alpha, is_known))
        np.testing.assert_array_equal(x[is_known], y[is_known])
        np.testing.assert_array_equal(alpha == 0, is_known)
        sigma = alpha / (1 - alpha)
        assert (sigma[~is_known] > 0.0099).all() and (sigma[~is_known] < 1.0001).all()
        unit = ((y - x) / change)[~is_known] / sigma[~is_known][:, None]
        # About 1,200 standard normal draws.
        assert abs(unit.mean()) < 0.15 and abs(unit.var() - 1) < 0.2
        sizes.append(np.where(is_known, np.nan, sigma))
    # One size a window, log-uniform from 0.01 to 1, which also weights the window's loss.
    of_window = np.concatenate(sizes, axis=1)
    some = np.isfinite(of_window).any(axis=1)
    lowest, highest = np.nanmin(of_window[some], axis=1), np.nanmax(of_window[some], axis=1)
    np.testing.assert_allclose(lowest, highest, rtol=1e-4)
    assert abs(np.log10(highest).mean() + 1) < 0.15
    np.testing.assert_allclose(np.asarray(weight)[some], (1 + highest / 0.01) ** -2.0, rtol=1e-3)
