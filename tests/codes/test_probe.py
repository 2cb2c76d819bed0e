"""Probes: parameters read off codes, with standard errors."""

import numpy as np
import pytest

from dhn.codes.probe import Probe


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
