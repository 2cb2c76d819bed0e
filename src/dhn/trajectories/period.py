"""The characteristic time of a motion, in which forecasts are measured."""

import numpy as np

from dhn.trajectories.container import Trajectories


def oscillation_period(data: Trajectories) -> float | None:
    """Period of the sine that, with a straight line, fits a coordinate best; the median of all.

    Least squares, because a Fourier transform of one or two periods is off by a tenth. None where
    the data are too short to hold a period and a third.
    """
    if data.states < 16 or not data.is_uniform:
        return None
    clock = np.arange(data.states)
    rows = [
        np.interp(clock, clock[np.isfinite(x)], x[np.isfinite(x)])
        for x in data.q[:100].transpose(0, 2, 1).reshape(-1, data.states)
        if np.isfinite(x).sum() >= 16 and np.nanstd(x) > 0
    ]
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
    return data.states / turns * data.time_step if turns > 4 / 3 else None


def turnover_time(data: Trajectories) -> float | None:
    """`2π rms(q - mean) / rms(v)`, angles on the circle: exact for an oscillator, if v is velocity.

    For data that never repeat, such as those of a tumbling pendulum.
    """
    if data.v is None:
        return None
    found = []
    for k, angle in enumerate(data.angles):
        good = np.isfinite(data.q[..., k]) & np.isfinite(data.v[..., k])
        q, v = data.q[..., k][good], data.v[..., k][good]
        if not len(q) or not np.any(v):
            continue
        around = np.stack([np.cos(q), np.sin(q)]) if angle else q[None]
        spread = np.sum((around - around.mean(1, keepdims=True)) ** 2)
        found.append(2 * np.pi * float(np.sqrt(spread / np.sum(v**2))))
    return min(found, default=None)


def characteristic_period(data: Trajectories) -> float | None:
    """Of the oscillation; where there is none or angles wind around, the turnover time."""
    tumbles = bool(
        (np.nanmax(data.q, axis=1) - np.nanmin(data.q, axis=1))[:, list(data.angles)].max(initial=0)
        > 2 * np.pi
    )
    return turnover_time(data) if tumbles else oscillation_period(data) or turnover_time(data)
