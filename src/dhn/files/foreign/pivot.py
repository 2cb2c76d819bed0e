"""The pivot of a pendulum from the path of one marker: the centre of a circle."""

import dataclasses
from typing import final

import numpy as np
from jaxtyping import Float

from dhn.errors import UserError

_PASSES = 50  # Gauss-Newton converges in fewer than ten on an arc of 20 degrees
_OUTLIER = 4.0  # robust standard deviations beyond which a point has no weight
_UNCERTAIN = 0.02  # of the radius: about one degree in the angle


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
