"""Forecast windows of held-out data, and errors and bands over them."""

import dataclasses
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from dhn.errors import UserError
from dhn.mechanics.predicting import Mechanics, predict
from dhn.mechanics.rows import Run, Scale, filled, measured
from dhn.trajectories import Trajectories

OBSERVED = 32
"""Positions that a forecast starts from."""
LEAST = 4
"""Measurements among the observed states."""
DIVERGED = 0.1
"""A model of which a greater share of forecasts diverges is useless."""
MOST = 128
"""Windows of a validation part."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Windows:
    """Windows to forecast: what is seen, what is asked, and what was measured there."""

    pieces: list[Run]
    """Observed rows and, behind them, rows to forecast."""
    rows: list[Int[np.ndarray, " H"]]
    """Rows of each piece that were asked for."""
    observed: int
    truth: Float[np.ndarray, "n H d"]
    """Scaled readings, NaN where nothing was measured."""
    names: tuple[str, ...]
    """Trajectory that each window comes from."""
    ahead: Float[np.ndarray, " H"]
    """Scaled times of the asked rows after the last observed one."""

    def take(self, part: slice) -> "Windows":
        """The windows of a slice."""
        return dataclasses.replace(
            self, pieces=self.pieces[part], rows=self.rows[part], truth=self.truth[part],
            names=self.names[part],
        )  # fmt: skip


def windows_of(
    data: Trajectories, scale: Scale, ahead: int, observe: int = OBSERVED, most: int = MOST
) -> Windows:
    """Windows from many starting points of held-out runs.

    Arguments: data; scale; ahead: states to forecast, of which the first and every `scale.stride`th
        are asked for; observe: states to see; most: windows.
    Returns: the windows.
    """
    seen = measured(data)[1].max(-1) > 0
    starts = [
        (i, k)
        for i, length in enumerate(data.lengths)
        for k in range(int(length) - observe)
        if seen[i, k + observe - 1] and seen[i, k : k + observe].sum() >= LEAST
    ]
    if not starts:
        raise UserError(
            f"no run has {observe} states with {LEAST} measurements among them and states to "
            f"forecast behind them; give longer runs or observe fewer."
        )
    kept = np.linspace(0, len(starts) - 1, min(most, len(starts))).round().astype(int)
    rows, firsts = np.array(starts)[kept].T
    asked = np.unique(np.append(1, np.arange(scale.stride, ahead + 1, scale.stride)))
    columns = firsts[:, None] + np.append(np.arange(observe), observe - 1 + asked)
    inside = columns < data.states
    columns = np.minimum(columns, data.states - 1)
    t = data.times[rows[:, None], columns]
    step = float(np.nanmedian(np.diff(data.times, axis=1)))
    good = inside & np.isfinite(t)
    behind = np.cumsum(~good, axis=1)  # padding has times, too
    t = np.where(good, t, np.nanmax(np.where(good, t, np.nan), axis=1)[:, None] + step * behind)
    q = np.where(good[..., None], data.q[rows[:, None], columns], np.nan)
    known = good & np.asarray(data.known)[rows[:, None], columns]
    ids = tuple(f"{data.ids[i]}@{k}" for i, k in zip(rows, firsts, strict=True))
    cut = Trajectories(q=q, t=t, known=known, angles=data.angles, ids=ids)
    return windows_from(cut, scale, observe)


def windows_from(data: Trajectories, scale: Scale, observe: int) -> Windows:
    """Every trajectory as one window.

    Arguments: data: trajectories whose first `observe` states are seen; scale; observe.
    Returns: the windows.
    """
    values, seen = measured(data)
    scaled = scale.scaled(values)
    if scale.relative:
        seen = np.cumprod(seen, axis=-1)
    pieces, rows = [], []
    for i in range(len(data)):
        mask = seen[i].copy()
        mask[observe:] = 0.0
        t = data.times[i] / scale.time
        good = np.flatnonzero(np.isfinite(t))
        first = int(np.argmax(mask.any(-1)))
        use = good[good >= first]
        run = filled(Run(i, t[use], scaled[i, use], mask[use], use), scale.coarse.step)
        place = np.full(data.states, -1)
        place[run.row[run.row >= 0]] = np.flatnonzero(run.row >= 0)
        pieces.append(run)
        rows.append(place[observe:])
    truth = np.where(seen[:, observe:] > 0, scaled[:, observe:], np.nan)
    times = data.times[:, observe:] - data.times[:, observe - 1 : observe]
    names = tuple(x.rpartition("@")[0] or x for x in data.ids)
    return Windows(pieces, rows, observe, truth, names, np.nanmedian(times, axis=0) / scale.time)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Forecasts:
    """Readings that a model expects in windows, scaled; NaN where a window asks for no row."""

    mean: Float[np.ndarray, "n H d"]
    variance: Float[np.ndarray, "n H d"]
    floor: Float[np.ndarray, "n 1 d"]
    """Part of the variance that is the sensor's, whatever the motion."""
    amplitude: Float[np.ndarray, " n"]
    """Velocities of the observed states over those of the training data, root mean squares."""
    velocity: Float[np.ndarray, "n H d"]
    diverged: Bool[np.ndarray, " n"]
    """Windows whose forecast is the last measured position, because the motion found for the
    observed ones does not stay finite: an outlier among few measurements, say."""


