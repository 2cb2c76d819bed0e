"""What a forecast has to beat: persistence, linear models, kernel ridge, the nearest past."""

import dataclasses
from typing import final

import numpy as np
from jaxtyping import Float

from dhn.errors import UserError
from dhn.evaluation.delays import delay_forecasts, window_error
from dhn.evaluation.extrapolation import LinearDMD, persistence
from dhn.evaluation.metrics import Metrics, compare, error_of_each
from dhn.mechanics.history import held_back, with_history
from dhn.trajectories.container import Trajectories
from dhn.trajectories.origins import origins
from dhn.trajectories.period import characteristic_period

DELAYS = (1, 2, 4, 8, 16, 24)  # states
HELD_BACK = 0.15
"""Share of every training run that settings are chosen by where there is no validation part."""
CHOSEN_BY = 128
"""Validation windows, as many as mechanics are chosen by."""
RIDGES = (1e-12, 1e-6, 1e-4, 1e-3)  # penalty of the weights, a training window
BOUND = 3.0
"""A forecast so many times larger than anything seen has grown without bound."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Rival:
    """Another forecast of the same states."""

    name: str
    how: str
    prediction: Trajectories
    metrics: Metrics
    validation: float | None = None
    """Error on the validation windows up to the time by which models are chosen, if there are."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Held:
    """Windows of the validation part, by which rivals are chosen and all are compared."""

    windows: Trajectories
    until: int
    """States ahead that count: half a period, or what is asked if that is less."""

    def error(self, forecast: Float[np.ndarray, "n H d"], observe: int) -> float:
        """Of a forecast of the states after the observed ones.

        Arguments: forecast: (n, H, d); observe: states seen.
        Returns: root mean square error in the data's units, the mean over times ahead.
        """
        later = slice(observe, observe + self.until)
        known = np.asarray(self.windows.known)[:, later, None]
        truth = np.where(known, self.windows.q[:, later], np.nan)
        return window_error(forecast[:, : self.until], truth, self.windows.angles)


def held_windows(
    train: Trajectories, validation: Trajectories, observe: int, steps: int
) -> Held | None:
    """Windows of a validation part, from everywhere in it.

    Arguments: train; validation: later parts of its runs, or others; observe: states seen; steps:
        states to forecast.
    Returns: the windows; None where no run is long enough.
    """
    held = with_history(train, validation, observe)
    ahead = min(steps, held.states - observe)
    if ahead < 1:
        return None
    period = characteristic_period(train)
    half = ahead if period is None else max(1, round(0.5 * period / train.usual_step))
    return Held(origins(held, observe, ahead, most=CHOSEN_BY), min(half, ahead))


def rivals(
    truth: Trajectories,
    observe: int,
    train: Trajectories | None = None,
    validation: Trajectories | None = None,
) -> list[Rival]:
    """Forecasts of everything after the first `observe` states.

    The linear model learns from `train`, else from the observed states of `truth` themselves. How
    many states it sees is chosen on `validation`, else on the later third of what it learns from.
    For measured data with a training part the rivals see positions alone, as mechanics do.
    """
    if train is not None and train.p is None:
        return _causal(truth, observe, train, validation)
    observed, steps = truth[:, :observe], truth.states - observe
    still = persistence(observed, steps)
    found = [Rival("persistence", "the last state stays", still, compare(still, truth))]
    positions_only = truth.momenta is None
    linear = None if positions_only else linear_model(observed, steps, train, validation)
    if linear is not None:
        predicted = linear.forecast(observed, steps)
        where = "the observed states alone" if train is None else "the training data"
        how = f"least squares on {where}, {linear.delays} states at a time"
        if not _bounded(predicted, observed):
            how += "; it grows without bound" + (
                ", as with --train it may not" if train is None else ""
            )
        found.append(Rival("linear (DMD)", how, predicted, compare(predicted, truth)))
    return found


def _causal(
    truth: Trajectories, observe: int, train: Trajectories, validation: Trajectories | None
) -> list[Rival]:
    """Persistence and the rivals of `delays`, from positions alone."""
    steps = truth.states - observe
    train, truth = (x.replace(v=None, p=None) for x in (train, truth))
    if validation is None:
        train, validation = held_back(train, HELD_BACK)
    else:
        validation = validation.replace(v=None, p=None)

    def rival(name: str, how: str, q: np.ndarray) -> Rival:
        known = np.asarray(truth.known).copy()
        known[:, observe:] = False
        q = np.concatenate([truth.q[:, :observe], q], axis=1)
        predicted = truth.replace(q=q, known=known)
        return Rival(name, how, predicted, compare(predicted, truth))

    observed = truth[:, :observe]
    found = [rival("persistence", "the last position stays", _still(observed, steps))]
    held = held_windows(train, validation, observe, steps)
    if held is None:
        return found
    still = held.error(_still(held.windows[:, :observe], held.until), observe)
    found[0] = dataclasses.replace(found[0], validation=still)
    others = delay_forecasts(train, held.windows, observed, steps, held.until)
    how = "fitted to the training data" + (
        "" if train.is_uniform else ", their states taken as evenly spaced"
    )
    return found + [
        dataclasses.replace(rival(x.name, f"{x.how}, {how}", x.mean), validation=x.validation)
        for x in others
    ]


