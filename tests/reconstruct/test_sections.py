"""Sections tell a trajectory beside a thin tube of training trajectories from one inside it."""

import numpy as np
import pytest

from dhn.reconstruct.sections import ENOUGH, SPACING, Sections

RADIUS = 0.01


def rotations(starts):
    """Harmonic oscillators from these states (n, 2): circles, 60 states."""
    angle = 0.1 * np.arange(60)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return np.einsum("ijt,nj->nti", turn, np.asarray(starts))


def near(centre, count, seed, radius=RADIUS):
    rng = np.random.default_rng(seed)
    return np.asarray(centre) + rng.uniform(-radius, radius, (count, 2))


@pytest.fixture(scope="module")
def sections():
    return Sections.make(rotations(near([1.0, 0.0], 400, 0)))


def outside(sections, states, noise=0.0):
    found = sections.distance(states, np.full(states.shape[:2], noise))
    return found > 1.1 * sections.reach


def test_a_start_beside_the_tube_is_outside(sections):
    """The range of every coordinate, -1 to 1, contains these starts."""
    assert not outside(sections, rotations(near([1.0, 0.0], 200, 1))).any()
    assert outside(sections, rotations(near([1.0 - 5 * RADIUS, 0.0], 200, 2))).all()


def test_a_later_stretch_of_the_same_orbits_is_inside(sections):
    states = rotations(near([1.0, 0.0], 200, 3))
    for first in (5, 20, 33):
        assert outside(sections, states[:, first : first + 2 * SPACING]).mean() <= 0.02


def test_uncertain_states_are_not_called_outside(sections):
    states = rotations(near([1.0 - 5 * RADIUS, 0.0], 50, 4))
    assert not outside(sections, states, noise=5 * RADIUS).any()


def test_wide_starts_make_sections_that_contain_all_between():
    wide = Sections.make(rotations(near([0.0, 0.0], 400, 5, radius=1.0)))
    assert not outside(wide, rotations(near([0.0, 0.0], 200, 6, radius=1.0))).any()


def test_few_trajectories_or_states_decide_nothing(sections):
    few = Sections.make(rotations(near([1.0, 0.0], 2 * ENOUGH - 1, 7)))
    assert len(few.mean) == 0
    far = rotations(near([3.0, 0.0], 5, 8))
    assert not outside(few, far).any()
    assert not outside(sections, far[:, : SPACING - 1]).any()


def test_unknown_states_leave_their_sections_out():
    states = rotations(near([1.0, 0.0], 100, 9))
    states[:95, 2 * SPACING] = np.nan
    made = Sections.make(states)
    assert len(made.mean) == -(-60 // SPACING) - 1 and np.isfinite(made.axes).all()
    assert outside(made, rotations(near([1.0 - 5 * RADIUS, 0.0], 20, 10))).all()


@pytest.mark.parametrize("lost", [slice(3, None, 7), slice(SPACING - 1, None)])
def test_without_a_complete_stretch_there_are_no_sections(lost):
    states = rotations(near([1.0, 0.0], 100, 11))
    states[:, lost] = np.nan
    assert not outside(Sections.make(states), rotations(near([3.0, 0.0], 5, 12))).any()
