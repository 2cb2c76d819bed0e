"""Reconstruction with an exact model: textbook answers for any mask."""

import dataclasses

import jax
import numpy as np
import pytest
from tests.reconstruct.oscillator import TIME_STEP, exact_model, exact_states, prior

from dhn.codes.autodecode import CodePrior
from dhn.reconstruct.engine import most_probable, reconstruct, refine
from dhn.reconstruct.guess import Examples, bridges
from dhn.reconstruct.job import Found, better_of, padded_length
from dhn.reconstruct.knowledge import EXACT, Knowledge
from dhn.reconstruct.posterior import Result
from dhn.reconstruct.question import Question, interpolate_path, nothing_between
from dhn.reconstruct.smoother import CodeGaussian, Frame, covariances

STATES = 33
rng = np.random.default_rng(0)
FREQUENCIES = 1.0 + rng.uniform(-0.3, 0.3, 6)
PHASES = rng.uniform(0, 2 * np.pi, 6)


def truth(frequencies=FREQUENCIES, states=STATES, phases=PHASES) -> np.ndarray:
    return np.concatenate(exact_states(frequencies, states, phases), axis=-1)


def knowledge(block_size: int = 1, stride: int = 1, **changes) -> Knowledge:
    frequencies = np.linspace(0.65, 1.35, 30)
    states = truth(frequencies, STATES, np.linspace(0, 6, 30))
    examples = Examples.make(states, frequencies[:, None] - 1.0)
    chosen = dataclasses.replace(prior(), **changes)
    with jax.enable_x64(True):
        return Knowledge(exact_model(block_size, stride), chosen, examples, change=0.1)


def mask(kind: str, shape=(6, STATES, 2)) -> np.ndarray:
    found = np.zeros(shape, bool)
    if kind == "first 8 states":
        found[:, :8] = True
    elif kind == "every 8th state":
        found[:, ::8] = True
    elif kind == "positions only":
        found[..., 0] = True
    elif kind == "every 4th position":
        found[:, ::4, 0] = True
    elif kind == "momenta only":
        found[..., 1] = True
    elif kind == "middle lost":
        found[:, :8] = found[:, 24:] = True
    elif kind == "a random fifth":
        found[:] = np.random.default_rng(1).random(shape) < 0.2
    return found


MASKS = (
    "first 8 states", "every 8th state", "positions only", "every 4th position", "momenta only",
    "middle lost", "a random fifth",
)  # fmt: skip


@pytest.mark.parametrize("kind", MASKS)
def test_an_exact_model_reconstructs_exactly(kind):
    found = reconstruct(knowledge(), truth(), mask(kind), np.zeros((6, STATES, 2)))
    assert (found.result == Result.OK).all()
    error = np.abs(found.states - truth())
    # The model claims residuals of 1e-4 of a change of 0.1; the truth has none.
    assert error.max() < 1e-4
    assert (error / found.deviation).max() < 3
    assert np.abs(found.codes[:, 0] - (FREQUENCIES - 1)).max() < 1e-3


@pytest.mark.parametrize(("block_size", "stride"), [(2, 1), (3, 2), (4, 2)])
def test_blocks_of_any_size_answer_the_same_question(block_size, stride):
    seen = np.zeros((6, STATES, 2), bool)
    seen[:, ::5] = True
    found = reconstruct(knowledge(block_size, stride), truth(), seen, np.zeros((6, STATES, 2)))
    assert (found.result == Result.OK).all()
    assert np.abs(found.states - truth()).max() < 1e-4


def test_states_that_nothing_determines_are_reported():
    """The exact model of stride 2 ties every second state: the others are free."""
    seen = mask("every 8th state")
    found = reconstruct(knowledge(3, 2), truth(), seen, np.zeros((6, STATES, 2)))
    assert (found.result == Result.NOT_IDENTIFIABLE).all()
    assert np.abs(found.states - truth())[:, ::2].max() < 1e-4
    assert np.abs(found.states).max() < 10


def test_trajectories_beside_those_of_training_are_reported():
    """Training has one orbit; smaller ones lie within the range of every coordinate."""
    frequencies, phases = np.linspace(0.95, 1.05, 60), np.linspace(0, 0.1, 60)[::-1] ** 1.5
    examples = Examples.make(truth(frequencies, STATES, phases), frequencies[:, None] - 1.0)
    known = dataclasses.replace(knowledge(), examples=examples)
    same = truth(np.array([0.97, 1.0, 1.02]), STATES, np.array([0.02, 0.01, 0.005]))
    for states, result in ((same, Result.OK), (0.8 * same, Result.OUTSIDE_TRAINING)):
        found = reconstruct(known, states, np.ones(states.shape, bool), np.zeros(states.shape))
        assert (found.result == result).all()