def forecasts(mechanics: Mechanics, windows: Windows, systems: Int[np.ndarray, " n"]) -> Forecasts:
    """Forecast every window from its observed rows.

    Arguments: mechanics; windows; systems: (n,) index of each window's system.
    Returns: means and variances (n, H, d).
    """
    found = predict(mechanics, windows.pieces, systems, forecast=True)
    d, places = mechanics.layout.dim, mechanics.layout.slices
    mean, variance = np.full(windows.truth.shape, np.nan), np.full(windows.truth.shape, np.nan)
    amplitude, velocity = np.zeros(len(windows.pieces)), np.full(windows.truth.shape, np.nan)
    diverged = np.zeros(len(windows.pieces), bool)
    for i, rows in enumerate(windows.rows):
        asked = rows >= 0
        mean[i, asked] = found.mean[i, rows[asked]]
        variance[i, asked] = found.variance[i, rows[asked]]
        velocity[i, asked] = found.state[i, rows[asked], d : 2 * d]
        seen = windows.pieces[i].seen > 0
        last = np.flatnonzero(seen.any(-1))[-1] + 1
        v = found.state[i, :last, d : 2 * d] / mechanics.scale.rate
        amplitude[i] = np.sqrt((v**2).mean())
        whole = np.isfinite(mean[i, asked]).all() and np.isfinite(variance[i, asked]).all()
        if not (whole and np.isfinite(amplitude[i])):
            ends = len(seen) - 1 - np.argmax(seen[::-1], axis=0)
            mean[i, asked] = windows.pieces[i].y[ends, np.arange(d)]
            variance[i, asked], velocity[i, asked], amplitude[i] = 1.0, 0.0, 1.0
            diverged[i] = True
    white, slow = (mechanics.theta[systems][:, places[x]] for x in ("log_white", "log_slow"))
    floor = (np.exp(2 * white) + np.exp(2 * slow))[:, None]
    return Forecasts(mean, variance, floor, amplitude, velocity, diverged)


def errors(
    mean: Float[np.ndarray, "n H d"], windows: Windows, angles: tuple[bool, ...]
) -> Float[np.ndarray, "n H d"]:
    """Forecast minus measurement, angles within half a turn.

    Arguments: mean: (n, H, d) forecasts; windows; angles.
    Returns: (n, H, d), NaN where nothing was measured.
    """
    error = mean - windows.truth
    turns = np.where(angles, 2 * np.pi * np.round(np.nan_to_num(error) / (2 * np.pi)), 0.0)
    return error - turns


def score(
    mechanics: Mechanics, windows: Windows, systems: Int[np.ndarray, " n"], until: float
) -> float:
    """Root mean square error up to a time ahead, the mean over horizons.

    Arguments: mechanics; windows; systems; until: scaled time.
    Returns: the error in scaled units; infinite where many forecasts diverge.
    """
    found = forecasts(mechanics, windows, systems)
    if found.diverged.mean() > DIVERGED:
        return float("inf")
    near = windows.ahead <= until * (1 + 1e-9)
    error = errors(found.mean, windows, mechanics.layout.angles)[:, near]
    return float(np.mean(np.sqrt(np.nanmean(error**2, axis=(0, 2)))))
