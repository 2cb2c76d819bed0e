import time

import numpy as np
import pytest
from small import problem, recipe

from dhn.training import pace as pace_module
from dhn.training.fit import fit
from dhn.training.pace import Chunks, Plan


def test_chunks_approach_the_wanted_time():
    chunks = Chunks(1, seconds=1.0)
    lengths = []
    for _ in range(6):
        steps = chunks.length(10**6)
        chunks.took(steps, 0.01 * steps)
        lengths.append(steps)
    assert lengths == [1, 8, 64, 100, 100, 100]
    assert chunks.length(30) == 30
    chunks.took(100, 1000.0)
    assert chunks.length(10**6) == 1


def follow(plan: Plan, speed: float, start: float = 0.0) -> float:
    """Seconds a run takes at this speed if it follows the plan."""
    step, now = 0, start
    while step < plan.total_steps:
        steps = min(int(speed), plan.total_steps - step)
        step, now = step + steps, now + steps / speed
        plan.compare(step, now, 0.0)
    return now


def test_a_steady_plan_is_kept():
    plan = Plan(1000, 100.0)
    assert follow(plan, 10.5) == pytest.approx(1000 / 10.5)
    assert plan.changes == [(0, 1000)]


@pytest.mark.parametrize("speed", [4.0, 7.0, 14.0, 25.0])
def test_a_changed_speed_still_ends_in_time(speed):
    plan = Plan(1000, 100.0)
    seconds = follow(plan, speed)
    assert 80 < seconds < 110
    assert len(plan.changes) > 1 and plan.changes[-1][1] == plan.total_steps


def test_a_fixed_number_of_steps_is_never_changed():
    plan = Plan(1000, None)
    follow(plan, 1.0)
    assert plan.changes == [(0, 1000)]


def test_steps_that_no_counter_holds_are_not_planned():
    plan = Plan(10**20, 1e9)
    assert plan.total_steps == 2**31 - 1
    plan.compare(1, 1.0, 0.0)
    plan.compare(10**9, 3e8, 0.0)
    assert plan.total_steps == 2**31 - 1


def test_a_resumed_plan_does_not_lengthen():
    plan = Plan(5, 100.0, [[0, 1000]])
    assert plan.total_steps == 1000
    for step, elapsed in ((300, 30.0), (400, 35.0), (600, 55.0)):
        plan.compare(step, elapsed, 0.0)
    assert plan.changes == [(0, 1000)]


def test_budget_becomes_steps_and_the_same_steps_the_same_weights(monkeypatch):
    # The machine's mood must not matter here: keep the first plan.
    monkeypatch.setattr(pace_module, "CHECKS", ())
    fit(*problem(), recipe(), progress=False)  # so that compilation does not eat the budget
    started = time.monotonic()
    first = fit(*problem(), recipe(), budget=4.0, progress=False)
    assert time.monotonic() - started < 15
    assert first.steps > 40
    again = fit(*problem(), recipe(steps=first.steps), progress=False)
    np.testing.assert_array_equal(first.codes, again.codes)


def test_a_known_speed_is_not_measured_again(monkeypatch):
    def refuse(*_):
        raise AssertionError("measured")

    monkeypatch.setattr("dhn.training.session.measure_speed", refuse)
    with pytest.raises(AssertionError, match="measured"):
        fit(*problem(), recipe(), budget=2.0, progress=False)
    assert fit(*problem(), recipe(), budget=2.0, progress=False, speed=50.0).steps >= 1
