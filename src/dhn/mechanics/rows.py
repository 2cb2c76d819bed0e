"""Measured runs in scaled units, cut into stretches that a filter runs over."""

import dataclasses
import math
from typing import final

import numpy as np
from jaxtyping import Float, Int

from dhn.errors import UserError
from dhn.mechanics.filtering import Rows
from dhn.mechanics.local import degree_of, local_states
from dhn.trajectories import Trajectories
from dhn.trajectories.period import characteristic_period

LENGTHS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
"""Rows of a stretch: few shapes, so that new data rarely compile anew."""
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Stretches side by side, for the same reason."""
PERIODS = 8.0
"""Length of a stretch for fitting."""
LONGEST_STEP = 0.15
"""Step of the integrator in periods / 2π; order four then errs by 1e-5 a period."""
STATES = 60
"""Of a period that a fit needs; of about twice as many, every second is used, and so on."""
ENOUGH = 12000
"""Rows that a fit uses at most, from everywhere in the data: more would take minutes and change
coefficients by less than what no formula describes."""
HOLE = 1.5
"""A step longer than so many usual ones is filled with rows without measurements."""
WIDEST_HOLE = 2.0
"""Periods; a longer hole begins a new run."""
ALIKE = 20.0
"""Coordinates whose spreads differ by less are taken to have one unit."""
START_SPREAD = (0.1, 0.3)
"""Spread of the state before the first row, q in scaled units and v in its own spread; more where
the first measurements tell less."""


@final
@dataclasses.dataclass(frozen=True)
class Scale:
    """Units of the coefficients, and the chain of angles."""

    time: float
    """Seconds (or what the data have) of one scaled unit of time."""
    offset: Float[np.ndarray, " d"]
    size: Float[np.ndarray, " d"]
    rate: Float[np.ndarray, " d"]
    """Standard deviation of the velocities, scaled."""
    step: float
    """Usual step between rows, scaled."""
    relative: bool = False
    """Whether angles are measured against the link before; the model's are against the vertical."""

    @property
    def substeps(self) -> int:
        """Integrator steps between two usual rows."""
        return max(1, int(np.ceil(self.step / LONGEST_STEP - 1e-9)))

    @property
    def stride(self) -> int:
        """Rows from one that a fit uses to the next."""
        return max(1, round(2 * np.pi / self.step / STATES))

    @property
    def coarse(self) -> "Scale":
        """The same units with the step between the rows that a fit uses."""
        return dataclasses.replace(self, step=self.stride * self.step)

    def scaled(self, q: Float[np.ndarray, "*b d"]) -> Float[np.ndarray, "*b d"]:
        """Coordinates in scaled units."""
        z = (q - self.offset) / self.size
        return np.cumsum(z, axis=-1) if self.relative else z

    def unscaled(self, z: Float[np.ndarray, "*b d"]) -> Float[np.ndarray, "*b d"]:
        """The inverse of `scaled`."""
        if self.relative:
            z = np.diff(z, axis=-1, prepend=0.0)
        return z * self.size + self.offset


@final
@dataclasses.dataclass(frozen=True)
class Run:
    """One run on its own times, scaled; rows without any measurement are allowed."""

    source: int
    """Index of the trajectory it comes from."""
    t: Float[np.ndarray, " N"]
    y: Float[np.ndarray, "N d"]
    seen: Float[np.ndarray, "N d"]
    row: Int[np.ndarray, " N"]
    """Index of the state in its trajectory, -1 for rows put into holes."""

    def __len__(self) -> int:
        return len(self.t)

    def take(self, part: slice) -> "Run":
        """The rows of a slice."""
        rest = (x[part] for x in (self.t, self.y, self.seen, self.row))
        return Run(self.source, *rest)


def measured(data: Trajectories) -> tuple[np.ndarray, np.ndarray]:
    """Values (n, T, d) and whether each was measured, (n, T, d) of 0 and 1.

    A complete state that is not known was interpolated; of an incomplete one, what is there counts.
    """
    finite = np.isfinite(data.q)
    seen = finite & (np.asarray(data.known) | ~finite.all(-1))[..., None]
    return np.where(seen, data.q, 0.0), seen * 1.0


