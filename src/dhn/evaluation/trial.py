"""A trained model tested on states that it was not given, beside the rivals that it has to beat."""

import dataclasses
import warnings
from typing import Any, final

import numpy as np

from dhn.errors import UserError
from dhn.estimator.answers import AbstractAnswers, hidden, keep_known
from dhn.estimator.learning import OBSERVED
from dhn.evaluation.blocks import BlockDiagnostics, diagnose
from dhn.evaluation.delays import wrapped
from dhn.evaluation.metrics import Metrics, compare
from dhn.evaluation.rivals import Rival, held_windows, rivals
from dhn.mechanics.history import with_history
from dhn.reconstruct.posterior import Result
from dhn.trajectories.container import Trajectories
from dhn.trajectories.origins import origins
from dhn.trajectories.period import characteristic_period
from dhn.trajectories.validity import forecast_validity, measured_validity

MOST = 200  # windows; more would cost time and change no picture
PERIODS = 2.0
"""How far ahead long measured runs are forecast, in characteristic periods."""
FEW_RUNS = 20
"""Fewer trajectories than this, of many periods each, are forecast from many starting points."""
MARKS = {"0.1 period": 0.1, "0.5 period": 0.5, "1 period": 1.0}


TIED = 0.97
"""Share of the model's error above which a rival counts as equally good."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Trial:
    """A model's forecast of states that it was not given, and the forecasts of rivals."""

    truth: Trajectories
    observe: int
    prediction: Trajectories
    metrics: Metrics
    others: list[Rival]
    poor: int
    left_out: int
    period: float | None
    blocks: BlockDiagnostics | None
    """Of a network with blocks."""
    validation: float | None = None
    """The model's error on the validation windows that rivals are chosen by."""

    @property
    def winner(self) -> Rival | None:
        """The rival of least error on the validation part, if the model's is clearly larger."""
        found = [x for x in self.others if x.validation is not None]
        best = min(found, key=lambda x: x.validation or 0.0, default=None)
        if best is None or self.validation is None or best.validation is None:
            return None
        return best if best.validation < TIED * self.validation else None

    @property
    def unit(self) -> str:
        """Of time; empty where the data state none."""
        return self.truth.units.get("t", "")

    @property
    def rows(self) -> dict[str, int]:
        """A good, a usual and a bad trajectory, of those measured to their end if there are."""
        whole = np.asarray(self.truth.known)[:, self.observe :].all(1)
        chosen = np.flatnonzero(whole) if whole.any() else np.arange(len(self.truth))
        order = chosen[np.argsort(self.metrics.per_trajectory[chosen])]
        picks = {"best": order[0], "median": order[len(order) // 2], "worst": order[-1]}
        if len(order) < 3:
            picks = {"forecast": order[0]}
        return {name: int(row) for name, row in picks.items()}

    def error(self, metrics: Metrics, ahead: int) -> float:
        """Root mean square error of q, in the data's units, so many states ahead."""
        here = metrics.steps == self.observe + ahead - 1
        return float(np.sqrt(metrics.mse[here][0])) if here.any() else float("nan")

    def relative_errors(self) -> np.ndarray:
        """(H,) root mean square error by time ahead, in standard deviations of the true motion."""
        error, truth = self._errors()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # times at which nothing was measured
            spread = np.nanstd(truth, axis=(0, 1))
            found = np.sqrt(np.nanmean((error / np.where(spread > 0, spread, 1.0)) ** 2, (0, 2)))
        return found

    def _errors(self) -> tuple[np.ndarray, np.ndarray]:
        """(n, H, d) forecast minus truth, and (n, T, d) the truth; NaN where nothing was known."""
        truth = np.where(self.truth.known_q, self.truth.q, np.nan)
        error = self.prediction.q[:, self.observe :] - truth[:, self.observe :]
        return wrapped(error, self.truth.angles), truth

    def valid_until(self) -> dict[str, Any] | None:
        """Until when the bands promise a valid forecast, and until when it was; None without bands.

        The standard deviations are those of the truth in each window.
        """
        promised = forecast_validity(self.prediction, self.truth)
        if promised is None:
            return None
        error, truth = self._errors()
        seen = self.observe
        times = self.truth.times[:, seen:] - self.truth.times[:, seen - 1 : seen]
        measured = measured_validity(np.nanmedian(times, axis=0), error, np.nanstd(truth, axis=1))
        found = promised.summary(self.unit)
        words = f"{found['sentence']}; by these data: {measured:.3g} {self.unit}".rstrip()
        return {**found, "measured": measured, "sentence": words}


def marks(period: float | None, time_step: float, steps: int) -> dict[str, int]:
    """Name -> states ahead at which errors are given: fractions of a period, if any."""
    found = {"one state": 1, "the end": steps}
    if period is not None:
        found |= {name: round(share * period / time_step) for name, share in MARKS.items()}
    else:
        found |= {"a quarter": steps // 4, "half": steps // 2}
    found = {name: k for name, k in found.items() if 1 <= k <= steps}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def windows(
    data: Trajectories,
    observe: int,
    ahead: int | None,
    period: float | None,
    start_from: int,
    most: int = MOST,
) -> tuple[Trajectories, int]:
    """What is seen and forecast, and how many trajectories give no such window.

    Without `ahead`, the whole rest of every trajectory from its beginning; but measured runs of
    many periods are forecast two periods ahead, from many starting points.
    """
    if ahead is not None and ahead > data.states - observe:
        raise UserError(
            f"{ahead} states cannot be compared: {data.states - observe} follow the {observe} that "
            f"are observed. Look less far ahead, or observe fewer."
        )
    if ahead is None and len(data) < FEW_RUNS and period is not None:
        # Of short runs two thirds of the rest, so that the farthest state is met from some starts.
        rest = max(1, 2 * (data.states - observe) // 3)
        ahead = min(rest, max(1, round(PERIODS * period / data.usual_step)))
    if ahead is not None:
        found = origins(data, observe, ahead, start_from=start_from, most=most)
        used = {name.rpartition("@")[0] for name in found.ids}
        return found, len(set(data.ids) - used)
    known = np.asarray(data.known)
    usable = known[:, observe - start_from : observe].all(1) & known[:, observe:].any(1)
    rows = np.flatnonzero(usable)[:most]
    if not rows.size:
        raise UserError(
            f"no trajectory has its states {observe - start_from} to {observe - 1} without a gap "
            f"and measured states after them; observe another number."
        )
    return data[rows], len(data) - len(rows)


def try_out(
    model: AbstractAnswers,
    data: Trajectories,
    *,
    train: Trajectories | None = None,
    validation: Trajectories | None = None,
    observe: int | None = None,
    ahead: int | None = None,
    most: int = MOST,
) -> Trial:
    """Forecast from the first states of windows (see `windows`), and let the rivals do the same.

    Where measured data continue the runs of the training or validation part, forecasts start with
    the last states of these (see `with_past`).
    """
    alone = data.states
    data = with_past(data, train, validation, OBSERVED if observe is None else observe)
    if observe is None:
        observe = OBSERVED if data.states > alone else min(OBSERVED, alone // 2)
    if not 1 <= observe < data.states:
        raise UserError(
            f"the observed states must number between 1 and {data.states - 1}, one less than the "
            f"states of the data; got {observe}."
        )
    period = characteristic_period(data if train is None else train)
    truth, left_out = windows(data, observe, ahead, period, 1, most)
    asked = hidden(truth, observe)
    found = model.reconstruct(asked)
    prediction = keep_known(asked, found.trajectories)
    network = model.network
    others = rivals(truth, observe, train, validation)
    own = None
    if train is not None and validation is not None and others[-1].validation is not None:
        own = _held_error(model, train, validation, observe, truth.states - observe)
    return Trial(
        truth=truth,
        observe=observe,
        prediction=prediction,
        metrics=compare(prediction, truth),
        others=others,
        poor=sum(result != Result.OK for result in found.result),
        left_out=left_out,
        period=period,
        blocks=None if network is None else diagnose(network, truth, found.codes),
        validation=own,
    )


def with_past(
    data: Trajectories, train: Trajectories | None, validation: Trajectories | None, observe: int
) -> Trajectories:
    """Measured runs with the last states of earlier parts of the same runs in front of them.

    A test part of a short run may have fewer states than a forecast observes.
    """
    if train is None or train.p is not None or data.p is not None:
        return data
    before = train.replace(v=None)
    if validation is not None:
        before = with_history(before, validation.replace(v=None), observe)
    found = with_history(before, data.replace(v=None), observe)
    return found if found.states > data.states else data


def _held_error(
    model: AbstractAnswers, train: Trajectories, validation: Trajectories, observe: int, steps: int
) -> float | None:
    """The model's error on the windows that rivals are chosen by."""
    held = held_windows(
        train.replace(v=None, p=None), validation.replace(v=None, p=None), observe, steps
    )
    if held is None:
        return None
    found = model.reconstruct(hidden(held.windows, observe)).trajectories
    return held.error(found.q[:, observe:], observe)


def horizons(trial: Trial) -> list[dict[str, Any]]:
    """Errors at a few times ahead at which something was measured, of the model and the rivals."""
    step = trial.truth.usual_step
    rows = []
    last = trial.truth.states - trial.observe
    while last > 1 and not np.isfinite(trial.error(trial.metrics, last)):
        last -= 1
    for name, k in marks(trial.period, step, last).items():
        row = {"ahead": name, "states": k, "time": k * step}
        row["forecast"] = trial.error(trial.metrics, k)
        row |= {rival.name: trial.error(rival.metrics, k) for rival in trial.others}
        rows.append(row)
    return rows
