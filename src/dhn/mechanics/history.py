"""Held-out runs with the states that went before them, so that short parts can be forecast, too."""

import numpy as np

from dhn.errors import UserError
from dhn.trajectories import Trajectories

LOST = 8
"""States that may be lost between two parts of a run."""


def with_history(before: Trajectories, data: Trajectories, observe: int) -> Trajectories:
    """Put the last states of `before` in front of runs that continue them.

    A run continues another if both have the same id and it begins within a few steps of its end;
    states lost between them stay lost. The others begin with their own first states.

    Arguments: before, data: parts of the same runs; observe: how many states to put in front.
    Returns: positions with `observe` more states where there were any.
    """
    rows = {x: i for i, x in enumerate(before.ids)}
    qs, ts, knowns = [], [], []
    for i, name in enumerate(data.ids):
        length = int(data.lengths[i])
        q, t = data.q[i, :length], data.times[i, :length]
        known = np.asarray(data.known)[i, :length]
        j = rows.get(name)
        if j is not None and length > 1:
            end = int(before.lengths[j])
            last, step = before.times[j, end - 1], float(np.median(np.diff(t)))
            lost = round((t[0] - last) / step) - 1
            if last < t[0] and lost <= LOST:
                head = slice(max(0, end - observe + max(lost, 0)), end)
                between = np.linspace(last, t[0], max(lost, 0) + 2)[1:-1]
                empty = np.full((len(between), data.dim), np.nan)
                q = np.concatenate([_turned(before.q[j, head], q, data.angles), empty, q])
                t = np.concatenate([before.times[j, head], between, t])
                gone = np.zeros(len(between), bool)
                known = np.concatenate([np.asarray(before.known)[j, head], gone, known])
        qs.append(q)
        ts.append(t)
        knowns.append(known)
    return Trajectories.from_list(
        qs, ts, known=knowns, names=data.names, angles=data.angles, units=data.units,
        ids=data.ids, code_group=data.code_group, noise=data.typical_noise, meta=data.meta,
        params=data.params,
    )  # fmt: skip


def _turned(head: np.ndarray, q: np.ndarray, angles: tuple[bool, ...]) -> np.ndarray:
    """Angles of the head moved by full turns so that they run on into q."""
    found = head.copy()
    for k in np.flatnonzero(angles):
        ends = head[np.isfinite(head[:, k]), k][-1:], q[np.isfinite(q[:, k]), k][:1]
        if all(map(len, ends)):
            found[:, k] += 2 * np.pi * np.round((ends[1][0] - ends[0][0]) / (2 * np.pi))
    return found


def held_back(train: Trajectories, share: float) -> tuple[Trajectories, Trajectories]:
    """Divide runs in time where no validation part was given.

    Arguments: train; share: of every run's states that go to validation.
    Returns: the earlier and the later part.
    """
    cut = [round(x * (1 - share)) for x in train.lengths]
    for id, c, n in zip(train.ids, cut, train.lengths, strict=True):
        if not 0 < c < n:
            raise UserError(
                f"trajectory {id!r} has {n} known states, too few to hold back some of them for "
                f"validation; leave it out."
            )
    parts = []
    for early in (True, False):
        rows = [
            slice(0, c) if early else slice(c, n) for c, n in zip(cut, train.lengths, strict=True)
        ]
        parts.append(
            Trajectories.from_list(
                [x[r] for x, r in zip(train.q, rows, strict=True)],
                [x[r] for x, r in zip(train.times, rows, strict=True)],
                known=[x[r] for x, r in zip(np.asarray(train.known), rows, strict=True)],
                names=train.names,
                angles=train.angles,
                units=train.units,
                ids=train.ids,
                code_group=train.code_group,
                noise=train.typical_noise,
                meta=train.meta,
                params=train.params,
            )
        )
    return parts[0], parts[1]