def _still(observed: Trajectories, steps: int) -> np.ndarray:
    """(n, steps, d) the last known position of every window."""
    last = observed.states - 1 - np.argmax(np.asarray(observed.known)[:, ::-1], axis=1)
    return np.repeat(observed.q[np.arange(len(observed)), last][:, None], steps, axis=1)


def linear_model(
    observed: Trajectories,
    steps: int,
    train: Trajectories | None = None,
    validation: Trajectories | None = None,
) -> LinearDMD | None:
    """The linear model that forecasts best within what may be seen.

    One whose forecast of `steps` states grows without bound is taken only if all do.
    """
    seen = observed if train is None else train
    longest = _run_at_end(observed)
    trials = _trials(seen, validation, observed.states, steps)
    if trials is None:
        return None
    lesson, shown, hidden = trials
    found: list[tuple[bool, float, LinearDMD]] = []
    for delays in DELAYS:
        if delays > min(longest, _run_at_end(shown)) or delays + 2 > lesson.states:
            continue
        try:
            halves = LinearDMD.fit_all(lesson, delays, RIDGES)
            wholes = halves if lesson is seen else LinearDMD.fit_all(seen, delays, RIDGES)
        except (UserError, np.linalg.LinAlgError, ValueError):  # too few windows without a gap
            continue
        for half, whole in zip(halves, wholes, strict=True):
            with np.errstate(over="ignore", invalid="ignore"):
                predicted = half.forecast(shown, hidden.states - shown.states)
                score = float(np.nanmedian(error_of_each(predicted, hidden)))
                far = whole.forecast(observed, steps)
            if np.isfinite(score):
                found.append((not _bounded(far, observed), score, whole))
    return min(found, key=lambda one: one[:2])[2] if found else None


def _trials(
    seen: Trajectories, validation: Trajectories | None, observe: int, steps: int
) -> tuple[Trajectories, Trajectories, Trajectories] | None:
    """What candidates learn from, the states they then see, and these with what they forecast."""
    if validation is not None and validation.states > observe:
        ahead = min(steps, validation.states - observe)
        hidden = origins(validation, observe, ahead, start_from=min(observe, max(DELAYS)), most=100)
        return seen, hidden[:, :observe], hidden
    cut = max(seen.states * 2 // 3, 2)
    known = np.asarray(seen.known)
    whole = known[:, max(cut - max(DELAYS), 0) : cut].all(1) & known[:, cut:].any(1)
    if cut >= seen.states or not whole.any():
        return None
    return seen[:, :cut], seen[whole, :cut], seen[whole]


def _bounded(predicted: Trajectories, observed: Trajectories) -> bool:
    """Whether a forecast stays within a few times what was observed."""
    size = np.nanmax(np.abs(observed.q), axis=(0, 1))
    return bool((np.abs(predicted.q[:, observed.states :]) <= BOUND * size).all())


def _run_at_end(data: Trajectories) -> int:
    """States without a gap at the end of every trajectory."""
    known = np.asarray(data.known)[:, ::-1]
    return int(np.where(known.all(1), data.states, np.argmin(known, axis=1)).min())


@final
@dataclasses.dataclass(frozen=True)
class Lead:
    """Where a forecast is better than a rival; positions count states ahead from 1."""

    steps: int
    worse: tuple[tuple[int, int], ...]
    """First and last position of every stretch where it is not better."""

    @property
    def behind(self) -> int:
        """At so many positions it is not better."""
        return sum(last - first + 1 for first, last in self.worse)


def lead(own: Metrics, other: Metrics) -> Lead:
    """Compare mean squared errors position by position."""
    a, b = own.mse_normalised, other.mse_normalised
    better = (a < b) | (np.isfinite(a) & ~np.isfinite(b))  # a number beats one that has diverged
    edges = np.flatnonzero(np.diff(np.concatenate([[False], ~better, [False]]).astype(int)))
    stretches = tuple((int(a) + 1, int(b)) for a, b in edges.reshape(-1, 2))
    return Lead(len(better), stretches)
