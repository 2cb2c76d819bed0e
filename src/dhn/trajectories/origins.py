"""Forecasts from many starting points: a long run as many short trials of a model."""

import numpy as np

from dhn.errors import UserError
from dhn.trajectories.container import Trajectories
from dhn.trajectories.segments import run_of
from dhn.trajectories.selection import each_state, of_rows

TURN = 2 * np.pi


def origins(
    data: Trajectories, observe: int, ahead: int, *, start_from: int = 1, most: int | None = None
) -> Trajectories:
    """Windows of `observe` states to be seen and up to `ahead` to be forecast, from everywhere.

    A forecast may start wherever the last `start_from` observed states are known and something
    after them is. Windows that reach past the end of their trajectory are filled up with unknown
    states, so that short horizons are measured from every start, long ones from fewer. Segments
    that overlap give every stretch of time once. Of more than `most` windows as many are kept,
    evenly spread. Angles begin within half a turn of zero.
    """
    if observe < 1 or ahead < 1 or observe >= data.states:
        raise UserError(
            f"a window needs at least one state to see and one to forecast within the "
            f"{data.states} states of a trajectory; got {observe} and {ahead}."
        )
    known = np.asarray(data.known)
    rows, starts = _starts(data, known, observe, ahead, start_from)
    if not len(rows):
        raise UserError(
            f"no trajectory has {start_from} known states in a row with known states after them "
            f"within its {data.states} states, the first {observe} observed; observe fewer."
        )
    if most is not None and len(rows) > most:
        kept = np.linspace(0, len(rows) - 1, most).round().astype(int)
        rows, starts = rows[kept], starts[kept]
    columns = starts[:, None] + np.arange(observe + ahead)
    inside = columns < data.states
    columns = np.minimum(columns, data.states - 1)

    def cut(x: np.ndarray) -> np.ndarray:
        shape = (*inside.shape, *(1,) * (x.ndim - 2))
        return np.where(inside.reshape(shape), x[rows[:, None], columns], np.nan)

    fields = each_state(data, cut, bands=False)
    turns = np.round(fields["q"][:, observe - 1 : observe] / TURN)
    fields["q"] = fields["q"] - TURN * np.where(data.angles, np.nan_to_num(turns), 0.0)
    ids = [f"{data.ids[row]}@{start}" for row, start in zip(rows, starts, strict=True)]
    return data.replace(
        t=_times(data, rows, starts, observe + ahead),
        known=known[rows[:, None], columns] & inside,
        **fields,
        **of_rows(data, rows, ids),
    )


def _times(data: Trajectories, rows: np.ndarray, starts: np.ndarray, states: int) -> np.ndarray:
    """(windows, states) times; behind the end of a trajectory, one usual step apart."""
    step = data.usual_step
    if data.is_uniform:
        return data.times[rows, starts][:, None] + step * np.arange(states)
    found = []
    for row, start in zip(rows, starts, strict=True):
        own = data.times[row, start : start + states]
        own = own[np.isfinite(own)]
        found.append(np.append(own, own[-1] + step * np.arange(1, states - len(own) + 1)))
    return np.array(found)


def _starts(
    data: Trajectories, known: np.ndarray, observe: int, ahead: int, start_from: int
) -> tuple[np.ndarray, np.ndarray]:
    """(row, first state) of every window that a forecast can be made and measured in."""
    counted = np.concatenate([np.zeros((len(data), 1), int), np.cumsum(known, axis=1)], axis=1)
    begin = np.arange(data.states - observe)
    end = begin + observe
    first = np.maximum(end - start_from, 0)
    stop = np.minimum(end + ahead, data.states)
    before = counted[:, end] - counted[:, first]
    after = counted[:, stop] - counted[:, end]
    found: dict[tuple[str, float], tuple[int, int, int]] = {}
    for row, start in np.argwhere((before >= start_from) & (after >= 1)):
        time = float(data.times[row, start])
        place = (run_of(data.ids[row]), round(time / data.time_step) if data.is_uniform else time)
        best = found.get(place)
        if best is None or after[row, start] > best[2]:
            found[place] = (int(row), int(start), int(after[row, start]))
    rows, starts, _ = np.array(list(found.values()), dtype=int).reshape(-1, 3).T
    return rows, starts
