"""Inference with a Hamiltonian that is exactly right must be exactly right."""

import jax
import jax.random as jr
import numpy as np
import pytest
from tests.estimator.oscillator import CONTEXT, exact_model, exact_states, prior

from dhn.blocks import StateBlock
from dhn.codes.autodecode import autodecode
from dhn.codes.probe import Probe
from dhn.errors import UserError
from dhn.reconstruct.forecast import forecast
from dhn.reconstruct.interpolate import interpolate, spline, weigh
from dhn.reconstruct.shooting import shoot


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


rng = np.random.default_rng(0)
FREQUENCIES = 1.0 + rng.uniform(-0.3, 0.3, 21)
PHASES = rng.uniform(0, 2 * np.pi, 21)
CODES = FREQUENCIES[:, None] - 1.0
SLOW = pytest.mark.slow


@pytest.mark.parametrize(("block_size", "stride"), [(1, 1), (2, 1), (3, 2), (4, 4), (1, 3)])
def test_a_forecast_follows_the_exact_solution(block_size, stride):
    truth = exact_states(FREQUENCIES, 100, PHASES)
    found = forecast(exact_model(block_size, stride), truth.at(slice(0, 8)), CODES, 92, jr.key(0))
    np.testing.assert_allclose(found.q, truth.q[:, 8:], atol=1e-11)
    np.testing.assert_allclose(found.p, truth.p[:, 8:], atol=1e-11)


def test_length_and_batch_size_do_not_change_a_forecast():
    truth = exact_states(FREQUENCIES, 100, PHASES)
    start = truth.at(slice(0, 4))
    long = forecast(exact_model(), start, CODES, 80, jr.key(0))
    short = forecast(exact_model(), start, CODES, 40, jr.key(0), batch_size=16)
    # The solve stops when the worst of a batch has converged: equal to round-off, not to the bit.
    np.testing.assert_allclose(short.q, long.q[:, :40], atol=1e-13)


def test_a_stride_of_zero_cannot_forecast():
    truth = exact_states(FREQUENCIES, 100, PHASES)
    with pytest.raises(UserError, match="stride 0 moves nothing"):
        forecast(exact_model(1, 0), truth, CODES, 10, jr.key(0))


def test_autodecoding_recovers_the_code():
    truth = exact_states(FREQUENCIES, 16, PHASES)
    fitted = autodecode(exact_model(), truth, np.ones((21, 16), bool), prior())
    # The prior pulls by about noise²/information: far below this tolerance.
    np.testing.assert_allclose(fitted.codes, CODES, atol=1e-5)
    assert (fitted.loss < prior().noise ** 2).all()


def test_autodecoding_ignores_unknown_states():
    truth = exact_states(FREQUENCIES, 24, PHASES)
    known = np.random.default_rng(1).random((21, 24)) > 0.2
    known[:, 3:6] = True
    broken = StateBlock(*(np.where(known[..., None], x, np.nan) for x in truth))
    fitted = autodecode(exact_model(), broken, known, prior())
    np.testing.assert_allclose(fitted.codes, CODES, atol=1e-4)


def test_autodecoding_without_a_complete_window_says_so():
    truth = exact_states(FREQUENCIES, 8, PHASES)
    known = np.ones((21, 8), bool)
    known[4] = np.arange(8) % 2 == 0
    with pytest.raises(UserError, match=r"2 consecutive observed states.*trajectory 4"):
        autodecode(exact_model(), truth, known, prior())


def test_the_posterior_of_a_code_is_cautious():
    """Codes fitted to noisy states scatter about the truth no wider than the posterior claims."""
    sigma = 0.02
    frequencies = np.full(400, 1.1)
    truth = exact_states(frequencies, 32, np.zeros(400))
    noise = np.random.default_rng(2).normal(0, sigma, (2, 400, 32, 1))
    noisy = StateBlock(truth.q + noise[0], truth.p + noise[1])
    # A residual is a difference of two noisy states in units of the stage's scale 0.1.
    fitted = autodecode(
        exact_model(), noisy, np.ones((400, 32), bool), prior(), noise=np.sqrt(2) * sigma / 0.1
    )
    claimed = np.sqrt((fitted.root**2).sum((1, 2))).mean()
    scatter = fitted.codes.std()
    # Neighbouring residuals share a noisy state with opposite signs, so errors cancel in part,
    # which the posterior does not know: it is cautious, by a factor below the number of terms.
    assert 1.0 < claimed / scatter < 6.0


