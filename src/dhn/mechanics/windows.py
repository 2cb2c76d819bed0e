"""Forecast windows of held-out data, and errors and bands over them."""

import dataclasses
from typing import final

import numpy as np
from jaxtyping import Float, Int

from dhn.mechanics.predicting import Mechanics, predict
from dhn.mechanics.rows import Run, Scale, filled, measured
from dhn.trajectories import Trajectories
from dhn.trajectories.origins import origins

OBSERVED = 32
"""Positions that a forecast starts from."""
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


def windows_of(
    data: Trajectories, scale: Scale, ahead: int, observe: int = OBSERVED, most: int = MOST
) -> Windows:
    """Windows from many starting points of held-out runs.

    Arguments: data; scale; ahead: states to forecast; observe: states to see; most: windows.
    Returns: the windows.
    """
    found = origins(data, observe, ahead, start_from=1, most=most)
    return windows_from(found, scale, observe)


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
        run = filled(Run(i, t[use], scaled[i, use], mask[use], use), scale.step)
        place = np.full(data.states, -1)
        place[run.row[run.row >= 0]] = np.flatnonzero(run.row >= 0)
        pieces.append(run)
        rows.append(place[observe:])
    truth = np.where(seen[:, observe:] > 0, scaled[:, observe:], np.nan)
    times = data.times[:, observe:] - data.times[:, observe - 1 : observe]
    names = tuple(x.rpartition("@")[0] or x for x in data.ids)
    return Windows(pieces, rows, observe, truth, names, np.nanmedian(times, axis=0) / scale.time)


def forecasts(
    mechanics: Mechanics, windows: Windows, systems: Int[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "n H d"], Float[np.ndarray, "n H d"]]:
    """Means and standard deviations of the asked readings, scaled.

    Arguments: mechanics; windows; systems: (n,) index of each window's system.
    Returns: two arrays (n, H, d); NaN where a window asks for no row.
    """
    found = predict(mechanics, windows.pieces, systems, windows.observed)
    mean, sd = np.full(windows.truth.shape, np.nan), np.full(windows.truth.shape, np.nan)
    for i, rows in enumerate(windows.rows):
        asked = rows >= 0
        mean[i, asked] = found.mean[i, rows[asked]]
        sd[i, asked] = np.sqrt(found.variance[i, rows[asked]])
    return mean, sd


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
    Returns: the error in scaled units; infinite where a forecast is not finite.
    """
    mean, _ = forecasts(mechanics, windows, systems)
    near = windows.ahead <= until * (1 + 1e-9)
    error = errors(mean, windows, mechanics.layout.angles)[:, near]
    measured_there = np.isfinite(windows.truth[:, near])
    if not np.isfinite(error[measured_there]).all():
        return float("inf")
    return float(np.mean(np.sqrt(np.nanmean(error**2, axis=(0, 2)))))
