"""The choice of groups: each is fitted by the likelihood and kept if forecasts gain by it."""

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Float, Int

from dhn.errors import UserError
from dhn.mechanics.history import with_history
from dhn.mechanics.layout import GROUPS, MOMENT, OWN_REST, REST, REST_WIDTH, WANDER, Layout
from dhn.mechanics.likelihood import Entries, Problem, Slope, likelihood
from dhn.mechanics.model import Stage
from dhn.mechanics.predicting import Mechanics
from dhn.mechanics.response import regressed
from dhn.mechanics.rest import count, offers
from dhn.mechanics.rows import Run, fitting_stretches, stacked
from dhn.mechanics.scoring import Damping, Scored, expected_gain, fit_scoring
from dhn.mechanics.start import noise_differs, start_from, started
from dhn.mechanics.windows import Windows, score, windows_of
from dhn.systems import System
from dhn.trajectories import Trajectories
from dhn.trajectories.segments import run_of

KEEP = 0.97
"""A group is kept if the validation error falls below this share: the simplest within 3 %."""
WORST = 0.9
"""A slow error that the likelihood asks for may cost so much at first; it is taken out again if
nothing added to it makes up for that."""
STRONG, KEEP_STRONG = 10.0, 0.99
"""Nats of training likelihood for each coefficient that a group gains, from which on it need not
gain 3 % on validation: noise of the measurements hides what a law of friction does to forecasts."""
EVIDENCE = 2.0
"""Nats of training likelihood that a group must gain for each of its coefficients, so that chance
on a short validation part keeps none."""
EXPECTED = 0.5
"""Share of that gain which the likelihood, taken as quadratic, must expect before a group is
fitted."""
DIFFERENT = 0.5
"""Runs are different systems from the start if coefficients of their own halve the error."""
HALF = np.pi
"""Half a period in scaled time."""
AFTER: dict[str, str] = {
    "sensor, second order": "sensor", "sensor, fourth order": "sensor",
    "Stribeck friction": "dry friction", "friction over the angle": "dry friction",
}  # fmt: skip
"""Groups that make sense only after another."""
OWN = ("params", "inertia", "stiffness", "sine", "cosine", "force", "viscous", "dry", "drag",
       "stribeck", "slant")  # fmt: skip
