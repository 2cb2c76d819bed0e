"""What a forecast is held against, and what is said about it."""

import dataclasses
import re

import numpy as np
import pytest

import dhn
from dhn.evaluation.extrapolation import persistence
from dhn.evaluation.metrics import Metrics, compare
from dhn.evaluation.rivals import lead, rivals
from dhn.evaluation.trial import Trial
from dhn.reports.run_figures import energies
from dhn.reports.verdict import sentences
from dhn.trajectories.container import Trajectories
from dhn.trajectories.period import oscillation_period

STEP = 0.1


def metrics(*errors: float) -> Metrics:
    values = np.array(errors)
    steps, compared = np.arange(4, 4 + len(values)), np.ones(len(values), int)
    return Metrics(steps, values, values, values[:1], None, None, None, compared)


@pytest.fixture(scope="module")
def springs():
    """Frequency 2 rad/s, so that the period is pi; every state obeys one linear map."""
    return dhn.simulate(
        "mass_spring",
        5,
        seed=0,
        params={"k": 4.0, "m": 1.0},
        initial={"x": (-1.0, 1.0)},
        times=np.arange(100) * STEP,
    )


@pytest.mark.parametrize(
    "own, other, worse",
    [
        ((1, 2, 3), (2, 3, 4), ()),
        ((1, 2, 3), (1, 2, 3), ((1, 3),)),
        ((1, 9, 9, 1), (2, 2, 2, 2), ((2, 3),)),
        ((9, 1, 9), (2, 2, 2), ((1, 1), (3, 3))),
        ((1, 1, 1), (2, np.nan, np.inf), ()),
        ((1, np.nan, 1), (2, 2, 2), ((2, 2),)),
    ],
)
def test_lead_lists_where_the_forecast_is_not_better(own, other, worse):
    found = lead(metrics(*map(float, own)), metrics(*map(float, other)))
    assert found.worse == worse
    assert found.steps == len(own)


@pytest.mark.parametrize("give_training", [False, True])
def test_the_linear_rival_is_exact_for_a_linear_system(springs, give_training):
    others = rivals(springs, 16, springs if give_training else None)
    assert [rival.name for rival in others] == ["persistence", "linear (DMD)"]
    assert others[1].metrics.mse_normalised.max() < 1e-8
    assert others[0].metrics.mse_normalised.max() > 0.1


def test_a_linear_rival_that_grows_without_bound_is_called_so():
    pendulums = dhn.simulate("single_pendulum", 10, seed=3)
    _, taught = rivals(pendulums, 16, pendulums)
    assert np.abs(taught.prediction.q).max() < 3 * np.abs(pendulums.q).max()
    assert "the training data" in taught.how and "without bound" not in taught.how
    _, alone = rivals(pendulums, 16)
    assert np.abs(alone.prediction.q).max() > 10
    assert "the observed states" in alone.how and "without bound" in alone.how


def test_rivals_forecast_from_a_gap_free_end_alone(springs):
    known = np.asarray(springs.known).copy()
    known[0, 13] = False
    broken = springs.replace(
        known=known,
        q=np.where(known[..., None], springs.q, np.nan),
        p=np.where(known[..., None], springs.p, np.nan),
    )
    for rival in rivals(broken, 16):
        assert np.isfinite(rival.prediction.q[:, 16:]).all()


def test_the_period_of_an_oscillator(springs):
    assert oscillation_period(springs) == pytest.approx(np.pi, rel=0.015)
    assert oscillation_period(springs[:, :20]) is None  # less than one period


def trial(truth: Trajectories, observe: int, prediction: Trajectories, **changes) -> Trial:
    made = Trial(
        truth=truth,
        observe=observe,
        prediction=prediction,
        metrics=compare(prediction, truth),
        others=rivals(truth, observe),
        poor=0,
        left_out=0,
        period=oscillation_period(truth),
        blocks=None,
    )
    return dataclasses.replace(made, **changes)


def test_a_perfect_forecast_is_praised(springs):
    perfect = springs.replace(known=np.tile(np.arange(100) < 16, (5, 1)))
    said = sentences(trial(springs, 16, perfect))
    assert re.search(r"for all 84 states ahead \(8.4 s, 2.6\d periods\)\.$", said[0])
    assert said[1].startswith("It beats persistence at all 84 states ahead (8.4 s, ")