def kalman(frequency: float, values: np.ndarray, noise: float | np.ndarray, process: float):
    """Rauch-Tung-Striebel smoother of one oscillator with a known frequency and a flat start.

    `noise` is one number or (T, 2), the standard deviation of each number.
    Process noise enters as the engine has it: on `Q_target` and on `P_source` of each step.
    """
    angle = frequency * TIME_STEP
    c, s = np.cos(angle), np.sin(angle)
    F = np.array([[c, s / frequency], [-frequency * s, c]])
    # H+ gives Q1 = q0 / c + tan p1 / w and P0 = p1 / c + w tan q0. Noise on both of them moves
    # the next state by G: p1 = c (p0 - w tan q0 - e2), q1 = q0 / c + tan p1 / w - e1.
    G = np.array([[-1.0, -s / frequency], [0.0, -c]])
    Q = process**2 * G @ G.T
    T = len(values)
    R = [np.diag(x**2) for x in np.broadcast_to(noise, values.shape)]
    mean, cov = [values[0]], [R[0]]
    ahead = []
    for t in range(1, T):
        m, P = F @ mean[-1], F @ cov[-1] @ F.T + Q
        ahead.append((m, P))
        gain = P @ np.linalg.inv(P + R[t])
        mean.append(m + gain @ (values[t] - m))
        cov.append((np.eye(2) - gain) @ P)
    for t in range(T - 2, -1, -1):
        m, P = ahead[t]
        back = cov[t] @ F.T @ np.linalg.inv(P)
        mean[t] = mean[t] + back @ (mean[t + 1] - m)
        cov[t] = cov[t] + back @ (cov[t + 1] - P) @ back.T
    return np.array(mean), np.array(cov)


SINGLE = np.full((2, STATES, 2), 0.05)
VARIED = 0.1 * 10 ** np.random.default_rng(3).uniform(-2, 0, (2, STATES, 2))
"""Standard deviations of each number, from 0.001 to 0.1."""


@pytest.mark.parametrize("noise", [SINGLE, VARIED], ids=["one noise", "noise of each number"])
def test_a_linear_oscillator_equals_the_kalman_smoother(noise):
    """With the code fixed by its prior, mean and covariance are those of the exact smoother."""
    claimed = 0.02
    # A prior that leaves the code no freedom: one training system, its spread next to nothing.
    tight = CodePrior(np.array([0.1]), np.array([[1e-9]]), np.zeros((1, 1)), claimed)
    known = dataclasses.replace(knowledge(), prior=tight)
    clean = truth(np.full(2, 1.1), STATES, PHASES[:2])
    values = clean + noise * np.random.default_rng(2).normal(size=clean.shape)
    found = reconstruct(known, values, np.ones(values.shape, bool), noise)
    for i in range(2):
        mean, cov = kalman(1.1, values[i], noise[i], claimed * 0.1)
        np.testing.assert_allclose(found.states[i], mean, atol=1e-7)
        deviation = np.sqrt(np.einsum("tii->ti", cov))
        np.testing.assert_allclose(found.deviation[i], deviation, rtol=1e-5)


def test_the_frequency_from_positions_has_the_textbook_standard_error():
    """The inverse Fisher information of a sinusoid with unknown amplitude, phase and frequency."""
    sigma, w = 0.01, 1.1
    t = TIME_STEP * np.arange(65)
    sine, cosine = np.sin(w * t), np.cos(w * t)
    # q = a cos wt + b sin wt with a = 1, b = 0.
    jacobian = np.stack([cosine, sine, -t * sine], axis=1) / sigma
    expected = np.sqrt(np.linalg.inv(jacobian.T @ jacobian)[2, 2])
    count = 64
    clean = truth(np.full(count, w), 65, np.zeros(count))
    values = clean + sigma * np.random.default_rng(3).normal(size=clean.shape)
    seen = np.zeros(values.shape, bool)
    seen[..., 0] = True
    found = reconstruct(knowledge(noise=1e-6), values, seen, np.full(values.shape, sigma))
    claimed = np.sqrt((found.code_root**2).sum((1, 2)))
    np.testing.assert_allclose(claimed, expected, rtol=0.05)
    # The scatter of 64 estimates is known to a tenth.
    assert abs(np.std(found.codes[:, 0]) / expected - 1) < 0.3


