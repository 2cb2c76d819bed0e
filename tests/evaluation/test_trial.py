"""A model on trial: windows, horizons, rivals that learn and are chosen elsewhere."""

import numpy as np
import pytest

import dhn
from dhn.evaluation.rivals import linear_model, rivals
from dhn.evaluation.trial import horizons, marks, try_out, windows, with_past
from dhn.trajectories import Trajectories
from dhn.trajectories.period import characteristic_period, oscillation_period, turnover_time

STEP = 0.1
PERIOD = np.pi


def damped(states: int, start: float = 0.0, noise: float = 0.0, seed: int = 0) -> Trajectories:
    """One long run of a damped oscillator with period pi, as `dhn import` would give it."""
    t = start + STEP * np.arange(states)
    wave = np.exp((-0.02 + 2j) * t)
    q, v = wave.real, ((-0.02 + 2j) * wave).real
    rng = np.random.default_rng(seed)
    q, v = (x + noise * rng.normal(size=states) for x in (q, v))
    return Trajectories(
        q=q[None, :, None], v=v[None, :, None], t=t,
        noise=np.full((2, 1), max(noise, 1e-6)),
    )  # fmt: skip


def test_measured_runs_are_forecast_two_periods_ahead_from_many_starts():
    data = damped(300)
    found, left_out = windows(data, 16, None, PERIOD, start_from=1)
    assert found.states == 16 + 63 and len(found) == 200 and left_out == 0
    # Many trajectories are forecast from their beginning to their end, as the paper does.
    many = Trajectories.concatenate([damped(60)] * 20)
    found, _ = windows(many, 16, None, PERIOD, start_from=1)
    assert found.q.shape == (20, 60, 1)
    found, _ = windows(data, 16, 10, PERIOD, start_from=1)
    assert found.states == 26


def test_the_horizon_of_a_short_run_is_met_from_some_starts():
    found, _ = windows(damped(50), 20, None, PERIOD, start_from=1)
    assert found.states == 40 and found.known[:, -1].sum() == 11


def test_errors_are_told_at_fractions_of_a_period():
    assert marks(PERIOD, STEP, 40) == {
        "one state": 1, "0.1 period": 3, "0.5 period": 16, "1 period": 31, "the end": 40,
    }  # fmt: skip
    assert marks(None, STEP, 40) == {"one state": 1, "a quarter": 10, "half": 20, "the end": 40}


def test_periods():
    data = damped(200)
    assert oscillation_period(data) == pytest.approx(PERIOD, rel=0.01)
    assert turnover_time(data) == pytest.approx(PERIOD, rel=0.02)
    assert characteristic_period(data) == oscillation_period(data)
    # A wheel turning at 3 rad/s never comes back, but on the circle it does.
    t = np.arange(200) * STEP
    q = (3 * t)[None, :, None]
    wheel = Trajectories(q=q, v=np.full_like(q, 3.0), t=t, angles=(True,))
    assert characteristic_period(wheel) == pytest.approx(2 * np.pi / 3, rel=0.02)
    # Without velocities the speed follows from changes of position.
    assert turnover_time(data.replace(p=data.v, v=None)) == pytest.approx(PERIOD, rel=0.05)
    bare = Trajectories(q=q, p=q, t=t, angles=(True,))
    assert characteristic_period(bare) == pytest.approx(2 * np.pi / 3, rel=0.02)


def test_the_linear_rival_learns_from_train_and_is_chosen_on_validation():
    noisy = [damped(200, start, 0.02, seed) for seed, start in enumerate((0.0, 20.0, 30.0))]
    train, validation, test = noisy
    truth, _ = windows(test, 24, 31, PERIOD, start_from=1)
    chosen = linear_model(truth[:, :24], 31, train, validation)
    assert chosen is not None and chosen.delays >= 4  # several states average the noise
    still, linear, *_ = rivals(truth, 24, train, validation)
    assert linear.metrics.mse.mean() < 0.01 * still.metrics.mse.mean()
    # It has not seen the test: other truths, the same model.
    again = linear_model(truth[:5, :24], 31, train, validation)
    assert again is not None
    np.testing.assert_array_equal(again.operator, chosen.operator)


def test_short_parts_begin_with_the_end_of_the_parts_before_them():
    run = damped(80)
    train, validation, test = run[:, :50], run[:, 50:65], run[:, 65:]
    found = with_past(test, train, validation, 32)
    np.testing.assert_array_equal(found.q, run.q[:, 33:])
    np.testing.assert_allclose(found.times, run.times[:, 33:])
    assert with_past(damped(40, start=50.0), train, validation, 32).states == 40  # another run
    assert with_past(test, None, None, 32) is test


@pytest.fixture(scope="module")
def model():
    options = {"width": 16, "depth": 1, "latent_size": 1, "batch_size": 64, "warmup": 20}
    return dhn.DHN(damping="learned", **options).fit(
        damped(300, noise=0.003), steps=400, calibrate=True, validation=damped(100, 25.0, 0.003, 6)
    )


def test_a_trial_tells_errors_in_the_units_of_the_data(model):
    test = damped(200, start=30.0, noise=0.003, seed=5)
    train, validation = damped(300, noise=0.003), damped(100, 25.0, 0.003, 6)
    trial = try_out(model, test, train=train, validation=validation, observe=16, ahead=31)
    rows = {row["ahead"]: row for row in horizons(trial)}
    for name in ("0.5 period", "1 period"):
        row = rows[name]
        ahead = row["states"]
        error = (trial.prediction.q - trial.truth.q)[:, 15 + ahead]
        assert row["forecast"] == pytest.approx(np.sqrt(np.nanmean(error**2)))
    assert rows["0.5 period"]["forecast"] < 0.3 * rows["0.5 period"]["persistence"]
    assert len(trial.truth) == 184 and trial.left_out == 0


def test_bands_cover_what_they_claim_on_the_part_they_were_set_on(model):
    from dhn.evaluation.uncertainty import coverage

    validation = damped(100, 25.0, 0.003, 6)
    shares = coverage(*_forecast_of(model, validation))
    assert abs(shares["50 %"] - 0.5) < 0.05 and abs(shares["90 %"] - 0.9) < 0.05


def _forecast_of(model, data):
    trial = try_out(model, data, observe=16, ahead=56, most=64)
    return trial.prediction, trial.truth
