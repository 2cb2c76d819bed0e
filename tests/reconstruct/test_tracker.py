"""The filter against the smoother: the last state is the same, one measurement at a time."""

import dataclasses

import numpy as np
import pytest
from tests.reconstruct.test_engine import PHASES, kalman, knowledge, truth

from dhn.codes.autodecode import CodePrior
from dhn.reconstruct.engine import most_probable, reconstruct
from dhn.reconstruct.knowledge import Knowledge
from dhn.reconstruct.tracker import Filter

START = 16
"""States that the smoother sees before the filter goes on."""


def followed(known: Knowledge, values: np.ndarray, noise: np.ndarray, lag: int) -> Filter:
    """The filter after all of `values` (T, m), NaN where unknown."""
    seen, noise = np.isfinite(values), np.broadcast_to(noise, values.shape)
    states, code, prior = most_probable(
        known, np.nan_to_num(values[None, :START]), seen[None, :START], noise[None, :START]
    )
    weight = np.where(seen[:START], 1 / noise[:START] ** 2, 0.0)
    found = Filter(known, states[0], weight, np.nan_to_num(values[:START]), code[0], prior, lag)
    for row, deviation in zip(values[START:], noise[START:], strict=True):
        found.predict(1)
        found.correct(0, row, deviation)
    return found


def smoothed(known: Knowledge, values: np.ndarray, noise: np.ndarray):
    seen = np.isfinite(values)[None]
    return reconstruct(known, np.nan_to_num(values)[None], seen, np.broadcast_to(noise, seen.shape))


SINGLE = np.full((41, 2), 0.05)
VARIED = 0.1 * 10 ** np.random.default_rng(3).uniform(-2, 0, (41, 2))


@pytest.mark.parametrize(("lag", "sigma"), [(4, SINGLE), (12, SINGLE), (4, VARIED)])
def test_a_linear_oscillator_equals_the_kalman_filter(lag, sigma):
    """A window of any length gives the exact filter, since nothing is lost by linearising."""
    claimed = 0.02
    tight = CodePrior(np.array([0.1]), np.array([[1e-9]]), np.zeros((1, 1)), claimed)
    known = dataclasses.replace(knowledge(), prior=tight)
    clean = truth(np.full(1, 1.1), 41, PHASES[:1])[0]
    values = clean + sigma * np.random.default_rng(2).normal(size=clean.shape)
    now = followed(known, values, sigma, lag).estimate()
    mean, covariance = kalman(1.1, values, sigma, claimed * 0.1)
    np.testing.assert_allclose(now.state, mean[-1], atol=1e-7)
    np.testing.assert_allclose(now.root @ now.root.T, covariance[-1], rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize(("block_size", "stride"), [(1, 1), (2, 1)])
def test_the_last_state_and_the_code_are_those_of_the_smoother(block_size, stride):
    """Positions alone, with noise, of an oscillator of unknown frequency."""
    sigma = np.full(2, 0.01)
    known = knowledge(block_size, stride)
    clean = truth(np.full(1, 1.17), 61, PHASES[1:2])[0]
    values = clean + sigma * np.random.default_rng(3).normal(size=clean.shape)
    values[:, 1] = np.nan
    values[20:25] = np.nan
    now = followed(known, values, sigma, 8).estimate()
    best = smoothed(known, values, sigma)
    deviation = best.deviation[0, -1]
    assert np.abs((now.state - best.states[0, -1]) / deviation).max() < 0.1
    np.testing.assert_allclose(np.sqrt((now.root**2).sum(1)), deviation, rtol=0.05)
    spread = np.sqrt((best.code_root**2).sum())
    code = known.prior.mean + known.prior.basis @ now.code
    assert np.abs(code[0] - best.codes[0, 0]) < 0.1 * spread


def test_the_window_does_not_grow():
    sigma = np.full(2, 0.01)
    clean = truth(np.full(1, 1.17), 80, PHASES[1:2])[0]
    found = followed(knowledge(), clean, sigma, 8)
    assert len(found.path) <= 10
    assert np.abs(found.estimate().state - clean[-1]).max() < 0.01
