"""`model.track()`: follow a trajectory while it is being measured."""

import collections
import dataclasses
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Float

from dhn.blocks import StateBlock
from dhn.checks import numbers
from dhn.errors import UserError
from dhn.estimator.answers import extended
from dhn.estimator.asking import (
    ABSURD,
    BETWEEN,
    MOST_STATES,
    ON_GRID,
    answer,
    ask,
    bands_for,
    read_back,
)
from dhn.estimator.parameters import Parameters
from dhn.reconstruct.bands import Bands, horizons
from dhn.reconstruct.engine import most_probable
from dhn.reconstruct.job import UNDETERMINED, VAGUE
from dhn.reconstruct.posterior import Result
from dhn.reconstruct.question import interpolate_path
from dhn.reconstruct.tracker import Estimate, Filter
from dhn.trajectories.container import Trajectories

if TYPE_CHECKING:
    from dhn.estimator.trained import TrainedModel

RARE = 0.01
"""Probability with which a measurement lies outside its band if the model is right."""
LEAST = 4
"""Measurements from which it is judged whether the model still fits."""
PATIENCE = 8
"""The smoother is asked again, up to so many times the lag, until it identifies the motion."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Tracked:
    """What is known after a measurement."""

    t: float
    q: Float[np.ndarray, " d"]
    p: Float[np.ndarray, " d"]
    """Momenta, or velocities for a model that was trained on them."""
    q_quantiles: Mapping[float, Float[np.ndarray, " d"]]
    p_quantiles: Mapping[float, Float[np.ndarray, " d"]]
    code: Float[np.ndarray, " k"]
    code_covariance: Float[np.ndarray, "k k"]
    parameters: Mapping[str, tuple[np.ndarray, np.ndarray]]
    """Name -> estimate and standard error, each of shape (1,)."""
    innovation: float
    """Squared distance of the measurement from its prediction over the number of its values, in
    units of the expected variance; about 1 if the model is right, NaN while tracking begins."""
    result: Result
    """POOR_FIT if at least half of the last innovations were outside their 99 % band."""


@final
class Tracker:
    """Follows one trajectory; every update takes the same time and memory.

    The smoother answers for the first `lag` states of the model's grid, and longer if they do not
    identify the motion. After that the last `lag` states are solved for with every measurement, and
    everything before them is summarised (`dhn.reconstruct.tracker`).
    """

    def __init__(self, trained: "TrainedModel", noise: Float[np.ndarray, "2 d"] | None, lag: int):
        self._trained, self._lag = trained, lag
        scaled = trained.noise * np.stack([trained.scaler.q_scale, trained.scaler.p_scale])
        self._noise = scaled if noise is None else noise
        self._seen: list[tuple[float, np.ndarray, np.ndarray, np.ndarray]] = []
        self._filter: Filter | None = None
        self._bands, self._widening = Bands.gaussian(), 1.0
        self._outside: collections.deque[bool] = collections.deque(maxlen=lag)
        self._start = self._last = np.nan
        self._index = 0

    def update(
        self,
        t: float,
        q: Float[np.ndarray, " d"] | float,
        p: Float[np.ndarray, " d"] | float | None = None,
        *,
        noise: Float[np.ndarray, "2 d"] | None = None,
    ) -> Tracked:
        """Take in what was measured at time `t`.

        Arguments:
            t: Later than that of the update before. Times off the model's grid are allowed: the
                measurement is moved to the nearest state of the grid along the predicted path.
            q: (d,) coordinates; NaN where nothing was measured.
            p: (d,) momenta (velocities for a model of velocities), if they were measured.
            noise: (2, d) standard deviations of this measurement; by default those of `track`.

        Returns:
            The state at `t` with bands, the code so far, and whether the model fits.
        """
        d = self._trained.context.dim
        q = _measurement("q", q, d)
        p = np.full(d, np.nan) if p is None else _measurement("p", p, d)
        noise = self._noise if noise is None else check_noise(noise, self._trained)
        t = float(_measurement("t", t, 1)[0])
        if not np.isfinite(t) or t <= self._last:
            raise UserError(f"times must increase; got {t!r} after {self._last!r}.")
        if (t - self._last) / self.time_step > MOST_STATES:
            raise UserError(
                f"t = {t:g} is more than {MOST_STATES} time steps of the model "
                f"({self.time_step:.6g}) after {self._last:g}; begin to track anew."
            )
        scaled = self._scaled(q, p)
        if (np.abs(scaled) > ABSURD).any():
            raise UserError(
                f"a measurement is more than {ABSURD:g} times as large as in training; check its "
                f"units."
            )
        if not self._seen and self._filter is None:
            if not np.isfinite(np.concatenate([q, p])).any():
                raise UserError("tracking begins with a measurement; all numbers were unknown.")
            self._start = t
        self._last = t
        if self._filter is None:
            return self._begin(t, q, p, noise)
        return self._go_on(self._filter, t, q, p, noise)

    def _begin(self, t: float, q: np.ndarray, p: np.ndarray, noise: np.ndarray) -> Tracked:
        """The smoother over all measurements so far; the filter if they identify the motion."""
        trained = self._trained
        self._seen.append((t, q, p, noise))
        times, qs, ps, noises = (np.array(x) for x in zip(*self._seen, strict=True))
        data = Trajectories(q=qs[None], t=times, noise=noises[None])
        data = data.replace(**{trained.momenta_field: ps[None]})
        # The smoother needs a few windows, also if there are fewer measurements.
        asked = ask(trained, extended(data, self._lag, self.time_step))
        asked = dataclasses.replace(asked, place=asked.place[:, : len(times)])
        posterior = answer(trained, asked)
        found = read_back(trained, data, asked, posterior)
        self._bands = bands_for(trained, asked)
        self._widening = float(self._bands.widening(asked.known)[0])
        result = Result(posterior.result[0])
        states = int(np.ceil(asked.place[0, -1] - ON_GRID)) + 1
        if states >= self._lag and (result == Result.OK or states >= PATIENCE * self._lag):
            self._hand_over(asked, states)
        momentum = found.momenta
        assert momentum is not None
        root = posterior.code_root[0]
        return Tracked(
            t, found.q[0, -1], momentum[0, -1],
            {level: x[0, -1] for level, x in found.q_quantiles.items()},
            {level: x[0, -1] for level, x in found.p_quantiles.items()},
            posterior.codes[0], root @ root.T,
            Parameters(trained, posterior.codes, posterior.code_root),
            np.nan, result,
        )  # fmt: skip

    def _hand_over(self, asked, states: int) -> None:
        """From the smoother to the filter."""
        knowledge = self._trained.knowledge
        path, code, prior = most_probable(
            knowledge, asked.values, asked.known, asked.noise, asked.between
        )
        seen = self._seen
        self._seen = []
        blank = np.full((states, path.shape[2]), np.nan)
        values, weight = blank, np.zeros_like(blank)
        for t, q, p, noise in seen:
            place = (t - self._start) / self.time_step
            at = int(np.round(place))
            measured = self._moved(self._scaled(q, p), path[0], place, at)
            known = np.isfinite(measured)
            values[at] = np.where(known, measured, values[at])
            weight[at] = np.where(known, 1 / self._variance(noise, place - at), weight[at])
        self._index = states - 1
        self._filter = Filter(
            knowledge, path[0, :states], weight, np.nan_to_num(values), code[0], prior, self._lag
        )

    def _go_on(
        self, filter: Filter, t: float, q: np.ndarray, p: np.ndarray, noise: np.ndarray
    ) -> Tracked:
        place = (t - self._start) / self.time_step
        target = int(np.ceil(place - ON_GRID))
        if target > self._index:
            filter.predict(target - self._index)
            self._index = target
        near = int(np.round(place))
        back, first = self._index - near, self._index - len(filter.path) + 1
        measured = self._moved(self._scaled(q, p), filter.path, place - first, near - first)
        known = np.isfinite(measured)
        innovation = np.nan
        if known.any():
            before = filter.estimate(back)
            variance = self._variance(noise, place - near)
            expected = before.root @ before.root.T + np.diag(variance)
            miss = (measured - before.state)[known]
            square = float(miss @ np.linalg.solve(expected[np.ix_(known, known)], miss))
            innovation = square / known.sum()
            self._outside.append(bool(square > _rare_square(int(known.sum()))))
            filter.correct(back, measured, np.sqrt(variance))
        kind = horizons(known[None, None])
        return self._answer(t, filter, place - first, filter.estimate(back), kind, innovation)

    def _answer(
        self, t: float, filter: Filter, place: float, now: Estimate, kind: np.ndarray,
        innovation: float,
    ) -> Tracked:  # fmt: skip
        trained, prior = self._trained, self._trained.prior
        deviation = np.sqrt((now.root**2).sum(-1))
        spread = np.sqrt((now.code_root**2).sum(-1))
        result = Result.OK
        if spread[0] > VAGUE or deviation.max() > UNDETERMINED:
            result = Result.NOT_IDENTIFIABLE
        if len(self._outside) >= LEAST and np.mean(self._outside) >= 0.5:
            result = Result.POOR_FIT
        state = _between(filter.path, place)
        levels = self._bands.quantiles(state[None, None], deviation[None, None], kind)

        def physical(x):
            return trained.scaler.inverse(*StateBlock.of(x))

        bands = {level: physical(x[0, 0]) for level, x in levels.items()}
        code = (prior.mean + prior.basis @ now.code)[None]
        root = self._widening * (prior.basis @ now.code_root)[None]
        return Tracked(
            t, *physical(state),
            {level: x[0] for level, x in bands.items()},
            {level: x[1] for level, x in bands.items()},
            code[0], root[0] @ root[0].T, Parameters(trained, code, root), innovation, result,
        )  # fmt: skip

    @property
    def time_step(self) -> float:
        """Spacing of the model's grid."""
        return self._trained.context.time_step

    def _scaled(self, q: np.ndarray, p: np.ndarray) -> np.ndarray:
        scaler = self._trained.scaler
        return np.concatenate([scaler.transform_q(q), scaler.transform_p(p)])

    def _variance(self, noise: np.ndarray, apart: float) -> np.ndarray:
        """Scaled, of a measurement so many steps from a state of the grid."""
        least = BETWEEN if abs(apart) > ON_GRID else 0.0
        return np.maximum(self._trained.scaler.scaled_noise(noise).ravel(), least) ** 2

    def _moved(self, measured: np.ndarray, path: np.ndarray, place: float, near: int) -> np.ndarray:
        """A measurement moved to a state of the grid, along the estimated path."""
        if abs(place - near) <= ON_GRID:
            return measured
        return measured + path[near] - _between(path, place)