def test_known_numbers_come_back_within_their_noise():
    sigma = 0.02
    values = truth() + sigma * np.random.default_rng(4).normal(size=(6, STATES, 2))
    seen = mask("a random fifth")
    found = reconstruct(knowledge(), values, seen, np.full(values.shape, sigma))
    apart = (found.states - values)[seen] / sigma
    assert np.abs(apart).max() < 4.5
    assert np.sqrt(np.mean((found.states - truth()) ** 2)) < sigma


def test_numbers_without_noise_are_kept():
    seen = mask("every 8th state")
    found = reconstruct(knowledge(), truth(), seen, np.zeros((6, STATES, 2)))
    least = EXACT * prior().noise * 0.1
    assert np.abs(found.states - truth())[seen].max() < 10 * least


def test_other_trajectories_of_the_batch_do_not_matter():
    seen, none = mask("every 8th state"), np.zeros((6, STATES, 2))
    whole = reconstruct(knowledge(), truth(), seen, none)
    alone = reconstruct(knowledge(), truth()[2:3], seen[2:3], none[2:3])
    np.testing.assert_allclose(alone.states, whole.states[2:3], atol=1e-12)
    np.testing.assert_allclose(alone.deviation, whole.deviation[2:3], rtol=1e-8)


def test_motion_that_the_model_cannot_explain_is_called_a_poor_fit():
    square = np.sign(truth())
    found = reconstruct(
        knowledge(), square, np.ones(square.shape, bool), np.full(square.shape, 1e-3)
    )
    assert (found.result != Result.OK).all()


def test_splines_bridge_a_motion_that_the_model_does_not_explain():
    """No worse than the splines, bands that hold, and nothing changes for what the model knows."""
    t = TIME_STEP * np.arange(STATES)
    alien = np.stack([np.sin(2 * t + 1), np.cos(3 * t)], axis=-1)
    values = np.concatenate([truth()[:2], alien[None]])
    seen = np.zeros(values.shape, bool)
    seen[:, ::4] = True
    none = np.zeros(values.shape)
    found = reconstruct(knowledge(), values, seen, none)
    assert found.result.tolist() == [Result.OK, Result.OK, Result.POOR_FIT]
    splines, deviation = bridges(values, seen, none)
    error, expected = (np.abs(x[2] - alien)[~seen[2]] for x in (found.states, splines))
    assert np.sqrt(np.mean(error**2)) < 1.1 * np.sqrt(np.mean(expected**2))
    assert 0.3 < np.sqrt(np.mean((expected / deviation[2][~seen[2]]) ** 2)) < 2
    assert (error / found.deviation[2][~seen[2]] < 4).all()
    alone = reconstruct(knowledge(), values[:2], seen[:2], none[:2])
    np.testing.assert_allclose(found.states[:2], alone.states, atol=1e-12)
    np.testing.assert_allclose(found.deviation[:2], alone.deviation, rtol=1e-8)


def test_one_state_does_not_identify_the_code():
    seen = np.zeros((6, STATES, 2), bool)
    seen[:, 0] = True
    found = reconstruct(knowledge(), truth(), seen, np.zeros(seen.shape))
    assert (found.result == Result.NOT_IDENTIFIABLE).all()


def test_samples_have_the_claimed_spread():
    sigma = 0.05
    values = truth() + sigma * np.random.default_rng(5).normal(size=(6, STATES, 2))
    seen = mask("first 8 states")
    noise = np.full(values.shape, sigma)
    found = reconstruct(knowledge(), values, seen, noise, draws=200, seed=1)
    ratio = found.draws.std(0)[:, 8:] / found.deviation[:, 8:]
    assert abs(np.mean(ratio) - 1) < 0.1


def test_beyond_the_last_measurement_the_path_is_the_models_own():
    """Not that of one more linear step, which the covariances are computed by."""
    values = truth() + 0.05 * np.random.default_rng(6).normal(size=(6, STATES, 2))
    question = (values, mask("first 8 states"), np.full(values.shape, 0.05))
    found = reconstruct(knowledge(), *question)
    rolled, _, _ = most_probable(knowledge(), *question)
    np.testing.assert_array_equal(found.states[:, 8:], rolled[:, 8:])


