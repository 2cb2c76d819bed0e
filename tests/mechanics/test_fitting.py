"""Fits find the numbers that made the data."""

import dataclasses
import json

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.signal import lfilter
from tests.mechanics.pendulums import STEP, swing

from dhn.errors import UserError
from dhn.mechanics import MechanicalModel, fit_mechanics
from dhn.reports.physics import lines
from dhn.trajectories import Trajectories

GRAVITY, VISCOUS = 4.0, 0.05


def runs(positions, t, ids=None):
    """Trajectories of one angle each."""
    return Trajectories.from_list(
        positions, t, angles=(True,), **({} if ids is None else {"ids": ids})
    )


@pytest.fixture(scope="module")
def pendulum():
    """A pendulum with viscous friction, noise, lost rows and two outliers; truth and data."""
    t, q = swing(GRAVITY, VISCOUS, 0.0, 1.2, 800)
    rng = np.random.default_rng(0)
    y = q + rng.normal(0, 0.005, q.shape)
    y[rng.random(len(y)) < 0.1] = np.nan
    y[100], y[200] = y[100] + 0.5, y[200] - 0.5
    return q, runs([y], t)


@pytest.fixture(scope="module")
def fitted(pendulum):
    return fit_mechanics(pendulum[1][:, :560], pendulum[1][:, 560:700], groups=())


def term(model: MechanicalModel, kind: str, name: str, coordinate: int = 0) -> dict[str, float]:
    found = model.describe()["systems"][0][kind]
    return next(x for x in found if x["term"] == name and x["coordinate"] == coordinate)


def test_frequency_and_damping_are_found_within_their_errors(fitted):
    for kind, name, truth in (("potential", "sine", GRAVITY), ("friction", "viscous", VISCOUS)):
        found = term(fitted, kind, name)
        assert abs(found["value"] - truth) < 3 * found["error"]
        assert found["error"] < 0.1 * truth
    system = fitted.describe()["systems"][0]
    assert system["frequencies"] == [pytest.approx(np.sqrt(GRAVITY) / 2 / np.pi, rel=0.005)]
    assert system["noise"][0]["white"] == pytest.approx(0.005, rel=0.15)
    assert fitted.gated == 2


def test_a_forecast_follows_the_truth_and_its_band_holds_it(pendulum, fitted):
    truth, data = pendulum
    found = fitted.forecast(data[:, 700:732], 32)
    np.testing.assert_allclose(found.mean[0], truth[732:764], atol=0.01)
    times = data.t[731] + np.array([0.02, 0.05, 0.33, 1.6])  # uneven
    other = fitted.forecast(data[:, 700:732], times=times)
    np.testing.assert_allclose(other.mean[0, [1, 3]], found.mean[0, [0, 31]], atol=1e-6)
    low, high = found.bands[0.9]
    assert (low < truth[732:764]).mean() > 0.8 and (truth[732:764] < high).mean() > 0.8


def test_smoothing_removes_noise_and_fills_gaps(pendulum, fitted):
    truth, data = pendulum
    found = fitted.smooth(data)
    assert np.isfinite(found.q[0]).all()
    error = found.q[0] - truth
    assert np.sqrt((error**2).mean()) < 0.0025  # half the noise
    lost = ~np.isfinite(data.q[0, :, 0])
    assert np.sqrt((error[lost] ** 2).mean()) < 0.0025
    assert np.sqrt((found.q_sd[0] ** 2).mean()) == pytest.approx(
        np.sqrt((error**2).mean()), rel=0.6
    )
    energy = found.energy[0]
    assert energy[-50:].mean() < energy[:50].mean()


def test_a_slow_error_whose_time_ends_at_its_bound_is_printed(fitted):
    place = fitted.mechanics.layout.slices
    errors = fitted.standard_errors.copy()
    errors[:, place["log_slow"]], errors[:, place["log_slow_time"]] = 0.1, 0.0
    physics = dataclasses.replace(fitted, standard_errors=errors).describe()
    assert any("a slow error of" in x for x in lines(physics))
    assert not any("a slow error of" in x for x in lines(fitted.describe()))


