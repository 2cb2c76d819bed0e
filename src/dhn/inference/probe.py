"""Probe: read a system's parameter off frozen codes (paper, Sec. 4.2).

The paper's probe is linear. Codes of systems that differ in one parameter lie along a curve,
though, and then the products of two codes read it far better.
"""

import dataclasses

import numpy as np
from jaxtyping import Float

PENALTIES = 10.0 ** np.arange(-12, 2)
MOST_FACTORS = 8
"""Principal directions of which products are taken: their number grows with the square."""
WORTH_IT = 0.5
"""A probe with products must have so much of the linear one's squared error, or less."""


@dataclasses.dataclass(frozen=True, eq=False)
class Probe:
    """Ridge regression from codes to one number, chosen on training codes alone."""

    mean: np.ndarray
    scale: np.ndarray
    directions: np.ndarray
    """(k, f): the directions of scaled codes whose products count too; none for a linear probe."""
    weights: np.ndarray
    intercept: float
    penalty: float
    error: float
    """Cross-validated standard error on the training codes."""

    @classmethod
    def fit(
        cls,
        codes: Float[np.ndarray, "n k"],
        target: Float[np.ndarray, " n"],
        *,
        linear: bool = False,
        folds: int = 5,
    ) -> "Probe":
        """Cross-validation picks the penalty and, unless `linear`, whether products are worth it.

        Then all codes fit the weights.
        """
        codes, target = np.asarray(codes, np.float64), np.asarray(target, np.float64)
        mean, scale = codes.mean(0), codes.std(0)
        scale = np.where(scale > 1e-12 * max(scale.max(), 1e-300), scale, np.inf)
        intercept = float(target.mean())

        def fit(directions: np.ndarray) -> "Probe":
            x = _features((codes - mean) / scale, directions)
            found = _ridge(x, target - intercept, min(folds, len(codes)))
            return cls(mean, scale, directions, *found[:1], intercept, *found[1:])

        plain = fit(np.zeros((codes.shape[1], 0)))
        if linear or len(codes) < 2:
            return plain
        _, _, rows = np.linalg.svd((codes - mean) / scale, full_matrices=False)
        curved = fit(rows[:MOST_FACTORS].T)
        return curved if curved.error**2 < WORTH_IT * plain.error**2 else plain

    @property
    def linear(self) -> bool:
        return self.directions.shape[1] == 0

    def __call__(self, codes: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
        x = (codes - self.mean) / self.scale
        return _features(x, self.directions) @ self.weights + self.intercept

    def standard_errors(
        self, codes: Float[np.ndarray, "n k"], root: Float[np.ndarray, "n k r"]
    ) -> Float[np.ndarray, " n"]:
        """Of each estimate: the probe's own, and what the code's uncertainty `root` does to it."""
        moved = [(self(codes + side) - self(codes - side)) / 2 for side in np.moveaxis(root, 2, 0)]
        return np.sqrt(self.error**2 + np.sum(np.square(moved), axis=0))


def _features(x: Float[np.ndarray, "n k"], directions: Float[np.ndarray, "k f"]) -> np.ndarray:
    """Scaled codes, then the products of every two of their parts along `directions`."""
    parts = x @ directions
    i, j = np.triu_indices(parts.shape[1])
    return np.concatenate([x, parts[:, i] * parts[:, j]], axis=1)


def _ridge(x: np.ndarray, y: np.ndarray, folds: int) -> tuple[np.ndarray, float, float]:
    """Weights, penalty and cross-validated root mean square error."""
    fold = np.arange(len(y)) % folds

    def solve(rows, penalty):
        gram = x[rows].T @ x[rows] / rows.sum() + penalty * np.eye(x.shape[1])
        return np.linalg.solve(gram, x[rows].T @ y[rows] / rows.sum())

    def score(penalty):
        errors = [
            (x[fold == f] @ solve(fold != f, penalty) - y[fold == f]) ** 2 for f in range(folds)
        ]
        return np.concatenate(errors).mean()

    everything = np.ones(len(y), bool)
    if folds == 1:
        return solve(everything, 1.0), 1.0, float("nan")
    scores = [score(penalty) for penalty in PENALTIES]
    best = float(PENALTIES[int(np.argmin(scores))])
    return solve(everything, best), best, float(np.sqrt(min(scores)))