def check_noise(noise: object, trained: "TrainedModel") -> Float[np.ndarray, "2 d"]:
    """(2, d) standard deviations of one measurement, or a `UserError`."""
    found, dim = numbers("noise", noise), trained.context.dim
    if found.shape != (2, dim) or not (np.isfinite(found) & (found >= 0)).all():
        raise UserError(
            f"noise must have shape (2, {dim}), standard deviations of q and of p (or v), finite "
            f"and zero or above; got shape {found.shape}."
        )
    if (trained.scaler.scaled_noise(found) > ABSURD).any():
        raise UserError(
            f"noise is more than {ABSURD:g} times as large as the motion in training; check its "
            f"units."
        )
    return found


def _measurement(name: str, value: object, dim: int) -> Float[np.ndarray, " d"]:
    """One number, or one for each coordinate, as an array."""
    found = numbers(name, value)
    if found.shape not in ((), (dim,)):
        raise UserError(f"{name} must have shape ({dim},); got {found.shape}.")
    return np.broadcast_to(found, (dim,))


def _between(path: Float[np.ndarray, "W m"], place: float) -> Float[np.ndarray, " m"]:
    """The path at a place between its states."""
    near = int(np.round(place))
    if abs(place - near) <= ON_GRID or len(path) < 2:
        return path[near]
    left = min(int(place), len(path) - 2)
    fraction = np.zeros((1, len(path) - 1, 1))
    fraction[0, left, 0] = place - left
    return np.asarray(interpolate_path(path[None], fraction))[0, left, 0]


@functools.cache
def _rare_square(numbers: int) -> float:
    """The sum of squares of so many standard normal numbers that is exceeded with `RARE`."""
    from scipy.special import gammainccinv  # the chi-squared quantile; scipy.stats loads for long

    return float(2 * gammainccinv(numbers / 2, RARE))