def scale_of(data: Trajectories, relative: bool = False) -> Scale:
    """Period, spread and usual step of training data.

    Arguments: data: the training part; relative: see `Scale`.
    Returns: the scale.
    """
    steps = np.diff(data.times, axis=1)
    steps = steps[np.isfinite(steps)]
    if not len(steps):
        raise UserError("mechanics need runs of several states; got single states.")
    step = float(np.median(steps))
    angle = np.array(data.angles)
    y, seen = measured(data)
    if seen.sum((0, 1)).min() < 16:
        raise UserError(
            f"mechanics need at least 16 measured values of every coordinate; got "
            f"{int(seen.sum((0, 1)).min())}. Give longer runs."
        )
    mean = (y * seen).sum((0, 1)) / seen.sum((0, 1))
    deviation = np.sqrt((((y - mean) * seen) ** 2).sum((0, 1)) / seen.sum((0, 1)))
    if (deviation <= 0).any():
        raise UserError("a coordinate never changes; leave it out.")
    if not angle.all():  # one unit for all lengths, so that springs see differences
        lengths = deviation[~angle]
        if lengths.max() < ALIKE * lengths.min():
            deviation = np.full_like(deviation, np.sqrt((lengths**2).mean()))
    offset, size = np.where(angle, 0.0, mean), np.where(angle, 1.0, deviation)
    rough = Scale(1.0, offset, size, np.ones(data.dim), step, relative)
    q, v = _velocities(data, rough, 9)
    dense = data.replace(q=q, v=v, p=None, known=np.isfinite(q).all(-1))
    period = characteristic_period(dense)
    if period is None or not np.isfinite(period):
        raise UserError("no period can be found in the data; give runs of two periods or more.")
    time = period / (2 * np.pi)
    scale = dataclasses.replace(rough, time=time, step=step / time)
    _, v = _velocities(data, scale, window_of(scale))
    rate = np.sqrt(np.nanmean(v**2, axis=(0, 1)))
    return dataclasses.replace(scale, rate=rate)


def _velocities(data: Trajectories, scale: Scale, window: int) -> tuple[np.ndarray, np.ndarray]:
    q, v = np.full(data.q.shape, np.nan), np.full(data.q.shape, np.nan)
    for run in runs_of(data, scale, split=False):
        found = local_states(run.t, run.y, run.seen, window, data.angles)
        real = run.row >= 0
        rows = run.row[real]
        q[run.source, rows], v[run.source, rows] = found.q[real], found.v[real]
    return q, v


def runs_of(data: Trajectories, scale: Scale, split: bool = True) -> list[Run]:
    """Every trajectory as scaled rows; holes are filled with empty rows or, if long, cut.

    Arguments: data; scale; split: whether long holes begin a new run.
    Returns: the runs in the order of the trajectories.
    """
    values, seen = measured(data)
    values = scale.scaled(values)
    if scale.relative:  # a link's angle is known where those before it are
        seen = np.cumprod(seen, axis=-1)
    found = []
    for i in range(len(data)):
        rows = np.flatnonzero(seen[i].any(-1))
        if len(rows) < 2:
            continue
        rows = np.arange(rows[0], rows[-1] + 1)
        rows = rows[np.isfinite(data.times[i, rows])]
        pieces = [rows]
        if split:
            good = rows[seen[i, rows].any(-1)]
            far = np.diff(data.times[i, good]) / scale.time > WIDEST_HOLE * 2 * np.pi
            cuts = good[1:][far]
            pieces = np.split(rows, np.searchsorted(rows, cuts))
        for piece in pieces:
            last = np.flatnonzero(seen[i, piece].any(-1))
            if not len(last):
                continue
            piece = piece[: last[-1] + 1]
            t = data.times[i, piece] / scale.time
            found.append(
                filled(Run(i, t, values[i, piece], seen[i, piece], piece), scale.coarse.step)
            )
    return found


def filled(run: Run, step: float) -> Run:
    """Steps much longer than `step` are divided by rows without measurements."""
    parts = np.maximum(np.ceil(np.diff(run.t) / step - (HOLE - 1)), 1).astype(int)
    if (parts == 1).all():
        return run
    index = np.concatenate([[0], np.cumsum(parts)])
    count = index[-1] + 1
    t = np.interp(np.arange(count), index, run.t)
    y, seen = np.zeros((count, run.y.shape[1])), np.zeros((count, run.y.shape[1]))
    row = np.full(count, -1)
    y[index], seen[index], row[index] = run.y, run.seen, run.row
    return Run(run.source, t, y, seen, row)


