"""How many steps to take at once, and how many a wall-clock budget allows."""

import time
from collections.abc import Callable
from typing import Any, final

import jax
import jax.numpy as jnp

from dhn.models.config import MOST
from dhn.training.devices import replicated
from dhn.training.step import Run, StepLog, TrainState, run_steps

CHUNK_SECONDS = 1.5
"""Long enough to hide the return to Python, short enough to react to a signal."""
GROWTH = 8  # times longer at most than the chunk before
MARGIN = 0.97
"""Share of the time left that is planned with."""
CHECKS = (0.2, 0.5, 0.75)
"""Shares of the budget after which the plan is compared with the clock."""
TOLERANCE = 0.15  # of the steps left, before the plan is changed
CLOCKS: dict[str, Callable[[], float]] = {
    "wall": time.monotonic,
    "processor": time.process_time,
}


def take_steps(run: Run, state: TrainState, steps: int) -> tuple[TrainState, StepLog, float]:
    """`steps` steps and the seconds they took. Python stays awake meanwhile, to hear signals."""
    clock = CLOCKS[run.config.clock]
    started = clock()
    state, log = run_steps(run, state, replicated(run.mesh, jnp.asarray(steps, jnp.int32)))
    while not _ready(log.finite):
        time.sleep(0.002)
    jax.block_until_ready(state)
    return state, log, clock() - started


def _ready(array: Any) -> bool:
    return array.is_ready()


@final
class Chunks:
    """Lengths of chunks, each sized by the speed of the one before."""

    def __init__(self, first: int = 1, seconds: float = CHUNK_SECONDS):
        self._next, self._seconds = first, seconds

    def length(self, limit: int) -> int:
        return max(1, min(self._next, limit))

    def took(self, steps: int, seconds: float) -> None:
        fitting = int(self._seconds * steps / max(seconds, 1e-6))
        self._next = max(1, min(fitting, GROWTH * steps))


def measure_speed(
    run: Run, state: TrainState, seconds: float, agree: Callable[[float], float]
) -> tuple[float, int]:
    """Steps a second, and a fitting chunk length, from about `seconds` of work on a copy.

    **Arguments**: `agree` makes one of the times that several processes have measured.
    """
    state = jax.tree.map(jnp.copy, state)
    chunks, spent, speed = Chunks(), 0.0, 0.0
    while spent < seconds:
        steps = chunks.length(1 << 30)
        state, _, took = take_steps(run, state, steps)
        took = agree(took)
        chunks.took(steps, took)
        spent, speed = spent + took, steps / max(took, 1e-6)
    return speed, chunks.length(1 << 30)


@final
class Plan:
    """The length of the schedule, set once, and set again only if the machine's speed changes.

    Without a budget the length is fixed. With one, it is compared with the clock three times. If
    the run would end much too late it is shortened, so that the learning rate still comes to
    rest in time; if much too early, it is lengthened, but only at the first comparison, while
    the rate is still near its peak. Every change is recorded.
    """

    def __init__(self, total_steps: int, budget: float | None, changes: Any = None):
        self.budget = budget
        # Steps are counted in 32 bits on the device.
        self.changes: list[tuple[int, int]] = [(0, min(total_steps, MOST))]
        if changes:
            self.changes = [(int(step), int(total)) for step, total in changes]
        self._since: tuple[int, float] | None = None
        self._check = 0

    @property
    def total_steps(self) -> int:
        return self.changes[-1][1]

    def compare(self, step: int, elapsed: float, reserve: float) -> bool:
        """After a chunk, `elapsed` seconds into the run; True if the plan has changed."""
        if self._since is None:
            self._since = (step, elapsed)
            # A resumed run has some of its checks behind it.
            while self._due(elapsed):
                self._check += 1
            return False
        if self.budget is None or not self._due(elapsed):
            return False
        first, self._check = self._check == 0, self._check + 1
        steps, seconds = step - self._since[0], elapsed - self._since[1]
        self._since = (step, elapsed)
        if steps <= 0 or seconds <= 0:
            return False
        left = max(self.budget - elapsed - reserve, 0.0) * MARGIN
        possible = max(step + int(left * steps / seconds), step + 1)
        late = self.total_steps - step > (1 + TOLERANCE) * (possible - step)
        early = first and possible - step > (1 + TOLERANCE) * (self.total_steps - step)
        if late or early:
            self.changes.append((step, min(possible, MOST)))
        return late or early

    def _due(self, elapsed: float) -> bool:
        return (
            self.budget is not None
            and self._check < len(CHECKS)
            and elapsed >= CHECKS[self._check] * self.budget
        )