def test_a_measurement_between_two_states_moves_both():
    """With nothing else known: their straight line goes through it, by the smallest move."""
    states, interval, fraction = truth()[:1, :6], 2, 0.25
    with jax.enable_x64(True):
        between = nothing_between(1, 6, 2)._replace(
            values=np.full((1, 5, 1, 2), 0.5),
            weight=np.zeros((1, 5, 1, 2)),
            fraction=np.full((1, 5, 1), fraction),
        )
        between.weight[0, interval, 0, 0] = 1.0
        path = interpolate_path(states, between.fraction)
        miss = 0.5 - float(path[0, interval, 0, 0])
        nothing = np.zeros(states.shape)
        question = Question(nothing, nothing, states, np.array([6]), between)
        frame, code = Frame(np.zeros(1), np.eye(1)), np.zeros((1, 1))
        weightless = np.full(1, 1e9)  # the model's error
        gaussian = CodeGaussian(np.zeros((1, 1)), np.eye(1)[None])
        arrays = jax.device_put((question, states, code, frame, gaussian, weightless))
        moved = np.asarray(covariances(exact_model(), *arrays)[0]) - states
    expected = np.zeros(states.shape)
    left, right = 1 - fraction, fraction
    expected[0, interval, 0] = left * miss / (left**2 + right**2)
    expected[0, interval + 1, 0] = right * miss / (left**2 + right**2)
    np.testing.assert_allclose(moved, expected, atol=1e-5)


def test_of_two_paths_the_one_that_fits_better_is_kept():
    def path(*misfits):
        misfit = np.array(misfits)
        return Found(*(misfit.reshape(-1, *[1] * k) for k in (2, 1, 0, 0, 2, 0, 0)))

    found = better_of(path(1.0, 2.0, 3.0), np.array([0, 2]), path(4.0, 2.5))
    np.testing.assert_array_equal(found.misfit, [1.0, 2.0, 2.5])
    np.testing.assert_array_equal(found.states.ravel(), [1.0, 2.0, 2.5])


def test_few_lengths_are_compiled():
    lengths = {padded_length(states) for states in range(2, 1000)}
    assert len(lengths) < 40
    assert all(states <= padded_length(states) <= 1.26 * states for states in range(2, 1000))
    assert padded_length(129) == 129


def test_a_training_set_is_refined_where_the_model_fits_it():
    """Noise falls; a motion that the model cannot follow stays as it was."""
    sigma, rng = 0.05, np.random.default_rng(5)
    frequencies = np.append(FREQUENCIES, 1.0)
    states = truth(frequencies, STATES, np.append(PHASES, 0.0))
    states[-1] = np.sign(states[-1])  # jumps from one side to the other
    values = states + sigma * rng.normal(size=states.shape)
    seen, noise = np.ones(states.shape, bool), np.full(states.shape, sigma)
    codes = np.append(FREQUENCIES - 1.0, 0.0)[:, None]
    found, moved, good = refine(knowledge(noise=1e-2), values, seen, noise, values, codes)
    assert good[:-1].all() and not good[-1]
    np.testing.assert_array_equal(found[-1], values[-1])
    np.testing.assert_array_equal(moved[-1], codes[-1])
    left = np.sqrt(np.mean((found - states)[:-1] ** 2))
    # Three unknowns, two of them a state, in 66 numbers.
    assert left < 0.4 * sigma
    assert np.abs(moved - codes)[:-1].max() > 0


def test_a_training_set_is_refined_however_closely_the_model_follows_it():
    """A misfit far below the noise is no reason to refuse a path, even if others have less.

    Half of the momenta are so wrong as first momenta of positions alone are, and loosely tied.
    """
    frequencies, phases = np.tile(FREQUENCIES, 2), np.tile(PHASES, 2)
    states = truth(frequencies, STATES, phases)
    values = states + 0.0
    values[6:, :, 1] *= 1.05
    seen, noise = np.ones(states.shape, bool), np.broadcast_to([1e-3, 0.1], states.shape)
    codes = frequencies[:, None] - 1.0
    found, _, good = refine(knowledge(noise=1e-3), values, seen, noise, values, codes)
    assert good.all()
    assert np.abs(found - states)[..., 1].max() < 0.2 * np.abs(values - states)[..., 1].max()


def test_a_forecast_that_leaves_all_bounds_is_said_and_leaves_the_code(monkeypatch):
    """What is known determines the code, however the roll-out behind it ends."""
    from dhn.reconstruct import engine

    known = mask("first 8 states")
    noise = np.zeros(known.shape)
    usual = reconstruct(knowledge(), truth(), known, noise)

    def lost(model, states, codes, T):
        whole = np.full((len(states), T, states.shape[2]), np.nan)
        whole[:, : states.shape[1]] = states
        whole[1:, states.shape[1] :] = 0.0
        return whole

    monkeypatch.setattr(engine, "with_tail", lost)
    found = reconstruct(knowledge(), truth(), known, noise)
    assert found.result[0] == Result.NOT_CONVERGED and found.result[1] != Result.NOT_CONVERGED
    np.testing.assert_allclose(found.codes[0], usual.codes[0], atol=1e-5)
    assert np.isnan(found.states[0, -1]).all()