def fitting_stretches(runs: list[Run], scale: Scale) -> list[Run]:
    """Stretches of about `PERIODS` periods; of many, some from everywhere in every trajectory.

    Arguments: runs; scale.
    Returns: the stretches.
    """
    wanted = max(int(PERIODS * 2 * np.pi / scale.step), 16)
    longest = max(len(x) for x in runs)
    length = rounded_up(min(wanted, longest), LENGTHS)
    found = []
    for run in runs:
        for start in range(0, len(run), length):
            piece = run.take(slice(start, start + length))
            if piece.seen.sum() >= 8 * run.y.shape[1]:
                found.append(piece)
    share = ENOUGH / max(sum(len(x) for x in found), 1)
    chosen = []
    for source in dict.fromkeys(x.source for x in found):
        own = [x for x in found if x.source == source]
        count = min(len(own), max(1, round(share * len(own))))
        chosen += [own[k] for k in np.linspace(0, len(own) - 1, count).round().astype(int)]
    return chosen


def rounded_up(number: int, steps: tuple[int, ...]) -> int:
    """The first of the steps that holds a number; beyond them, multiples of the last."""
    for x in steps:
        if x >= number:
            return x
    return -(-number // steps[-1]) * steps[-1]


def stacked(
    pieces: list[Run], scale: Scale, angles: tuple[bool, ...], shape: tuple[int, int] | None = None
) -> Rows:
    """Stretches as arrays of one shape, with a first state each from a local polynomial.

    Arguments: pieces; scale; angles; shape: pieces and rows to pad to.
    Returns: the rows, by default of a shape in `COUNTS` and `LENGTHS`; padding has no measurements.
    """
    longest, d = max(len(x) for x in pieces), len(angles)
    count, length = shape or (rounded_up(len(pieces), COUNTS), rounded_up(longest, LENGTHS))
    step, y = np.zeros((count, length)), np.zeros((count, length, d))
    seen, mean = np.zeros((count, length, d)), np.zeros((count, 3 * d))
    least = np.concatenate([np.full(d, START_SPREAD[0]), START_SPREAD[1] * scale.rate])
    spread = np.tile(least, (count, 1))
    for i, piece in enumerate(pieces):
        n = len(piece)
        step[i, 1:n] = np.diff(piece.t)
        y[i, :n], seen[i, :n] = piece.y, piece.seen
        for k in range(d):
            mean[i, k], mean[i, d + k], doubt = _first_state(piece, k, angles[k], window_of(scale))
            spread[i, d + k] = max(START_SPREAD[1], doubt) * scale.rate[k]
    return Rows(step, y, seen, mean, spread)


def _first_state(run: Run, coordinate: int, angle: bool, window: int) -> tuple[float, float, float]:
    """Position and velocity at the first row, from the first measurements of a coordinate.

    Also the error of the velocity that a polynomial of its degree makes, as share of the usual
    velocity: few measurements over a long time tell little, and a filter that is too sure of its
    first state would take what follows for outliers.
    """
    rows = np.flatnonzero(run.seen[:, coordinate] > 0)[:window]
    if not len(rows):
        return 0.0, 0.0, 1.0
    t, y = run.t[rows], run.y[rows, coordinate, None]
    found = local_states(t, y, np.ones_like(y), len(rows), (angle,), at=slice(0, 1))
    q, v = float(found.q[0, 0]), float(found.v[0, 0])
    if not (np.isfinite(q) and np.isfinite(v)):
        return float(y[0, 0]), 0.0, 1.0
    degree = degree_of(len(rows))
    doubt = float((t[-1] - t[0]) ** degree / (2 * math.factorial(degree)))
    return q - v * float(t[0] - run.t[0]), v, min(1.0, doubt)


def window_of(scale: Scale) -> int:
    """Rows of a local polynomial: a quarter of a period, 7 to 41, an odd number."""
    return int(np.clip(round(0.25 * 2 * np.pi / scale.step), 7, 41)) | 1
