"""The characteristic time of a motion, in which forecasts are measured."""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from dhn.trajectories.container import Trajectories


def oscillation_period(data: Trajectories) -> float | None:
    """Period of the sine that, with a straight line, fits a coordinate best; the median of all.

    Least squares, because a Fourier transform of one or two periods is off by a tenth. None where
    the data are too short to hold a period and a third. Gaps and uneven times are bridged by
    straight lines.
    """
    if data.states < 16:
        return None
    clock, step, rows = np.arange(data.states), data.usual_step, []
    for q, t in zip(data.q[:100], data.times[:100], strict=True):
        for x in q.T:
            good = np.isfinite(x) & np.isfinite(t)
            if good.sum() >= 16 and np.std(x[good]) > 0:
                place = clock if data.is_uniform else (t - t[0]) / step
                rows.append(np.interp(clock, place[good], x[good]))
    if not rows:
        return None
    cycles = np.geomspace(1.0, data.states / 4, 400)
    left = []
    for turns in cycles:
        angle = 2 * np.pi * turns * clock / data.states
        basis = np.stack([np.ones(len(clock)), clock / len(clock), np.cos(angle), np.sin(angle)])
        frame, _ = np.linalg.qr(basis.T)
        left.append(-((np.array(rows) @ frame) ** 2).sum(1))
    turns = float(np.median(cycles[np.argmin(left, axis=0)]))
    return data.states / turns * step if turns > 4 / 3 else None


def turnover(
    series: Iterable[tuple[Float[np.ndarray, " _"], Float[np.ndarray, " _"]]], angle: bool
) -> float | None:
    """`2π rms(q - mean) / rms(v)` of recordings (q, v) of one coordinate; exact for an oscillator.

    Arguments:
        series: Values and velocities, NaN where there is none.
        angle: Whether the coordinate is an angle; its spread is then measured on the circle.

    Returns:
        A time, or None where nothing moves.
    """
    spread, speed = 0.0, 0.0
    for q, v in series:
        good = np.isfinite(q) & np.isfinite(v)
        if good.any():
            around = np.stack([np.cos(q), np.sin(q)]) if angle else q[None]
            around = around[:, good]
            spread += float(np.sum((around - around.mean(1, keepdims=True)) ** 2))
            speed += float(np.sum(v[good] ** 2))
    return 2 * np.pi * float(np.sqrt(spread / speed)) if speed > 0 else None


def turnover_time(data: Trajectories) -> float | None:
    """`turnover` of the coordinate that moves fastest; None without velocities.

    For data that never repeat, such as those of a tumbling pendulum.
    """
    if data.v is None:
        return None
    d = range(data.dim)
    found = [
        turnover([(data.q[..., k].ravel(), data.v[..., k].ravel())], data.angles[k]) for k in d
    ]
    return min((x for x in found if x), default=None)


def characteristic_period(data: Trajectories) -> float | None:
    """Of the oscillation; where there is none or angles wind around, the turnover time."""
    tumbles = bool(
        (np.nanmax(data.q, axis=1) - np.nanmin(data.q, axis=1))[:, list(data.angles)].max(initial=0)
        > 2 * np.pi
    )
    return turnover_time(data) if tumbles else oscillation_period(data) or turnover_time(data)