"""Coefficients that differ between systems of a family: lengths, masses, friction."""
OWN_NOISE = ("log_white", "log_slow")
"""Differ too where runs are different systems from the start, some much noisier: a pixel is a
smaller angle on a longer link. The noise of one sensor is better known from all runs together."""
TRIAL_ITERATIONS, LAST_ITERATIONS = 6, 20  # of a fit, at most
TRIAL_GAIN = 0.5
"""Nats; trials of groups end at a coarser gain than the last fit."""
REST_KEEP = 0.9
"""The learned rest has no meaning of its own and many weights, so it must gain more: 10 %."""
FLOOR = 1.5
"""Where forecasts err by less than so many times the sensor's own error, no rest is looked for."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Candidate:
    """A fitted choice of groups and its validation error."""

    groups: tuple[str, ...]
    each: bool
    scored: Scored
    error: float


@final
class Search:
    """The data in the filter's form, and the stages of the choice."""

    def __init__(
        self, train: Trajectories, validation: Trajectories, observe: int, deadline: float,
        progress: Callable[[str], None], system: System | None, params: Mapping[str, Any],
    ):  # fmt: skip
        self.deadline, self.progress = deadline, progress
        self.unit = train.units.get("t", "")
        self.layout, self.scale, self.start, self.runs = started(train, system, params)
        names = [run_of(x) for x in train.ids]
        self.names = tuple(dict.fromkeys(names))
        self.system = np.array([self.names.index(x) for x in names])
        self.stages: list[Stage] = []
        self.problems: dict[bool, Problem] = {}
        self.wandering = 0.0
        self.own_noise = False
        history = with_history(train, validation, observe)
        longest = int(history.lengths.max()) - observe
        if longest < 1:
            raise UserError(
                f"validation needs runs of more than {observe} states, the positions that a "
                f"forecast starts from; got {int(history.lengths.max())}."
            )
        self.observe = observe
        ahead = min(longest, int(np.ceil(4 * HALF / self.scale.step)))
        self.windows = windows_of(history, self.scale, ahead, observe)
        self.training = windows_of(train, self.scale, min(ahead, train.states - observe), observe)
        self.known = all(run_of(x) in self.names for x in self.windows.names)

    def problem(self, each: bool) -> Problem:
        """Stretches of the training data, with one system or a system for every run."""
        if each not in self.problems:
            scale = self.scale.coarse
            pieces = fitting_stretches(self.runs, scale)
            rows = stacked(pieces, scale, self.layout.angles)
            run = np.full(rows.step.shape[0], -1)
            run[: len(pieces)] = [self.system[x.source] if each else 0 for x in pieces]
            wide = np.log(10 * self.start.noise)
            self.problems[each] = Problem(
                self.layout, rows, run, self.start.width, scale.substeps, wide
            )
        return self.problems[each]

    @property
    def by_system(self) -> list[list[Run]]:
        """The runs of each system, if every name is one."""
        return [
            [x for x in self.runs if self.system[x.source] == k] for k in range(len(self.names))
        ]

    def own(self, each: bool) -> Bool[np.ndarray, " P"]:
        """Entries that differ between systems."""
        own = np.zeros(self.layout.size, bool)
        if not each:
            return own
        for name in (*OWN, *OWN_NOISE) if self.own_noise else OWN:
            own[self.layout.slices.get(name, slice(0))] = True
        return own

    def systems(self, each: bool, windows: Windows) -> Int[np.ndarray, " n"]:
        """Index of each window's system."""
        return np.array([self.names.index(run_of(x)) if each else 0 for x in windows.names])

    def fitted(
        self, theta: Float[np.ndarray, "R P"], groups: tuple[str, ...], each: bool, iterations: int,
        begun: Slope | None = None,
    ) -> Candidate:  # fmt: skip
        """Score from given coefficients on, and measure forecasts of the validation part."""
        scored = fit_scoring(
            self.problem(each), theta, self.active(groups), self.own(each), iterations=iterations,
            deadline=self.deadline, begun=begun,
            damping=Damping() if iterations == LAST_ITERATIONS else Damping(gain=TRIAL_GAIN),
        )  # fmt: skip
        return Candidate(groups, each, scored, self.error(self.layout, scored, each))

    def error(self, layout: Layout, scored: Scored, each: bool) -> float:
        """Error of forecasts of the validation part."""
        mechanics = Mechanics(layout, self.scale, scored.theta, self.start.width, self.wandering)
        return score(mechanics, self.windows, self.systems(each, self.windows), HALF)

    def first(self, systems: str | None) -> Candidate:
        """Viscous friction and white noise; one system for all runs or one for each.

        Where runs differ as the lengths of pendulums do, one system for all fails at once.
        """
        several = len(self.names) > 1 and (systems == "each" or (systems is None and self.known))
        self.own_noise = several and noise_differs(self.by_system, self.layout.dim)
        if several:
            each = self.fitted(self.each_start(), (), True, TRIAL_ITERATIONS)
            if systems == "each":
                self.note("a system for each run", each, None, True)
                return self.usable(each)
        one = self.fitted(self.start.theta[None], (), False, LAST_ITERATIONS)
        if not np.isfinite(one.error):
            self.progress("the likelihood leads astray; back to the regression it began with")
            one = self.fitted(self.start.theta[None], (), False, 0)
        self.note("viscous friction", one, None, True)
        if several and each.error < DIFFERENT * one.error:
            self.note("a system for each run", each, one.error, True)
            return each
        self.own_noise = False
        return self.usable(one)

    def apart(self, best: Candidate, systems: str | None) -> Candidate:
        """At last, coefficients of their own for every run, if validation gains by them."""
        if best.each or systems is not None or len(self.names) == 1 or not self.known:
            return best
        theta = np.repeat(best.scored.theta, len(self.names), axis=0)
        each = self.fitted(theta, best.groups, True, TRIAL_ITERATIONS)
        kept = self.evident(best, each) and bool(each.error < KEEP * best.error)
        self.note("a system for each run", each, best.error, kept)
        return each if kept else best

    def each_start(self) -> Float[np.ndarray, "R P"]:
        """A regression for every run, what they share from all."""
        scale = self.scale.coarse
        theta = np.stack([start_from(self.layout, x, scale).theta for x in self.by_system])
        shared = ~self.own(True)
        theta[:, shared] = self.start.theta[shared]
        return theta

    def usable(self, one: Candidate) -> Candidate:
        """A model whose forecasts are numbers, or a `UserError`."""
        if not np.isfinite(one.error):
            raise UserError(
                "the equations of motion could not be fitted: forecasts of the validation part "
                "diverge. Check which coordinates are angles, and the units of time."
            )
        return one

    def forward(self, best: Candidate, allowed: tuple[str, ...]) -> Candidate:
        """Add the group that gains most, as long as one gains 3 %.

        The slow error comes first where the training likelihood asks for it: without it, friction
        and sensor are hidden in process noise, and adding them one by one gains nothing.
        """
        open_ = [x for x in allowed if self.layout.group(x).any()]
        if "slow error" in open_ and time.monotonic() < self.deadline:
            open_.remove("slow error")
            slow = self.with_group(best, "slow error")
            kept = self.evident(best, slow) and bool(slow.error < best.error / WORST)
            self.note("slow error", slow, best.error, kept)
            best = self.settled(slow) if kept else best
        dropped: list[str] = []
        while open_ and time.monotonic() < self.deadline:
            possible = [x for x in open_ if AFTER.get(x, "") in ("", *best.groups)]
            found: dict[str, Candidate] = {}
            for name, begun in self.promising(best, possible):
                if time.monotonic() > self.deadline:
                    self.progress("the time is up; the remaining groups were not tried")
                    break
                found[name] = self.with_group(best, name, begun)
            gains = [x for x, one in found.items() if self.evident(best, one)]
            gains = [x for x in gains if self.earns(best, found[x])]
            name = min(gains, key=lambda x: found[x].error, default="")
            for other, one in found.items():
                self.note(other, one, best.error, other == name)
            if not name:  # what made things worse before may help beside what was added since
                open_, dropped = dropped, []
                continue
            worse = [x for x in found if x != name and not found[x].error < best.error]
            open_ = [x for x in open_ if x != name and x not in worse]
            dropped += worse
            best = self.settled(found[name])
            if not open_:
                open_, dropped = dropped, []
        return self.backward(best)

    def settled(self, best: Candidate) -> Candidate:
        """Fit on where a trial's iterations did not suffice.

        What is tried next would else get the credit for what convergence gains.
        """
        while best.scored.iterations == TRIAL_ITERATIONS and time.monotonic() < self.deadline:
            further = self.fitted(best.scored.theta, best.groups, best.each, TRIAL_ITERATIONS)
            if not further.error <= best.error / KEEP:
                break
            best = further
        return best

    def backward(self, best: Candidate) -> Candidate:
        """Take groups out again: of all models within 3 % of the best error, the simplest."""
        limit = best.error / KEEP
        for name in best.groups:
            if time.monotonic() > self.deadline or (len(best.groups) == 1 and name != "slow error"):
                break
            if any(AFTER.get(x) == name for x in best.groups):
                continue
            theta = best.scored.theta.copy()
            theta[:, self.layout.group(name)] = self.start.theta[self.layout.group(name)]
            rest = tuple(x for x in best.groups if x != name)
            one = self.fitted(theta, rest, best.each, TRIAL_ITERATIONS)
            if one.error <= limit and not self.earns(one, best):
                self.progress(f"{name}: error {one.error:.4g} without it; taken out again")
                best = one
        kept = best.groups
        self.stages = [
            dataclasses.replace(x, kept=x.kept and (x.name not in GROUPS or x.name in kept))
            for x in self.stages
        ]
        return best

    def evident(self, best: Candidate, one: Candidate) -> bool:
        """Whether the training data speak for the added coefficients, too."""
        added = one.scored.entries.size - best.scored.entries.size
        return bool(one.scored.value - best.scored.value > EVIDENCE * added)

    def earns(self, best: Candidate, one: Candidate) -> bool:
        """Whether forecasts of the validation part gain enough by the added coefficients."""
        added = max(one.scored.entries.size - best.scored.entries.size, 1)
        strong = one.scored.value - best.scored.value > STRONG * added
        return bool(one.error < (KEEP_STRONG if strong else KEEP) * best.error)

    def promising(self, best: Candidate, names: list[str]) -> list[tuple[str, Slope]]:
        """Groups by which the likelihood is expected to gain, with its derivatives; the others are
        noted and need no fit.

        One evaluation with the coefficients of all groups serves them all.
        """
        active = self.active(best.groups)
        names = [x for x in names if (self.layout.group(x) & ~active).any()]
        if not names:
            return []
        own, runs, theta = self.own(best.each), len(best.scored.theta), best.scored.theta
        whole = Entries.of(
            functools.reduce(np.logical_or, map(self.layout.group, names), active), own, runs
        )
        slope = likelihood(self.problem(best.each), theta, whole)
        now = expected_gain(
            self.layout, theta, best.scored.entries, slope.take(best.scored.entries.within(whole))
        )
        found = []
        for name in names:
            entries = Entries.of(active | self.layout.group(name), own, runs)
            begun = slope.take(entries.within(whole))
            added = entries.size - best.scored.entries.size
            gain = (expected_gain(self.layout, theta, entries, begun) - now) / added
            if gain > EXPECTED * EVIDENCE:
                found.append((name, begun))
            else:
                self.refuse(name, best)
        return found

    def with_group(self, best: Candidate, name: str, begun: Slope | None = None) -> Candidate:
        """A warm start with one more group."""
        theta, places = best.scored.theta.copy(), self.layout.slices
        if name == "slow error":
            theta[:, places["log_slow"]] = theta[:, places["log_white"]]
        return self.fitted(theta, (*best.groups, name), best.each, TRIAL_ITERATIONS, begun)

    def active(self, groups: tuple[str, ...]) -> Bool[np.ndarray, " P"]:
        """Entries that are fitted with these groups; the learned rest is regressed instead."""
        masks = [self.layout.group(x) for x in groups if x != REST]
        return functools.reduce(np.logical_or, masks, self.layout.base())

    def rest(self, best: Candidate, own: bool = False) -> Candidate:
        """A force without a name for what the formulas leave over, if it gains 10 %.

        Where runs are different systems, at last one of its own for each.
        """
        theta, places = best.scored.theta, self.layout.slices
        sensor = [np.exp(2 * theta[:, places[x]]) for x in ("log_white", "log_slow")]
        floor = float(np.sqrt(np.mean(sum(sensor))))
        late = time.monotonic() > self.deadline
        near = best.error < FLOOR * floor or (own and not best.each)
        if not offers(self.layout.dim) or near or late:
            return best
        # Runs differ by less than what all leave over.
        name, width = (OWN_REST, 0.1 * REST_WIDTH) if own else (REST, REST_WIDTH)
        wide = dataclasses.replace(self.layout, rest=count(self.layout.angles))
        found = regressed(self.problem(best.each), theta, wide, width, own)
        if found.gain < EXPECTED * EVIDENCE * found.effective:
            self.refuse(name, best)
            return best
        begun = theta[:, wide.slices["rest"]] if REST in best.groups else 0.0
        whole = np.append(theta[:, : wide.slices["rest"].start], begun + found.weights, axis=1)
        scored = dataclasses.replace(best.scored, theta=whole, value=best.scored.value + found.gain)
        groups = (*(x for x in best.groups if x != REST), REST)
        one = Candidate(groups, best.each, scored, self.error(wide, scored, best.each))
        kept = bool(one.error < REST_KEEP * best.error)
        self.note(name, one, best.error, kept)
        if not kept:
            return best
        self.layout, self.problems = wide, {}
        return one

    def last(self, best: Candidate) -> Candidate:
        """Iterate to convergence; the result is kept unless forecasts become worse."""
        if REST in best.groups:  # it was regressed with these coefficients
            return best
        final_ = self.fitted(best.scored.theta, best.groups, best.each, LAST_ITERATIONS)
        if final_.error > best.error / KEEP:
            self.progress("the last iterations made forecasts worse and were left out")
            return best
        return final_

    def moment(self, best: Candidate) -> Candidate:
        """Friction that each window tells anew, about the fitted one, if validation gains."""
        if time.monotonic() > self.deadline:
            return best
        self.wandering = WANDER
        one = dataclasses.replace(best, error=self.error(self.layout, best.scored, best.each))
        kept = bool(one.error < KEEP * best.error)
        self.note(MOMENT, one, best.error, kept)
        if not kept:
            self.wandering = 0.0
        return one if kept else best

    def refuse(self, name: str, best: Candidate) -> None:
        """Record a group that is not fitted, once."""
        if not any(x.name == name for x in self.stages):
            self.stages.append(Stage(name, None, best.error, best.scored.value, 0, False))
            self.progress(self.stages[-1].line())

    def note(self, name: str, one: Candidate, before: float | None, kept: bool) -> None:
        """Record a stage."""
        self.stages.append(
            Stage(name, one.error, before, one.scored.value, one.scored.iterations, kept)
        )
        self.progress(self.stages[-1].line())
