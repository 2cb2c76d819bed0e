"""Cartesian markers on a chain of links to the links' angles."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import final

import numpy as np
from jaxtyping import Bool, Float

from dhn.errors import UserError
from dhn.files.foreign.options import ImportOptions
from dhn.files.foreign.recording import Coordinates, resolve
from dhn.files.table import Table

_PASSES = 50  # Gauss-Newton converges in fewer than ten on an arc of 20 degrees
_OUTLIER = 4.0  # robust standard deviations beyond which a point has no weight
_UNCERTAIN = 0.02  # of the radius: about one degree in the angle
_VARYING = 0.05  # of its length: a rigid link does not change by more


@final
@dataclasses.dataclass(frozen=True)
class Pivot:
    """A fitted circle, in the unit of the file."""

    centre: Float[np.ndarray, " 2"]
    radius: float
    residual: float
    """Standard deviation of the points from the circle."""
    error: float
    """Standard error of the centre, in the direction in which it is larger."""

    def describe(self) -> str:
        """One line for the report."""
        x, y = self.centre
        return (
            f"pivot fitted at ({x:.6g}, {y:.6g}) ± {self.error:.2g}, radius {self.radius:.6g}, "
            f"points off the circle by {self.residual:.2g}"
        )

    def warnings(self) -> list[str]:
        """What makes the centre doubtful."""
        found = []
        if self.error > _UNCERTAIN * self.radius:
            found.append(
                f"the pivot is known only to {self.error / self.radius:.0%} of the radius: the "
                f"arc is short or noisy; give its position (pivot) if it is known"
            )
        if self.residual > 0.05 * self.radius:
            found.append(
                f"the marker leaves its circle by {self.residual / self.radius:.0%} of the "
                f"radius: does it move about a fixed pivot?"
            )
        return found


def fit_pivot(points: Float[np.ndarray, "N 2"]) -> Pivot:
    """The circle with the least squared distances from the points, outliers left out.

    An algebraic fit, which is linear but makes the radius of a short noisy arc too small, is the
    start of Gauss-Newton steps on the distances themselves.
    """
    points = points[np.isfinite(points).all(-1)]
    middle = points.mean(0) if len(points) else np.zeros(2)
    scale = float(np.sqrt(np.mean((points - middle) ** 2))) if len(points) else 0.0
    if len(points) < 5 or scale == 0:
        raise UserError("the pivot cannot be fitted: fewer than five points, or they never move.")
    x = (points - middle) / scale
    rows = np.concatenate([2 * x, np.ones((len(x), 1))], axis=1)
    solution, _, rank, _ = np.linalg.lstsq(rows, np.sum(x**2, axis=1), rcond=None)
    if rank < 3:
        raise UserError("the pivot cannot be fitted: the marker moves along a straight line.")
    a = np.array([*solution[:2], np.sqrt(solution[2] + solution[:2] @ solution[:2])])
    weight, jacobian, residual = np.ones(len(x)), rows, np.zeros(len(x))
    for _ in range(_PASSES):
        away = x - a[:2]
        distance = np.maximum(np.hypot(*away.T), 1e-12)
        residual = distance - a[2]
        typical = 1.4826 * np.median(np.abs(residual))
        weight = np.where(np.abs(residual) <= max(_OUTLIER * typical, 1e-12), 1.0, 0.0)
        jacobian = np.concatenate([-away / distance[:, None], -np.ones((len(x), 1))], axis=1)
        step = np.linalg.lstsq(jacobian * weight[:, None], -residual * weight, rcond=None)[0]
        a = a + step
        if np.abs(step).max() < 1e-12:
            break
    if not np.isfinite(a).all() or a[2] > 1e3:
        raise UserError("the pivot cannot be fitted: the marker moves along a straight line.")
    kept = weight > 0
    deviation = float(np.sqrt(np.sum(residual[kept] ** 2) / max(int(kept.sum()) - 3, 1)))
    covariance = np.linalg.pinv(jacobian[kept].T @ jacobian[kept])[:2, :2]
    error = deviation * float(np.sqrt(np.linalg.eigvalsh(covariance)[-1]))
    return Pivot(middle + scale * a[:2], scale * float(a[2]), scale * deviation, scale * error)


def link_angles(
    points: Float[np.ndarray, "N points 2"], y_down: bool = False
) -> tuple[Float[np.ndarray, "N links"], Float[np.ndarray, "N links"]]:
    """Angle and length of every link of a planar chain, pivot first and tip last.

    An angle is that of its own link against the downward vertical, counterclockwise positive, as
    in the built-in pendulums: a link of length l ends at `(l sin θ, -l cos θ)` from where it
    begins, with y upwards. Angles are in (-π, π]; unwrapping is another step.
    """
    link = np.diff(points, axis=1)
    x, up = link[..., 0], (-link[..., 1] if y_down else link[..., 1])
    return np.arctan2(x, -up), np.hypot(x, up)


def link_coordinates(
    table: Table,
    rows: Bool[np.ndarray, " N"],
    options: ImportOptions,
    numbers: Callable[[Table, Sequence[str], ImportOptions], np.ndarray],
) -> Coordinates:
    """The angles of all links; a pivot to be fitted is fitted on `rows`."""
    points = numbers(table, marker_columns(table, options), options).reshape(len(table), -1, 2)
    notes, warnings = [], []
    if options.pivot:
        centre = options.pivot
        if options.pivot == "fit":
            pivot = fit_pivot(points[rows, 0])
            centre, notes, warnings = pivot.centre, [pivot.describe()], pivot.warnings()
        first = np.broadcast_to(np.asarray(centre), (len(points), 1, 2))
        points = np.concatenate([first, points], axis=1)
    q, lengths = link_angles(points, options.y_down)
    short = np.flatnonzero(np.nanmax(lengths, axis=0, initial=0.0) == 0)
    if len(short):
        raise UserError(
            f"link {short[0] + 1} has no length: its two ends are at the same place in every row; "
            f"name the markers from the pivot to the tip, each once."
        )
    spread = np.nanstd(lengths, axis=0) / np.nanmean(lengths, axis=0)
    notes += [
        f"link {k + 1} changes its length by {x:.0%}: are the markers in the order pivot to tip, "
        f"x before y, and in one plane?"
        for k, x in enumerate(spread)
        if x > _VARYING
    ]
    links = range(1, q.shape[1] + 1)
    names = ("theta",) if len(links) == 1 else tuple(f"theta{k}" for k in links)
    columns = tuple(f"angle of link {k}" for k in links)
    angles = (True,) * len(links)
    return Coordinates(q, names, columns, angles, lengths, tuple(notes), tuple(warnings))


def marker_columns(table: Table, options: ImportOptions) -> list[str]:
    """x and y columns of all markers; a marker's name stands for its two columns.

    Numbers are positions of columns unless every one of them names a marker, as in x1, y1, x2, y2.
    """
    lower = {x.casefold(): x for x in table.columns}
    found = [
        (marker, [pair for pair in _pairs(marker.casefold()) if set(pair) <= lower.keys()])
        for marker in options.markers
    ]
    positions = any(marker.isdigit() and not pairs for marker, pairs in found)
    refs: list[str] = []
    for marker, pairs in found:
        named = marker not in table.columns and not (positions and marker.isdigit())
        refs += [lower[x] for x in pairs[0]] if named and pairs else [marker]
    fewest = 1 if options.pivot else 2
    if len(refs) < 2 * fewest or len(refs) % 2:
        raise UserError(
            f"markers needs x and y of at least {fewest} marker{'s' if fewest > 1 else ''}, pivot "
            f"first unless pivot is given or fitted: x0,y0,x1,y1,...; got {len(refs)} columns."
        )
    return [resolve(x, table.columns) for x in refs]


def _pairs(name: str) -> list[tuple[str, str]]:
    joints = [(f"{{}}{gap}{name}", f"{name}{gap}{{}}") for gap in ("_", ".", " ", "")]
    return [(form.format("x"), form.format("y")) for pair in joints for form in pair]
