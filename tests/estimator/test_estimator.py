"""The estimator end to end on a small problem: fit, complete, infer, interpolate, save, load."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dhn
from dhn.errors import UserError
from dhn.estimator.answers import refined
from dhn.evaluation.extrapolation import LinearDMD, persistence
from dhn.evaluation.metrics import compare
from dhn.evaluation.uncertainty import coverage


@pytest.fixture(scope="module")
def data():
    return (
        dhn.simulate("single_pendulum", trajectories=60, seed=0),
        dhn.simulate("single_pendulum", trajectories=20, seed=1),
    )


@pytest.fixture(scope="module")
def model(data):
    with jax.enable_x64(False):
        return dhn.DHN(width=32, depth=2, latent_size=4, seed=0).fit(data[0], steps=800)


def test_completion_beats_persistence_and_a_linear_model_by_far(data, model):
    train, test = data
    found = compare(model.complete(test, 16), test).summary()["mse"]
    still = compare(persistence(test[:, :16], 113), test).summary()["mse"]
    linear = compare(LinearDMD.fit(train).forecast(test[:, :16], 113), test).summary()["mse"]
    assert found < 1e-2 * min(still, linear)
    assert found < 1e-3


def test_a_forecast_keeps_what_was_observed_and_marks_what_was_not(data, model):
    test = data[1]
    found = model.forecast(test[:, :16], 20)
    np.testing.assert_array_equal(found.q[:, :16], test.q[:, :16])
    assert found.known[:, :16].all() and not found.known[:, 16:].any()
    np.testing.assert_allclose(found.t, test.t[:36])


def test_samples_give_ordered_quantiles_and_are_reproducible(data, model):
    test = data[1]
    first = model.forecast(test[:, :16], 20, samples=8, seed=3)
    again = model.forecast(test[:, :16], 20, samples=8, seed=3)
    other = model.forecast(test[:, :16], 20, samples=8, seed=4)
    assert (first.q_quantiles[0.05] <= first.q_quantiles[0.95]).all()
    np.testing.assert_array_equal(first.q_quantiles[0.25], again.q_quantiles[0.25])
    assert not np.array_equal(first.q_quantiles[0.25], other.q_quantiles[0.25])
    # The most probable path is the same with and without samples.
    np.testing.assert_array_equal(model.forecast(test[:, :16], 20).q, first.q)


def test_both_solvers_answer_the_same_question(data, model):
    """The smoother and the paper's denoising agree where single steps determine everything."""
    sparse = dhn.DHN("blocks", width=32, depth=2).fit(data[0], steps=800)
    seen = data[1][:8].replace(known=np.arange(129) < np.full((8, 1), 16))
    smooth, denoised = (sparse.reconstruct(seen, solver=name) for name in ("smooth", "denoise"))
    truth = data[1][:8].q
    errors = [
        np.sqrt(np.mean((x.trajectories.q - truth)[:, 16:64] ** 2)) for x in (smooth, denoised)
    ]
    assert max(errors) < 0.05
    np.testing.assert_array_equal(denoised.trajectories.q[:, :16], truth[:, :16])
    with pytest.raises(UserError, match="solver must be 'smooth' or 'denoise'"):
        model.reconstruct(seen, solver="spline")


def test_the_length_of_the_pendulum_is_read_off_its_code(data, model):
    test = data[1]
    error = np.mean((model.infer(test, "l") - test.params["l"]) ** 2)
    assert error < 0.05 * np.var(test.params["l"])


def test_interpolation_returns_known_states_unchanged(data, model):
    test = data[1]
    fine = model.interpolate(test.resample(4), 4)
    np.testing.assert_array_equal(fine.q[:, ::4], test.q[:, ::4])
    assert compare(fine, test).summary()["mse"] < 1e-5


@pytest.mark.slow
def test_noisy_observations_are_fitted_as_a_whole(data, model):
    noisy = dhn.simulate("single_pendulum", trajectories=20, seed=1, noise=0.05)
    assert noisy.noise is not None
    truth = data[1]
    as_if_clean = noisy.replace(noise=None)[:, :32]
    plain = compare(model.forecast(as_if_clean, 40), truth).summary()["median"]
    aware = compare(model.forecast(noisy[:, :32], 40), truth).summary()["median"]
    assert aware < 0.5 * plain
    smooth = model.denoise(noisy[:, :48])
    error = np.mean((smooth.q - truth.q[:, :48]) ** 2)
    assert error < 0.3 * np.mean((noisy.q[:, :48] - truth.q[:, :48]) ** 2)


def test_noise_of_each_measurement_weights_it(data, model):
    """Ten good measurements among bad ones are as good as alone; one noise is a special case."""
    rng = np.random.default_rng(0)
    truth = data[1][:6, :40]
    noise = np.where(np.arange(40) % 4 == 0, 1e-3, 10.0)[None, :, None, None]
    noise = np.broadcast_to(noise, (6, 40, 2, 1))
    q, p = (x + noise[:, :, k] * rng.normal(size=x.shape) for k, x in ((0, truth.q), (1, truth.p)))
    measured = truth.replace(q=q, p=p, noise=noise)
    good = np.arange(40) % 4 == 0
    alone = measured.replace(known=np.broadcast_to(good, (6, 40)), noise=np.full((2, 1), 1e-3))
    found, best = model.reconstruct(measured), model.reconstruct(alone)
    difference = np.abs(found.trajectories.q - best.trajectories.q).max()
    assert difference < 1e-4 < np.abs(best.trajectories.q - truth.q).max() < 5e-3
    same = model.reconstruct(alone.replace(noise=np.full((6, 40, 2, 1), 1e-3)))
    np.testing.assert_array_equal(same.trajectories.q, best.trajectories.q)
    # Forecasts and interpolations of such data keep the noise where it belongs.
    ahead = model.forecast(measured, 5).noise
    np.testing.assert_array_equal(ahead[:, :40], noise)
    assert np.isnan(ahead[:, 40:]).all()
    np.testing.assert_array_equal(refined(measured, 3).noise[:, ::3], noise)
    trackers = model.track(noise=np.full((2, 1), 1e-3)), model.track()
    for t, position in zip(truth.t[:6], q[0, :6], strict=True):
        a = trackers[0].update(t, position)
        b = trackers[1].update(t, position, noise=np.full((2, 1), 1e-3))
    np.testing.assert_array_equal(a.q, b.q)
    with pytest.raises(UserError, match="zero or above"):
        trackers[0].update(100.0, 0.0, noise=-np.ones((2, 1)))


