"""Forecasts from past positions alone: linear, kernel ridge, and the nearest past window.

All are causal: they see positions, never velocities that were computed with later positions. They
learn from the training part; how many positions they see and their other settings are chosen on
the validation part by the error up to a given horizon.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import final

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_factor, cho_solve

from dhn.reconstruct.denoiser import straight_lines
from dhn.trajectories import Trajectories
from dhn.trajectories.segments import run_of

MOST = 2500
"""Training windows; a kernel matrix of more takes minutes."""
FEWER = 1000
"""Training windows while settings are chosen."""
RIDGES = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)  # penalty of the weights, a training window
WIDTHS = (1.0, 3.0, 10.0)
"""Widths of the kernel over the median distance of two windows."""
NEIGHBOURS = (1, 3)  # windows that are averaged
TURN = 2 * np.pi
AT_ONCE, STEPWISE = "all horizons at once", "one step at a time"

Forecaster = Callable[[Float[np.ndarray, "n W d"]], Float[np.ndarray, "n H d"]]
Setting = tuple[float | int, ...]
Predictor = Callable[[np.ndarray], np.ndarray]
"""From features (n, f) to changes (n, H·d)."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class DelayForecast:
    """Positions that a rival predicts, and the settings that validation chose."""

    name: str
    how: str
    mean: Float[np.ndarray, "n H d"]
    validation: float
    """Error on the validation windows, see `window_error`."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class _Lessons:
    """Windows of one or several runs: positions, and the changes that followed."""

    past: Float[np.ndarray, "N W d"]
    later: Float[np.ndarray, "N H d"]
    """Position minus the last one of the window."""


def delay_forecasts(
    train: Trajectories,
    validation: Trajectories,
    observed: Trajectories,
    steps: int,
    until: int,
) -> list[DelayForecast]:
    """Fit the rivals, choose their settings, and forecast.

    Where runs of the training part are named in the other parts, a model for each run is a
    setting, too.

    Arguments: train: whole runs on a uniform grid; validation: windows (observed and later
        positions) to choose by; observed: windows to forecast from, as many states each;
        steps: states ahead; until: horizon up to which errors decide.
    Returns: one forecast (n, steps, d) for each rival that could be fitted.
    """
    seen = observed.states
    shown, hidden = _filled(validation[:, :seen]), validation.q[:, seen:]
    hidden = np.where(np.asarray(validation.known)[:, seen:, None], hidden, np.nan)
    until = min(until, hidden.shape[1])
    winding, zero = _winding(train), _zero(train)
    train = train.replace(q=_aligned(train.q, zero, winding, train.angles)[0], v=None, p=None)
    shown, shift = _aligned(shown, zero, winding, train.angles)
    hidden = hidden - shift
    start, ahead_shift = _aligned(_filled(observed), zero, winding, train.angles)
    groups = _groupings(train, validation, observed)
    found = []
    for kind in KINDS:
        best = None
        for label, parts in groups.items():
            for delays in [x for x in kind.delays if x <= seen] or [seen]:
                for how, setting, forecasters in _fitted(
                    kind, train, parts, delays, until, winding, FEWER
                ):
                    trial = _joined(forecasters, [x[1] for x in parts], shown, until)
                    score = window_error(trial, hidden[:, :until], train.angles)
                    if np.isfinite(score) and (best is None or score < best[0]):
                        best = (score, label, delays, how, setting)
        if best is not None:
            score, label, delays, how, setting = best
            refitted = _fitted(
                kind, train, groups[label], delays, steps, winding, MOST, (how, setting)
            )
            forecasters = next((x for _, _, x in refitted), None)
            if forecasters is None:  # no run is as long as all that is asked
                continue
            mean = _joined(forecasters, [x[2] for x in groups[label]], start, steps)
            text = f"{delays} positions, {kind.words(setting)}, {how}{label}"
            found.append(DelayForecast(kind.name, text, mean + ahead_shift, score))
    return found


def window_error(
    forecast: Float[np.ndarray, "n H d"],
    truth: Float[np.ndarray, "n H d"],
    angles: tuple[bool, ...],
) -> float:
    """Root mean square error at each time ahead, the mean over these times.

    Arguments: forecast; truth: NaN where nothing was measured; angles.
    Returns: the error in the data's units.
    """
    error = wrapped(forecast - truth, angles)
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.mean(np.sqrt(np.nanmean(error**2, axis=(0, 2)))))


def _groupings(
    train: Trajectories, validation: Trajectories, observed: Trajectories
) -> dict[str, list[tuple[np.ndarray, ...]]]:
    """Label -> (training, validation, observed) rows for each model."""
    everything = tuple(np.arange(len(x)) for x in (train, validation, observed))
    found: dict[str, list[tuple[np.ndarray, ...]]] = {"": [everything]}
    names = [
        [run_of(x.rpartition("@")[0] or x) for x in y.ids] for y in (train, validation, observed)
    ]
    runs = list(dict.fromkeys(names[0]))
    if len(runs) > 1 and set(names[1]) | set(names[2]) <= set(runs):
        rows = [[np.flatnonzero([x == run for x in part]) for part in names] for run in runs]
        found[", a model for each run"] = [tuple(x) for x in rows]
    return found


def _lessons(train: Trajectories, rows: np.ndarray, delays: int, steps: int, most: int) -> _Lessons:
    """All windows of known positions, evenly thinned to `most`."""
    length = delays + steps
    everything, found = train.has_known_q, []
    for i in rows:
        known = everything[i]
        whole = np.convolve(known, np.ones(length), "valid") >= length - 0.5
        starts = np.flatnonzero(whole) if len(known) >= length else np.zeros(0, int)
        found.append(train.q[i][starts[:, None] + np.arange(length)])
    windows = np.concatenate(found) if found else np.zeros((0, length, train.dim))
    windows = windows[np.linspace(0, len(windows) - 1, min(most, len(windows))).astype(int)]
    past = windows[:, :delays]
    return _Lessons(past, windows[:, delays:] - past[:, -1:])


def _features(past: np.ndarray, winding: np.ndarray) -> np.ndarray:
    """Positions; of angles that wind around, sine and cosine of the last and changes before it."""
    last = past[:, -1:]
    plain = past[..., ~winding].reshape(len(past), -1)
    turned = last[..., winding].reshape(len(past), -1)
    changes = (past[:, :-1] - last)[..., winding].reshape(len(past), -1)
    return np.concatenate([plain, np.sin(turned), np.cos(turned), changes], axis=1)


def _fitted(
    kind: "_Kind", train: Trajectories, parts: Sequence[tuple[np.ndarray, ...]], delays: int,
    steps: int, winding: np.ndarray, most: int, only: tuple[str, Setting] | None = None,
) -> Iterator[tuple[str, Setting, list[Forecaster]]]:  # fmt: skip
    """Every way and setting of a rival (or `only` one of them), one forecaster a part."""
    ways = (AT_ONCE, *(STEPWISE,) * (steps > 1)) if only is None else only[:1]
    for how in ways:
        ahead = steps if how == AT_ONCE else 1
        lessons = [_lessons(train, rows[0], delays, ahead, most) for rows in parts]
        if any(len(x.past) < 2 * delays for x in lessons):
            continue
        fits = [_fit(kind, x, steps, winding) for x in lessons]
        for setting in itertools.product(*kind.settings.values()) if only is None else only[1:]:
            yield how, setting, [fit(setting) for fit in fits]


def _fit(
    kind: "_Kind", lessons: _Lessons, steps: int, winding: np.ndarray
) -> Callable[[Setting], Forecaster]:
    """Forecasts of `steps` positions, by the changes that the lessons have or by one at a time."""
    x = _features(lessons.past, winding)
    centre, size = x.mean(0), x.std(0) + 1e-12
    y = lessons.later.reshape(len(x), -1)
    shift, shape, delays = y.mean(0), lessons.later.shape[1:], lessons.past.shape[1]
    predictor = kind.fit((x - centre) / size, y - shift)

    def fit(setting: Setting) -> Forecaster:
        predict = predictor(*setting)

        def forecast(past: np.ndarray) -> np.ndarray:
            past = past[:, -delays:]
            change = predict((_features(past, winding) - centre) / size) + shift
            return past[:, -1:] + change.reshape(len(past), *shape)

        return forecast if shape[0] == steps else _iterated(forecast, steps)

    return fit


def _linear(x: np.ndarray, y: np.ndarray) -> Callable[..., Predictor]:
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    projected = u.T @ y

    def fit(ridge: float) -> Predictor:
        weights = vt.T @ (projected * (s / (s**2 + ridge * len(x)))[:, None])
        return lambda new: new @ weights

    return fit


def _kernel(x: np.ndarray, y: np.ndarray) -> Callable[..., Predictor]:
    squares = _squares(x, x)
    typical = float(np.median(squares[:: max(1, len(x) // 200)]))

    def fit(width: float, ridge: float) -> Predictor:
        bandwidth = 2 * width**2 * typical
        kernel = np.exp(-squares / bandwidth)
        kernel[np.diag_indices(len(x))] += ridge
        try:
            weights = cho_solve(cho_factor(kernel, overwrite_a=True), y)
        except np.linalg.LinAlgError:  # rounding: the ridge is too small for this width
            weights = np.full_like(y, np.nan)
        return lambda new: np.exp(-_squares(new, x) / bandwidth) @ weights

    return fit


def _nearest(x: np.ndarray, y: np.ndarray) -> Callable[..., Predictor]:
    def fit(count: int) -> Predictor:
        return lambda new: y[np.argpartition(_squares(new, x), count - 1)[:, :count]].mean(1)

    return fit


@final
@dataclasses.dataclass(frozen=True)
class _Kind:
    """A rival, and the settings of which validation chooses one."""

    name: str
    fit: Callable[[np.ndarray, np.ndarray], Callable[..., Predictor]]
    """From standardised features (n, f) and centred changes (n, H·d)."""
    delays: tuple[int, ...]
    """Positions that it sees; where fewer are observed, all of them."""
    settings: Mapping[str, tuple[float | int, ...]]

    def words(self, setting: Setting) -> str:
        named = zip(self.settings, setting, strict=True)
        return ", ".join(f"{name} {value:g}" for name, value in named)


KINDS = (
    _Kind("linear", _linear, (4, 8, 16, 24, 32), {"ridge": RIDGES}),
    _Kind("kernel ridge", _kernel, (8, 12, 16), {"width": WIDTHS, "ridge": RIDGES}),
    _Kind("nearest window", _nearest, (4, 8, 16), {"nearest": NEIGHBOURS}),
)


def _squares(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Squared distances of all rows."""
    return np.maximum((a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T, 0.0)


def _iterated(forecast: Forecaster, steps: int) -> Forecaster:
    """A one-step forecast applied to its own results."""

    def run(past: np.ndarray) -> np.ndarray:
        found = []
        for _ in range(steps):
            with np.errstate(over="ignore", invalid="ignore"):
                new = np.clip(forecast(past), -1e6, 1e6)
            past = np.concatenate([past[:, 1:], new], axis=1)
            found.append(new)
        return np.concatenate(found, axis=1)

    return run


def _joined(
    forecasters: list[Forecaster], rows: list[np.ndarray], past: np.ndarray, steps: int
) -> np.ndarray:
    mean = np.full((len(past), steps, past.shape[2]), np.nan)
    for forecast, own in zip(forecasters, rows, strict=True):
        if len(own):
            mean[own] = forecast(past[own])
    return mean


def _filled(data: Trajectories) -> np.ndarray:
    """Positions with lost ones bridged by straight lines, or by the last known position."""
    return straight_lines(data.q, np.broadcast_to(data.has_known_q[..., None], data.q.shape))


def _winding(train: Trajectories) -> np.ndarray:
    """(d,) angles that go all the way round."""
    reach = np.nanmax(train.q, axis=1) - np.nanmin(train.q, axis=1)
    return np.array(train.angles) & (np.nanmax(reach, axis=0) > TURN)


def _zero(train: Trajectories) -> np.ndarray:
    """(d,) the middle of each angle on the circle."""
    return np.angle(np.exp(1j * train.q[train.has_known_q]).mean(0))


def _aligned(
    q: np.ndarray, zero: np.ndarray, winding: np.ndarray, angles: tuple[bool, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Angles that do not wind around, brought by full turns to the middle of the training data.

    Returns the angles and what was taken off, (n, 1, d).
    """
    turns = np.round((np.nanmedian(q, axis=1, keepdims=True) - zero) / TURN)
    shift = TURN * np.where(np.array(angles) & ~winding, turns, 0.0)
    return q - shift, shift


def wrapped(error: np.ndarray, angles: tuple[bool, ...]) -> np.ndarray:
    """Errors of angles within half a turn."""
    finite = np.where(np.isfinite(error), error, 0.0)
    return error - np.where(angles, TURN * np.round(finite / TURN), 0.0)