@pytest.mark.parametrize("factor", [pytest.param(2, marks=SLOW), 4, pytest.param(8, marks=SLOW)])
def test_interpolation_is_exact_where_a_spline_is_not(factor):
    truth = exact_states(FREQUENCIES, 8 * factor + 1, PHASES)
    coarse = StateBlock(*(x[:, ::factor] for x in truth))
    found = interpolate(exact_model(), coarse, prior(), factor, CONTEXT, jr.key(0))
    error = np.abs(found.q - truth.q).max()
    of_spline = np.abs(spline(coarse, factor).q - truth.q).max()
    assert error < 1e-6
    assert error < 1e-2 * of_spline


def test_a_model_is_believed_where_it_is_right_alone():
    """Wrong in the second half, by ten times the spline's error: there the spline is taken."""
    t = np.linspace(0, 12, 81)
    truth = StateBlock(np.sin(t)[None, :, None], np.cos(t)[None, :, None])
    coarse = truth.at(slice(0, None, 4))
    splined = spline(coarse, 4)
    wrong = 10 * np.sqrt(np.mean((splined.q - truth.q) ** 2)) * (t > 6)[None, :, None]
    refined = StateBlock(truth.q + wrong, truth.p + wrong)
    misses = StateBlock(*(4 * wrong[:, 4::4] for _ in range(2)))
    mixed = weigh(coarse, refined, splined, misses)

    def error(states, half):
        return float(np.sqrt(np.mean((states.q - truth.q)[:, half] ** 2)))

    early, late = slice(0, 36), slice(44, None)
    assert error(mixed, early) < 0.05 * error(splined, early)
    assert error(mixed, late) < 1.1 * error(splined, late) < 0.5 * error(refined, late)


def test_a_probe_finds_a_linear_parameter_and_ignores_dead_codes():
    codes = np.random.default_rng(3).normal(size=(200, 5))
    codes[:, 4] = 0.0
    target = 2.0 + codes @ np.array([1.0, -2.0, 0.5, 0.0, 7.0])
    probe = Probe.fit(codes[:150], target[:150])
    assert probe.linear
    np.testing.assert_allclose(probe(codes[150:]), target[150:], atol=1e-6)
    assert probe.error < 1e-5


def test_a_probe_reads_a_parameter_off_a_bent_curve_of_codes():
    """Codes along a parabola: no line reads the parameter off them."""
    rng = np.random.default_rng(3)
    target = rng.uniform(0, 2, 200)
    bent = np.stack([target**2, np.sqrt(1 + target)], axis=1) + 1e-4 * rng.normal(size=(200, 2))
    line, curve = (Probe.fit(bent[:150], target[:150], linear=linear) for linear in (True, False))
    assert line.linear and not curve.linear
    errors = [np.sqrt(np.mean((p(bent[150:]) - target[150:]) ** 2)) for p in (line, curve)]
    assert errors[1] < 0.3 * errors[0]
    assert 0.5 * errors[1] < curve.error < 2 * errors[1]


def test_a_probe_follows_a_strong_bend_in_one_direction_beside_noise_in_others():
    """Codes of a long training: a square is not enough, and small directions say nothing."""
    rng = np.random.default_rng(4)
    target = rng.uniform(0.5, 1.0, 400)
    bent = np.stack([np.tanh(6 * (target - 0.7)), *0.01 * rng.normal(size=(3, 400))], axis=1)
    probe = Probe.fit(bent[:300], target[:300])
    assert not probe.linear
    errors = (probe(bent[300:]) - target[300:]) ** 2
    line = Probe.fit(bent[:300], target[:300], linear=True)
    assert np.mean(errors) < 1e-3 * np.mean((line(bent[300:]) - target[300:]) ** 2)