def test_of_dense_rows_a_fit_uses_some_and_a_forecast_all():
    t, q = swing(GRAVITY, VISCOUS, 0.0, 1.2, 8000, step=0.004)
    y = q + np.random.default_rng(0).normal(0, 0.003, q.shape)
    data = runs([y], t)
    model = fit_mechanics(data[:, :6000], data[:, 6000:7000], groups=())
    stride = model.mechanics.scale.stride
    assert stride > 10 and model.measured == -(-6000 // stride)
    found = term(model, "potential", "sine")
    assert abs(found["value"] - GRAVITY) < 3 * found["error"] < 0.03 * GRAVITY
    forecast = model.forecast(data[:, 6700:7000], 800)
    assert forecast.mean.shape == (1, 800, 1)
    np.testing.assert_allclose(forecast.mean[0], q[7000:7800], atol=0.01)


@pytest.mark.slow
def test_a_nonlinear_spring_is_found_exactly_and_needs_no_rest():
    def slope(_, x):
        return [x[1], -4 * x[0] - 6 * x[0] ** 3 - 0.06 * x[1]]

    t = np.arange(1700) / 50
    x = solve_ivp(slope, (0, t[-1]), [1.5, 0.0], t_eval=t, rtol=1e-9, atol=1e-10).y[0]
    y = (5 + x + np.random.default_rng(0).normal(0, 0.004, len(t)))[:, None]
    data = Trajectories.from_list([y], t, angles=(False,))
    model = fit_mechanics(data[:, :1300], data[:, 1300:])
    assert model.groups == ("nonlinear spring",)
    assert term(model, "potential", "cube")["value"] == pytest.approx(6, rel=0.01)
    found = model.describe()["systems"][0]
    stiffness = next(x for x in found["potential"] if x["term"] == "stiffness")
    assert stiffness["value"] == pytest.approx(4, rel=0.01)
    assert found["friction"][0]["value"] == pytest.approx(0.06, rel=0.02)
    assert found["origin"] == [pytest.approx(5, abs=0.1)]
    assert any("count from their mean: q from " in x for x in lines(model.describe()))


def test_a_saved_model_is_the_same(fitted, pendulum):
    metadata = json.loads(json.dumps(fitted.metadata()))
    again = MechanicalModel.from_arrays(fitted.to_arrays(), metadata)
    observed = pendulum[1][:, 700:732]
    np.testing.assert_array_equal(
        again.forecast(observed, 5).mean, fitted.forecast(observed, 5).mean
    )
    assert again.describe() == fitted.describe()
    json.dumps(again.describe())
    with pytest.raises(UserError, match=r"format 4 was expected; got 0\. Fit it again"):
        MechanicalModel.from_arrays(fitted.to_arrays(), metadata | {"format": 0})


def test_mistakes_are_explained(fitted, pendulum):
    data = pendulum[1]
    with pytest.raises(UserError, match="needs either steps or times"):
        fitted.forecast(data)
    with pytest.raises(UserError, match="must increase and lie after"):
        fitted.forecast(data[:, :40], times=np.array([1.0]))
    with pytest.raises(UserError, match="1 coordinates with angles"):
        fitted.forecast(data.replace(angles=(False,)), 5)
    with pytest.raises(UserError, match="at least 16 measured values"):
        fit_mechanics(data[:, :12])
    with pytest.raises(UserError, match="there is no group 'springs'"):
        fit_mechanics(data, groups=("springs",))
    with pytest.raises(UserError, match='systems must be "one", "each" or None; got \'two\''):
        fit_mechanics(data, systems="two")


def test_uneven_times_are_taken_as_they_are(fitted):
    data, t, y = uneven()
    found = fitted.forecast(data[:, :60], times=t[60:80])
    np.testing.assert_allclose(found.mean[0], y[60:80], atol=0.025)


def uneven():
    """Jitter of a third of a step and two thirds of the rows: data, times and readings."""
    rng = np.random.default_rng(5)
    t = np.arange(300) * STEP + rng.uniform(0, STEP / 3, 300)
    fine, q = swing(GRAVITY, VISCOUS, 0.0, 0.9, 3200, STEP / 10)
    y = np.interp(t, fine, q[:, 0])[:, None] + rng.normal(0, 0.005, (300, 1))
    keep = np.sort(rng.choice(300, 200, replace=False))
    data = runs([y[keep]], [t[keep]])
    return data, t[keep], y[keep]


@pytest.mark.slow
def test_a_fit_to_uneven_times():
    data = uneven()[0]
    model = fit_mechanics(data, groups=())
    assert term(model, "potential", "sine")["value"] == pytest.approx(GRAVITY, rel=0.01)


@pytest.mark.slow
def test_dry_friction_is_found_beside_a_slow_sensor_error():
    t, q = swing(GRAVITY, 0.02, 0.06, 1.3, 700)
    rng = np.random.default_rng(1)
    keep = np.exp(-STEP / 1.0)
    slow = lfilter([np.sqrt(1 - keep**2)], [1, -keep], rng.normal(0, 0.01, len(t)))
    data = runs([q + slow[:, None] + rng.normal(0, 0.003, q.shape)], t)
    model = fit_mechanics(data[:, :560], data[:, 560:], groups=("slow error", "dry friction"))
    assert set(model.groups) == {"slow error", "dry friction"}
    assert term(model, "friction", "dry")["value"] == pytest.approx(0.06, rel=0.1)
    noise = model.describe()["systems"][0]["noise"][0]
    assert noise["slow"] == pytest.approx(0.01, rel=0.4)


MASSES, LENGTHS = (1.0, 0.7), (1.2, 0.9)


def chain(start, count, step):
    """Positions of a double pendulum without friction, by SciPy."""
    (m1, m2), (l1, l2) = MASSES, LENGTHS

    def slope(_, x):
        a, b, v, w = x
        c, s = np.cos(a - b), np.sin(a - b)
        mass = [[(m1 + m2) * l1**2, m2 * l1 * l2 * c], [m2 * l1 * l2 * c, m2 * l2**2]]
        force = [
            -m2 * l1 * l2 * s * w**2 - (m1 + m2) * 9.81 * l1 * np.sin(a),
            m2 * l1 * l2 * s * v**2 - m2 * 9.81 * l2 * np.sin(b),
        ]
        return [v, w, *np.linalg.solve(mass, force)]

    t = np.arange(count) * step
    x = solve_ivp(slope, (0, t[-1]), [*start, 0, 0], t_eval=t, rtol=1e-9, atol=1e-10).y
    return t, x[:2].T


@pytest.fixture(scope="module")
def double():
    """Three runs of a double pendulum with noise."""
    rng, found = np.random.default_rng(0), []
    for start in ((1.5, 0.4), (0.9, -0.8), (1.2, 1.6)):
        t, q = chain(start, 260, 0.05)
        found.append(q + rng.normal(0, 0.003, q.shape))
    return Trajectories.from_list(found, t, angles=(True, True))


@pytest.mark.slow
def test_masses_and_lengths_of_a_double_pendulum_and_lost_frames(double):
    rng = np.random.default_rng(1)
    gone = rng.random(double.q.shape[:2]) < 0.2
    lost = double.replace(q=np.where(gone[..., None], np.nan, double.q), known=~gone)
    errors = []
    for data in (double, lost):
        model = fit_mechanics(data[:, :200], systems="one", groups=())
        system = model.describe()["systems"][0]
        mass = {(x["i"], x["j"]): x["value"] for x in system["mass"]}
        length = 9.81 / term(model, "potential", "sine")["value"]
        assert length == pytest.approx(1.2, rel=0.02)
        assert mass[1, 1] / mass[1, 0] * length == pytest.approx(0.9, rel=0.02)
        assert mass[1, 0] ** 2 / mass[1, 1] == pytest.approx(0.7 / 1.7, rel=0.02)
        found = model.forecast(data[:, 200:232], 20)
        errors.append(np.sqrt(((found.mean - double.q[:, 232:252]) ** 2).mean()))
    assert errors[1] < 1.5 * errors[0]


@pytest.mark.slow
def test_a_family_of_five_lengths_is_as_good_as_five_models():
    rng = np.random.default_rng(2)
    positions, names = [], [f"length{k}" for k in range(5)]
    for gravity in (2.0, 3.0, 4.5, 6.5, 9.0):
        t, q = swing(gravity, 0.03, 0.0, 0.8, 400, 0.1)
        positions.append(q + rng.normal(0, 0.003, q.shape))
    data = runs(positions, t, names)
    train, validation, test = data[:, :280], data[:, 280:340], data[:, 340:]
    together = fit_mechanics(train, validation, groups=())
    assert together.systems == tuple(names)

    def error(model, rows):
        found = model.forecast(test[rows, :32], 20).mean
        return np.sqrt(((found - test.q[rows, 32:52]) ** 2).mean())

    single = [error(fit_mechanics(train[k], validation[k], groups=()), [k]) for k in range(5)]
    assert error(together, slice(None)) < 1.3 * np.sqrt(np.mean(np.square(single)))
    # A run without a name is recognised by its motion.
    stranger = test[:, :32].replace(ids=("a", "b", "c", "d", "e"))
    assert together.systems_of(stranger).tolist() == [0, 1, 2, 3, 4]