def test_a_useless_forecast_is_called_so(springs):
    still = persistence(springs[:, :16], 84)
    said = sentences(trial(springs, 16, still, poor=2, left_out=3))
    assert said[1].startswith("It never beats persistence: use that instead")
    assert said[2].startswith("It never beats linear (DMD)")
    assert "2 of 5 observed trajectories badly" in said[3]
    assert said[4].startswith("3 trajectories are left out")


def test_a_mixed_forecast_is_told_where_it_fails(springs):
    perfect = springs.replace(known=np.tile(np.arange(100) < 16, (5, 1)))
    q = perfect.q.copy()
    q[:, 26:36] += 10.0
    base = trial(springs, 16, perfect.replace(q=q))
    said = sentences(dataclasses.replace(base, others=base.others[:1]))
    assert re.search(r"for 10 states ahead \(1 s, 0.3[12]\d* periods\), and grows beyond", said[0])
    assert said[1] == "It beats persistence except from 11 to 20 states ahead (1.1 to 2 s)."


def test_errors_are_in_standard_deviations_of_the_motion(springs):
    spread = springs.q.std()
    for share, first in (
        (0.09, "stays below 10% of the test motion's standard deviation for all"),
        (0.11, "Already the first forecast state is wrong by more than 10%"),
    ):
        off = springs.replace(
            q=springs.q + share * spread, known=np.tile(np.arange(100) < 16, (5, 1))
        )
        assert first in sentences(trial(springs, 16, off))[0]


def test_a_rival_that_wins_on_validation_is_named_first(springs):
    perfect = springs.replace(known=np.tile(np.arange(100) < 16, (5, 1)))
    base = trial(springs, 16, perfect)
    others = [dataclasses.replace(x, validation=0.5) for x in base.others]
    better = dataclasses.replace(base, others=others, validation=0.4)
    assert better.winner is None and not sentences(better)[0].startswith("Use")
    worse = dataclasses.replace(base, others=others, validation=0.6)
    assert worse.winner is others[0]
    said = sentences(worse)[0]
    assert said.startswith("Use persistence") and "part is 0.5, that of this model 0.6" in said


def test_best_and_worst_are_chosen_among_complete_windows(springs):
    known = np.ones(springs.known.shape, bool)
    known[0, 60:] = False  # the least error, but cut short
    truth = springs.replace(known=known, q=np.where(known[..., None], springs.q, np.nan))
    shift = np.arange(5)[:, None, None] * 0.01
    off = springs.replace(q=springs.q + shift, known=np.tile(np.arange(100) < 16, (5, 1)))
    found = dataclasses.replace(trial(springs, 16, off), truth=truth)
    assert found.rows == {"best": 1, "median": 3, "worst": 4}


@pytest.mark.parametrize("width, words", [(1e-9, "too narrow"), (10.0, "off")])
def test_wrong_bands_are_named(springs, width, words):
    noise = 0.01 * np.random.default_rng(0).standard_normal(springs.q.shape)
    levels = {0.05: -1.6, 0.25: -0.7, 0.5: 0.0, 0.75: 0.7, 0.95: 1.6}
    said = springs.q + noise
    forecast = springs.replace(
        q=said,
        known=np.tile(np.arange(100) < 16, (5, 1)),
        q_quantiles={level: said + width * z for level, z in levels.items()},
    )
    assert any(f"Its error bars are {words}" in x for x in sentences(trial(springs, 16, forecast)))
    honest = forecast.replace(q_quantiles={k: said + 0.01 * z for k, z in levels.items()})
    assert any("mean what they say" in x for x in sentences(trial(springs, 16, honest)))


def test_the_stand_in_for_the_energy_is_constant_for_an_oscillator(springs):
    three_periods = springs[:, :94]
    unnamed = three_periods.replace(system=None, params={}, units={})
    own, got, want = energies(unnamed, unnamed)
    assert not own
    np.testing.assert_array_equal(got, want)
    # var(q) and var(p) over whole periods have the ratio that makes the form the energy.
    swing = np.ptp(want, axis=1) / want.mean(1)
    assert swing.max() < 0.1
    assert energies(springs, springs)[0]