def test_standard_errors_grow_where_no_training_code_is_near():
    target = np.linspace(0.5, 1.0, 200)
    bent = np.stack([np.exp(3 * target), np.zeros(200)], axis=1)
    probe = Probe.fit(bent, target)
    known = np.zeros((200, 2, 2))
    inside = probe.standard_errors(bent, known)
    assert np.all(inside < 3 * probe.error)
    beyond = np.array([[np.exp(3 * 1.02), 0.0]])
    (outside,) = probe.standard_errors(beyond, known[:1])
    assert abs(probe(beyond)[0] - 1.02) < 3 * outside
    assert outside > 100 * inside.max()


@pytest.mark.parametrize("codes", [np.zeros((30, 3)), np.zeros((30, 0))])
def test_codes_that_never_moved_tell_the_mean(codes):
    target = np.random.default_rng(0).normal(size=30)
    probe = Probe.fit(codes, target)
    np.testing.assert_allclose(probe(codes), target.mean())


def test_a_probe_stays_straight_where_noise_rules():
    rng = np.random.default_rng(5)
    codes = rng.normal(size=(60, 8))
    assert Probe.fit(codes, codes[:, 0] + 0.5 * rng.normal(size=60)).linear


def test_standard_errors_add_the_probe_and_the_code():
    """A linear probe with slope 2 of a code known to 0.1 is uncertain by 0.2, and its own error."""
    codes = np.random.default_rng(3).normal(size=(50, 2))
    probe = Probe.fit(codes, 2 * codes[:, 0], linear=True)
    root = np.zeros((50, 2, 2))
    root[:, 0, 1], root[:, 1, 0] = 0.1, 5.0
    expected = np.sqrt(0.2**2 + probe.error**2)
    np.testing.assert_allclose(probe.standard_errors(codes, root), expected, rtol=1e-4)


def test_shooting_finds_start_and_code_through_noise():
    """The fitted path is closer to the truth than the measurements, by the averaging to expect."""
    sigma = 0.05
    truth = exact_states(FREQUENCIES, 40, PHASES)
    noise = np.random.default_rng(4).normal(0, sigma, (2, *truth.q.shape))
    noisy = StateBlock(truth.q + noise[0], truth.p + noise[1])
    known = np.ones((21, 40), bool)
    known[:, 7:11] = False
    model, levels = exact_model(), np.full((2, 1), sigma)
    fits = autodecode(model, noisy, known, prior(), noise=np.sqrt(2) * sigma / 0.1)
    shot = shoot(model, noisy, known, fits, prior(), levels)
    error = np.sqrt(np.mean((shot.path.q - truth.q) ** 2))
    # Three numbers (start and frequency) are fitted to 72: sigma * sqrt(3 / 72) is the ideal.
    assert error < 2 * sigma * np.sqrt(3 / 72)
    assert np.sqrt(np.mean((shot.codes - CODES) ** 2)) < np.sqrt(np.mean((fits.codes - CODES) ** 2))
    assert 0.7 < shot.loss.mean() < 1.2
    # The claimed spread of the last state agrees with what happened.
    claimed = np.sqrt((shot.end_root**2).sum(2)).mean()
    happened = np.sqrt(np.mean((shot.path.q[:, -1] - truth.q[:, -1]) ** 2))
    assert 0.5 < claimed / happened < 2.0
    # A code that is known leaves its place only if nobody trusts it.
    sure = fits._replace(root=1e-4 * fits.root)
    kept = shoot(model, noisy, known, sure, prior(), levels).codes
    np.testing.assert_allclose(kept, fits.codes, atol=1e-4)
    freed = shoot(model, noisy, known, sure, prior(), levels, trusted=False).codes
    np.testing.assert_allclose(freed, CODES, atol=3 * np.std(shot.codes - CODES))
    assert np.abs(freed - fits.codes).max() > 1e-2
