"""Data that differ from those which mechanics were made with, and what is said about them."""

import dataclasses

import numpy as np
import pytest
from tests.mechanics.pendulums import STEP, swing

from dhn.mechanics import fit_mechanics
from dhn.mechanics.rows import Run, Scale, stacked
from dhn.reports.physics import lines
from dhn.trajectories import Trajectories


@pytest.fixture(scope="module")
def family():
    """Two pendulums of different length, one filmed from nearby, one from far away."""
    rng, found = np.random.default_rng(0), []
    for gravity, noise in ((4.0, 0.002), (9.0, 0.012)):
        t, q = swing(gravity, 0.05, 0.0, 0.9, 500)
        found.append(q + rng.normal(0, noise, q.shape))
    data = Trajectories.from_list(found, t, angles=(True,), ids=("near", "far"))
    return fit_mechanics(data[:, :400], data[:, 400:], groups=())


def test_runs_of_different_systems_have_noise_of_their_own(family):
    assert family.systems == ("near", "far")
    white = [x["noise"][0]["white"] for x in family.describe()["systems"]]
    assert white == [pytest.approx(0.002, rel=0.2), pytest.approx(0.012, rel=0.2)]


@pytest.mark.parametrize("measured", [(0, 1, 2, 3), (0, 6, 12), (0, 2, 5, 6, 7, 8), (0, 9)])
def test_the_first_state_is_no_surer_than_the_measurements_allow(measured):
    """Else the filter takes what follows for outliers: a start is off by what it says, at most."""
    scale = Scale(1.0, np.zeros(1), np.ones(1), np.full(1, np.sqrt(0.5)), 0.1)
    seen = np.isin(np.arange(20), measured)[:, None] * 1.0
    for phase in np.linspace(0, 2 * np.pi, 12):
        t = phase + 0.1 * np.arange(20)
        run = Run(0, t, np.where(seen > 0, np.sin(t)[:, None], 0.0), seen, np.arange(20))
        rows = stacked([run], scale, (True,))
        off = rows.mean[0, :2] - [np.sin(phase), np.cos(phase)]
        assert (np.abs(off) < 2 * rows.spread[0]).all()


def test_the_length_of_a_pendulum_is_printed(family):
    rods = [x for x in lines(family.describe()) if "rod of" in x]
    found = [float(x.split("rod of ")[1].split(" m")[0]) for x in rods]
    assert found == [pytest.approx(9.81 / 4.0, rel=0.01), pytest.approx(9.81 / 9.0, rel=0.01)]
    assert not any(x.startswith("driven") for x in lines(family.describe()))


def test_a_sensor_is_printed_as_what_it_reads(family):
    mechanics, place = family.mechanics, family.mechanics.layout.slices["even2"]
    theta, errors = mechanics.theta.copy(), family.standard_errors.copy()
    theta[:, place], errors[:, place] = 0.02, 0.001
    bent = dataclasses.replace(
        family, mechanics=dataclasses.replace(mechanics, theta=theta), standard_errors=errors
    )
    expected = "sensor: reading of q = q + (0.02 ± 0.001) (cos(2 q) - 1)"
    assert expected in lines(bent.describe())


def test_a_motion_that_is_driven_from_outside_is_said_to_be():
    rng, count, parts = np.random.default_rng(0), 900, 20
    x, v, found = 0.0, 0.0, []
    for force in rng.normal(0, 1, count):  # a new force every step
        for _ in range(parts):
            v += STEP / parts * (-4 * x - 0.4 * v + 3 * force)
            x += STEP / parts * v
        found.append([x])
    data = Trajectories.from_list([np.array(found)], np.arange(count) * STEP)
    physics = fit_mechanics(data[:, :600], data[:, 600:], groups=()).describe()
    said = [x for x in lines(physics) if x.startswith("driven: ")]
    assert len(said) == 1 and "no driving force" in said[0]
    assert physics["systems"][0]["frequencies"] == [pytest.approx(1 / np.pi, rel=0.05)]


@pytest.mark.slow
def test_dry_friction_is_found_beneath_an_encoders_steps():
    """Errors of rounding hide from forecasts what the likelihood of whole runs tells."""
    rng, found = np.random.default_rng(0), []
    for start in (0.9, -1.6, 2.0, -1.1):
        t, q = swing(74.0, 0.15, 0.06, start, 860, 0.007)
        found.append(np.round(q / 0.0063) * 0.0063 + rng.normal(0, 1e-5, q.shape))
    data = Trajectories.from_list(found, t, angles=(True,), ids=("a", "b", "c", "d"))
    model = fit_mechanics(data[:, :620], data[:, 620:], groups=("dry friction",))
    friction = {x["term"]: x["value"] for x in model.describe()["systems"][0]["friction"]}
    assert friction["dry"] == pytest.approx(0.06, rel=0.15)
    assert friction["viscous"] == pytest.approx(0.15, rel=0.1)
