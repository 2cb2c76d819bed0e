"""Settings of other papers: the data are what the descriptions say; rivals find exact maps."""

import numpy as np
import pytest

import dhn
from dhn.errors import UserError
from dhn.evaluation.metrics import energy
from dhn.reproduction.peers.experiment import summary
from dhn.reproduction.peers.rivals import RIVALS, fit_rival
from dhn.reproduction.peers.settings import SETTINGS, absolute_errors, circular_starts
from dhn.systems import get_system


@pytest.fixture(scope="module")
def tasks():
    return {name: SETTINGS[name].make(0) for name in ("ghnn_pendulum", "hnn_spring")}


def test_a_quarter_of_each_period_is_learned_from(tasks):
    """The last known state of a run is the first one beyond the lowest point."""
    train = tasks["ghnn_pendulum"].train
    for q, known in zip(train.q[:, :, 0], train.known, strict=True):
        signs = np.sign(q[known])
        assert np.all(signs[:-1] == signs[0])
        assert signs[-1] == -signs[0]


def test_the_truth_has_no_error_and_a_whole_turn_does_not_count(tasks):
    task = tasks["ghnn_pendulum"]
    truth = dhn.simulate(
        "single_pendulum", 50, params={"m": 1.0, "l": 1.0, "g": 1.0},
        initial={"theta": task.start.q[:, 0, 0]}, time_step=0.1, steps=task.steps,
    )  # fmt: skip
    turned = truth.replace(q=truth.q + 2 * np.pi)
    for found in (truth, turned):
        for errors in task.score(found).values():
            assert np.all(errors < 1e-9)
    late = truth.replace(q=np.roll(truth.q, 1, axis=1))
    assert np.median(task.score(late)["T/4"]) > 1e-2


def test_the_period_ends_where_the_run_began(tasks):
    """After one period the state is the first one again, so that persistence errs least there."""
    task = tasks["ghnn_pendulum"]
    still = fit_rival("persistence", task.train)(task.start, task.steps)
    errors = task.score(still)
    assert np.median(errors["T"]) < 0.1 * np.median(errors["T/4"])


def test_energies_of_the_spring(tasks):
    task = tasks["hnn_spring"]
    assert task.train.noise is None
    assert task.steps * task.train.time_step == pytest.approx(20, abs=0.11)
    start = energy(task.start)
    assert start is not None
    assert np.allclose(start[:, 0], (task.start.q**2 + task.start.p**2)[:, 0, 0])


def test_three_bodies_start_on_a_circle_around_their_centre():
    starts = circular_starts(5000, np.random.default_rng(0), common=True)
    names = get_system("three_body").coordinates
    place = np.stack([starts[name] for name in names], axis=-1).reshape(-1, 3, 2)
    assert np.allclose(place.mean(1), 0, atol=1e-12)
    radius = np.linalg.norm(place, axis=-1)
    assert np.allclose(radius, radius[:, :1])
    assert radius.min() >= 0.9 and radius.max() <= 1.2


@pytest.mark.parametrize("name", ["dmd", "kernel", "parrot"])
def test_rivals_learn_the_oscillator(name):
    """A linear map of one step is exact; the others come near it."""
    data = dhn.simulate("mass_spring", 40, seed=0, params={"k": 1.0}, steps=60, time_step=0.1)
    found = fit_rival(name, data[:30])(data[30:, :1], 60)
    error = absolute_errors(found, data[30:])
    limit = {"dmd": 1e-8, "kernel": 0.05, "parrot": 0.5}[name]
    assert error.max() < limit
    assert found.states == 61


def test_pysindy_finds_the_oscillator():
    pytest.importorskip("pysindy")
    data = dhn.simulate("mass_spring", 20, seed=0, params={"k": 1.0}, steps=60, time_step=0.1)
    found = fit_rival("sindy", data[:15])(data[15:, :1], 60)
    assert absolute_errors(found, data[15:]).max() < 1e-2


def test_an_unknown_rival_is_named():
    data = dhn.simulate("mass_spring", 2, steps=4)
    with pytest.raises(UserError, match=f"unknown rival 'oracle'.*{next(iter(RIVALS))}"):
        fit_rival("oracle", data)


def test_a_run_that_left_all_bounds_counts():
    found = summary({"t": np.array([0.1, np.nan, 0.2])})
    assert found["t"] == np.inf
    assert found["t, median run"] == 0.2
    assert found["t, diverged"] == pytest.approx(1 / 3)