def test_a_saved_model_needs_nothing_repeated(data, model, tmp_path):
    model.save(tmp_path / "run")
    loaded = dhn.load(tmp_path / "run")
    test = data[1]
    np.testing.assert_array_equal(model.complete(test, 16).q, loaded.complete(test, 16).q)
    np.testing.assert_array_equal(model.infer(test, "l"), loaded.infer(test, "l"))
    assert loaded.config == model.config


BAD_INPUT = {
    "other dimension": (
        lambda m, d: m.forecast(dhn.simulate("double_pendulum", trajectories=2, seed=0), 5),
        r"trained on 1 coordinates \(theta\), but these data have 2 \(theta1, theta2\)",
    ),
    "no steps": (
        lambda m, d: m.forecast(d, 0),
        r"steps must be a whole number of at least 1; got 0",
    ),
    "negative samples": (
        lambda m, d: m.forecast(d, 5, samples=-1),
        r"samples must be a whole number of at least 0; got -1",
    ),
    "nothing left": (lambda m, d: m.complete(d, 129), r"observe must lie between 1 and 128"),
    "unknown parameter": (
        lambda m, d: m.infer(d, "mass"),
        r"no parameter 'mass' to learn from; they have: .*l",
    ),
    "constant parameter": (
        lambda m, d: m.infer(d, "g"),
        r"g is 0\.981 in all training data, so that it cannot be inferred",
    ),
    "no factor": (
        lambda m, d: m.interpolate(d, 0),
        r"factor must be a whole number of at least 1; got 0",
    ),
    "another grid": (
        lambda m, d: m.interpolate(d, 4),
        r"trained with time step 0\.078125, but these data have 0\.078125 / 4",
    ),
    "nothing known": (
        lambda m, d: m.reconstruct(d.replace(known=np.arange(20)[:, None] > np.zeros(129))),
        r"trajectory '0' has no known number; leave it out",
    ),
    "noise unknown": (lambda m, d: m.denoise(d), r"needs the noise of the measurements"),
    "untrained": (lambda m, d: dhn.DHN().forecast(d, 5), r"not been trained; call fit"),
    "unknown option": (
        lambda m, d: dhn.DHN(widht=3),
        r"unknown option 'widht'. Did you mean 'width'",
    ),
    "bad value": (
        lambda m, d: dhn.DHN(block_size=0),
        r"block_size should be greater than or equal to 1",
    ),
    "unknown preset": (lambda m, d: dhn.DHN("papre"), r"unknown preset 'papre'; expected one of"),
    "stride too long": (
        lambda m, d: dhn.DHN(stride=200, width=4).fit(d, steps=1),
        r"a window needs 201 states .* have only 129",
    ),
    "no folder": (lambda m, d: dhn.load("nowhere"), r"nowhere is not a folder"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_gets_one_clear_line(case, data, model):
    act, message = BAD_INPUT[case]
    with pytest.raises(UserError, match=message) as caught:
        act(model, data[1])
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_calibrated_bands_cover_what_they_claim(data):
    """On trajectories that neither training nor calibration has seen."""
    train = dhn.simulate("single_pendulum", trajectories=320, seed=2)
    model = dhn.DHN(width=32, depth=2, latent_size=4, validation=0.2)
    model.fit(train, steps=400, calibrate=True)
    test = dhn.simulate("single_pendulum", trajectories=200, seed=3)
    found = coverage(model.forecast(test[:, :16], 113), test)
    # Errors of one trajectory go together, so that 64 calibration trajectories and 200 test ones
    # leave a standard error of 0.07 and 0.04.
    assert abs(found["50 %"] - 0.5) < 0.15
    assert abs(found["90 %"] - 0.9) < 0.09
    blind = model.reconstruct(test.replace(p=None))
    low, high = (blind.trajectories.p_quantiles[level] for level in (0.05, 0.95))
    assert abs(np.mean((low <= test.p) & (test.p <= high)) - 0.9) < 0.09
    length, error = blind.parameters["l"]
    assert np.mean(np.abs(length - test.params["l"]) <= 2 * error) > 0.88


@pytest.mark.slow
def test_learned_damping_finds_the_true_rate():
    """dp/dt = -dH/dq - gamma p with a rate for each trajectory; zero where there is none."""
    for gamma in (0.0, (0.1, 0.3)):
        train = dhn.simulate("mass_spring", trajectories=60, seed=0, damping=gamma)
        model = dhn.DHN(width=32, depth=2, latent_size=4, damping="learned").fit(train, steps=1500)
        made = model.trained
        rate = np.asarray(made.model.finest.damping.rate(jnp.asarray(made.codes)))
        if gamma == 0.0:
            assert np.abs(rate).max() < 0.01
        else:
            truth = train.params["gamma"]
            assert np.abs(rate / truth - 1).mean() < 0.05
