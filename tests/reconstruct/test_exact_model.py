"""Inference with a Hamiltonian that is exactly right must be exactly right."""

import jax
import jax.random as jr
import numpy as np
import pytest
from tests.reconstruct.oscillator import exact_model, exact_states, prior

from dhn.blocks import StateBlock
from dhn.codes.autodecode import autodecode
from dhn.errors import UserError
from dhn.reconstruct.forecast import forecast
from dhn.reconstruct.job import double


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


rng = np.random.default_rng(0)
FREQUENCIES = 1.0 + rng.uniform(-0.3, 0.3, 21)
PHASES = rng.uniform(0, 2 * np.pi, 21)
CODES = FREQUENCIES[:, None] - 1.0


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


def test_a_platform_without_double_precision_is_refused(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "METAL")
    with pytest.raises(UserError, match="'metal' does not have; run it on the processor"):
        double(exact_model())
