"""First guesses of states and codes, from whatever a question contains.

Three sources, by what is known. A run of complete windows determines the code and, by rolling the
model forward, every state behind it. Scattered numbers are joined by splines, missing momenta
follow from velocities. A coordinate that is never measured is taken from the training trajectory
that agrees best with the rest.
"""

import dataclasses
from collections.abc import Iterator
from typing import final

import jax
import numpy as np
from jaxtyping import Bool, Float

from dhn.blocks import Codes, StateBlock
from dhn.codes.autodecode import CodePrior, autodecode
from dhn.models.contract import AbstractForecaster
from dhn.reconstruct.forecast import forecast
from dhn.reconstruct.question import Mask, States
from dhn.reconstruct.sections import Sections

SPLINE_ERROR = 0.1
"""Assumed error of a spline's window residual, in units of a typical change."""
ITERATIONS = 8
"""Of the fit of a first code; the smoother refines it."""
WINDOWS = 24
"""Windows of a trajectory to which a first code is fitted."""
QUANTILE, RELIABLE = 0.2, 5.0
"""Measurements of a coordinate are used for a guess if their noise is at most this multiple of its
quantile over the trajectory: at least a fifth of them, and all of them if they are alike."""
LEAST_KNOTS = 8
"""Known numbers of a coordinate from which the error of a spline is estimated."""
LEAST_WINDOWS = 4
"""Complete windows from which a code is fitted; with fewer of them all known numbers are joined."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Examples:
    """What is kept of training, for first guesses and to recognise what is outside of it."""

    momentum: Float[np.ndarray, "d d"]
    """Least-squares map from the change of `q` per grid step to `p`, in scaled units."""
    states: Float[np.ndarray, "e T m"]
    """Some training trajectories, scaled; NaN where a number is unknown."""
    codes: Float[np.ndarray, "e k"]
    sections: Sections

    MOST = 64
    """Trajectories kept: enough to begin from, small in a saved model."""

    @classmethod
    def make(cls, states: States, codes: Codes) -> "Examples":
        """From the scaled training set; unknown numbers are NaN."""
        q, p = StateBlock.of(states)
        change = (q[:, 2:] - q[:, :-2]) / 2
        pairs = np.isfinite(change).all(-1) & np.isfinite(p[:, 1:-1]).all(-1)
        momentum = np.eye(q.shape[2])
        if pairs.any():
            momentum = np.linalg.lstsq(change[pairs], p[:, 1:-1][pairs], rcond=None)[0].T
        # The most complete ones, spread over the training set.
        share = np.isfinite(states).mean((1, 2))
        good = np.flatnonzero(share >= 0.9 * share.max())
        rows = good[np.unique(np.linspace(0, len(good) - 1, cls.MOST).astype(int))]
        return cls(momentum, states[rows].astype(np.float32), codes[rows], Sections.make(states))


def reliable(known: Mask, noise: States) -> Mask:
    """Known numbers that are not much noisier than others of the same coordinate and trajectory.

    Arguments:
        known: Which numbers are known.
        noise: Their standard deviations.

    Returns:
        The numbers that a first guess is made from; the smoother uses all of them.
    """
    ordered = np.sort(np.where(known, noise, np.inf), axis=1)
    place = (QUANTILE * np.maximum(known.sum(1, keepdims=True) - 1, 0)).astype(int)
    return known & (noise <= RELIABLE * np.take_along_axis(ordered, place, axis=1))


def first_guess(
    model: AbstractForecaster,
    prior: CodePrior,
    examples: Examples,
    values: States,
    known: Mask,
    noise: float,
) -> tuple[States, Codes]:
    """States and codes to begin with.

    Arguments:
        model: A trained model, in double precision.
        prior: Of the codes.
        examples: What training left behind for guesses.
        values, known: Scaled numbers and which of them are known.
        noise: Window residual that measurement noise explains, in units of a typical change.

    Returns:
        A finite guess of every state, and codes.
    """
    joined, nearest = join_known(values, known, examples)
    complete = np.asarray(known.all(-1))
    length = max(shape.reach for shape in model.window_shapes) + 1
    rich = _runs(complete, length) >= LEAST_WINDOWS
    codes = np.array(examples.codes[nearest])
    level = float(np.hypot(prior.noise, noise))

    def fitted(rows, states, usable, level):
        return autodecode(
            model,
            StateBlock.of(states[rows]),
            usable[rows],
            prior,
            noise=level,
            local=False,
            max_iterations=ITERATIONS,
            most_windows=WINDOWS,
        ).codes

    if rich.any():
        rows = np.flatnonzero(rich)
        codes[rows] = fitted(rows, joined, complete, level)
        joined[rows] = fill_gaps(model, joined[rows], complete[rows], codes[rows])
    inside = _hull(np.asarray(known.any(-1)))
    joinable = ~rich & (_runs(inside, length) > 0)
    codes[~rich & ~joinable] = prior.mean
    if joinable.any():
        rows = np.flatnonzero(joinable)
        codes[rows] = fitted(rows, joined, inside, max(level, SPLINE_ERROR))
    return joined, codes


def join_known(values: States, known: Mask, examples: Examples) -> tuple[States, np.ndarray]:
    """Splines through the known numbers; what is never known from velocities or an example.

    Returns:
        The joined states, and the row of the nearest example for each trajectory.
    """
    T, d = values.shape[1], values.shape[2] // 2
    found = join_all(values, known)
    nearest = _nearest(np.where(known, values, np.nan), examples)
    never = ~np.logical_or.reduce(known, axis=1)
    example = _lengthened(examples.states, T)
    for i in np.flatnonzero(never.any(1)):
        found[i][:, never[i]] = example[nearest[i]][:, never[i]]
        if never[i, d:].any() and not never[i, :d].any():
            change = np.gradient(found[i, :, :d], axis=0)
            found[i][:, d:] = np.where(never[i, d:], change @ examples.momentum.T, found[i][:, d:])
    return np.nan_to_num(found), nearest


def join_all(values: States, known: Mask) -> States:
    """Splines through the known numbers, constant outside them; NaN where none is known."""
    found = np.full(values.shape, np.nan)
    for j, rows, at in _patterns(known):
        if len(at):
            found[rows, :, j] = _join(np.arange(known.shape[1]), at, values[rows][:, at, j])
    return found


def _patterns(known: Mask) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Each coordinate, rows in which the same of its numbers are known, and where these are."""
    for j in range(known.shape[2]):
        patterns, inverse = np.unique(known[:, :, j], axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            yield j, np.flatnonzero(inverse == number), np.flatnonzero(pattern)


def _join(time: np.ndarray, at: np.ndarray, values: Float[np.ndarray, "k a"]) -> np.ndarray:
    """A cubic spline between known numbers, constant outside them."""
    inside = np.clip(time, at[0], at[-1])
    if _unbroken(at):  # as in a forecast
        return values[:, inside - at[0]]
    if len(at) >= 4:
        from scipy.interpolate import CubicSpline  # slow to import

        return CubicSpline(at, values, axis=1)(inside)
    return np.stack([np.interp(inside, at, row) for row in values])


def _unbroken(at: np.ndarray) -> bool:
    """Whether there is nothing between the known numbers."""
    return bool(at[-1] - at[0] + 1 == len(at))


def _spline_error(at: np.ndarray, x: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Squared error of splines over `_reach` squared, from every other known number left out."""
    wrong, reach = [], []
    for first in (0, 1):
        kept, left = at[first::2], at[first + 1 : -1 : 2]
        wrong.append((_join(left, kept, x[:, kept]) - x[:, left]) ** 2 - 2 * own[:, left])
        reach.append(_reach(left, kept) ** 2)
    return np.maximum(np.concatenate(wrong, 1).mean(1), 0.0) / np.concatenate(reach).mean()


def bridges(values: States, known: Mask, noise: States) -> tuple[States, States]:
    """Splines through the known numbers, and how far they are to be trusted.

    A cubic spline's error at a time `t` between neighbours `a` and `b` goes with the square of
    `(t - a) (b - t)`. Its size follows from every other known number left out in turn.

    Arguments:
        values, known: Scaled numbers and which of them are known.
        noise: Their standard deviations.

    Returns:
        Splines, and their standard deviations; NaN outside the known numbers or with few of them.
    """
    deviation = np.full(values.shape, np.nan)
    for j, rows, at in _patterns(known):
        if len(at) < LEAST_KNOTS:
            continue
        x, own = values[rows, :, j], noise[rows, :, j] ** 2
        size = np.zeros(len(rows)) if _unbroken(at) else _spline_error(at, x, own)
        inside = np.arange(at[0], at[-1] + 1)
        spread = size[:, None] * _reach(inside, at) ** 2 + own[:, at].mean(1, keepdims=True)
        deviation[rows, at[0] : at[-1] + 1, j] = np.sqrt(spread)
    return join_all(values, known), deviation


def _reach(times: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Square of the distances of times from their neighbours among `at`, multiplied."""
    right = np.clip(np.searchsorted(at, times, side="right"), 1, len(at) - 1)
    return ((times - at[right - 1]) * (at[right] - times)) ** 2.0


def _nearest(values: States, examples: Examples) -> np.ndarray:
    """Row of the example that agrees best with the known numbers of each trajectory."""
    library = _lengthened(examples.states, values.shape[1]).astype(np.float64)
    best = np.zeros(len(values), int)
    for i, one in enumerate(values):
        apart = np.nanmean((library - one) ** 2, axis=(1, 2)) if np.isfinite(one).any() else [0.0]
        best[i] = int(np.nanargmin(apart)) if np.isfinite(apart).any() else 0
    return best


def _lengthened(states: np.ndarray, T: int) -> np.ndarray:
    """The examples cut or padded with their last state to `T` states."""
    index = np.minimum(np.arange(T), states.shape[1] - 1)
    return np.nan_to_num(states[:, index])


def _runs(complete: Bool[np.ndarray, "n T"], length: int) -> np.ndarray:
    """Windows of `length` consecutive complete states in each trajectory."""
    steps = complete.shape[1] - length + 1
    if steps < 1:
        return np.zeros(len(complete), int)
    return np.logical_and.reduce([complete[:, i : i + steps] for i in range(length)]).sum(1)


def _hull(any_known: Bool[np.ndarray, "n T"]) -> Bool[np.ndarray, "n T"]:
    """From the first known state of each trajectory to the last."""
    first = np.logical_or.accumulate(any_known, axis=1)
    last = np.logical_or.accumulate(any_known[:, ::-1], axis=1)[:, ::-1]
    return first & last


def fill_gaps(
    model: AbstractForecaster,
    states: States,
    complete: Bool[np.ndarray, "n T"],
    codes: Codes,
    least: int = 4,
) -> States:
    """Gaps of `least` states or more, filled by rolling the model forward from the last states.

    Arguments:
        states: Scaled states; complete ones are kept.
        complete: States of which every number is known.
        codes: One a trajectory.
        least: Shorter gaps keep their spline.

    Returns:
        States with the gaps filled wherever enough complete states come before them.
    """
    context, states, jobs = model.context_length, states.copy(), []
    for i in range(len(states)):
        edges = np.flatnonzero(np.diff(np.concatenate([[1], complete[i].astype(int), [1]])))
        for first, stop in zip(edges[::2], edges[1::2], strict=True):
            if (
                stop - first >= least
                and first >= context
                and complete[i, first - context : first].all()
            ):
                jobs.append((i, first, stop))
    if not jobs:
        return states
    rows = np.array([i for i, _, _ in jobs])
    steps = max(stop - first for _, first, stop in jobs)
    start = np.stack([states[i, first - context : first] for i, first, _ in jobs])
    key = jax.random.key(0)
    rolled = forecast(model, StateBlock.of(start), codes[rows], int(steps), key)
    rolled = np.concatenate([rolled.q, rolled.p], axis=-1)
    for (i, first, stop), path in zip(jobs, rolled, strict=True):
        if np.isfinite(path[: stop - first]).all():
            states[i, first:stop] = path[: stop - first]
    return states


def from_examples(
    examples: Examples, values: States, known: Mask, rank: int
) -> tuple[States, Codes]:
    """Another guess: the training trajectory that is `rank`-th nearest to what is known.

    Its distance from the known numbers is joined by splines and added.

    Arguments:
        examples: What training left behind for guesses.
        values, known: Scaled numbers and which of them are known.
        rank: 0 for the nearest example.

    Returns:
        A finite guess of every state, and the examples' codes.
    """
    library = _lengthened(examples.states, values.shape[1]).astype(np.float64)
    apart = [
        (np.where(seen, library - one, 0.0) ** 2).sum((1, 2))
        for one, seen in zip(values, known, strict=True)
    ]
    rows = np.argsort(apart, axis=1)[:, min(rank, len(library) - 1)]
    shift = np.nan_to_num(join_all(values - library[rows], known))
    return library[rows] + shift, examples.codes[rows]
