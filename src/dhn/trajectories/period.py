"""The characteristic time of a motion, in which forecasts are measured."""

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


def turnover_time(data: Trajectories) -> float | None:
    """`2π rms(q - mean) / rms(v)` of the coordinate that moves fastest; exact for an oscillator.

    For data that never repeat, such as those of a tumbling pendulum. Angles are measured on the
    circle. Without measured velocities, the speed follows from changes of position.

    Arguments:
        data: Trajectories.

    Returns:
        A time, or None where nothing moves.
    """
    found = []
    for k, angle in enumerate(data.angles):
        q = data.q[..., k]
        speed = (
            _mean_square_change(q, data.times) if data.v is None else _mean_square(data.v[..., k])
        )
        around = np.stack([np.cos(q), np.sin(q)]) if angle else q[None]
        around = around[:, np.isfinite(q)]
        if speed > 0:
            spread = float(np.sum(np.var(around, axis=1)))
            found.append(2 * np.pi * float(np.sqrt(spread / speed)))
    return min((x for x in found if x), default=None)


def _mean_square(x: np.ndarray) -> float:
    good = x[np.isfinite(x)]
    return float(np.mean(good**2)) if len(good) else 0.0


def _mean_square_change(q: Float[np.ndarray, "n T"], t: Float[np.ndarray, "n T"]) -> float:
    """Mean square speed. Its bias by noise is removed: it is constant in the change of position,
    while the motion's part grows with the square of the interval."""
    squares = []
    for lag in (1, 2):
        change, interval = q[:, lag:] - q[:, :-lag], t[:, lag:] - t[:, :-lag]
        good = np.isfinite(change) & np.isfinite(interval)
        if not good.any():
            return 0.0
        squares.append((np.mean(change[good] ** 2), np.mean(interval[good] ** 2)))
    (near, short), (far, long) = squares
    return float(max(far - near, 0.0) / (long - short)) if long > short else 0.0


def characteristic_period(data: Trajectories) -> float | None:
    """Of the oscillation; where there is none or angles wind around, the turnover time."""
    tumbles = bool(
        (np.nanmax(data.q, axis=1) - np.nanmin(data.q, axis=1))[:, list(data.angles)].max(initial=0)
        > 2 * np.pi
    )
    return turnover_time(data) if tumbles else oscillation_period(data) or turnover_time(data)
