"""Linear probe: read a system's parameter off frozen codes (paper, Sec. 4.2)."""

import dataclasses

import numpy as np
from jaxtyping import Float

PENALTIES = 10.0 ** np.arange(-12, 2)


@dataclasses.dataclass(frozen=True, eq=False)
class LinearProbe:
    """Ridge regression from codes to one number; the penalty is chosen on training codes alone."""

    mean: np.ndarray
    scale: np.ndarray
    weights: np.ndarray
    intercept: float
    penalty: float
    error: float
    """Cross-validated standard error on the training codes."""

    @classmethod
    def fit(
        cls, codes: Float[np.ndarray, "n k"], target: Float[np.ndarray, " n"], folds: int = 5
    ) -> "LinearProbe":
        """Five-fold cross-validation picks the penalty; then all codes fit the weights."""
        codes, target = np.asarray(codes, np.float64), np.asarray(target, np.float64)
        mean, scale = codes.mean(0), codes.std(0)
        scale = np.where(scale > 1e-12 * max(scale.max(), 1e-300), scale, np.inf)
        x, intercept = (codes - mean) / scale, target.mean()
        y = target - intercept
        fold = np.arange(len(y)) % min(folds, len(y))

        def solve(rows, penalty):
            gram = x[rows].T @ x[rows] / rows.sum() + penalty * np.eye(x.shape[1])
            return np.linalg.solve(gram, x[rows].T @ y[rows] / rows.sum())

        def score(penalty):
            errors = [
                (x[fold == f] @ solve(fold != f, penalty) - y[fold == f]) ** 2
                for f in range(fold.max() + 1)
            ]
            return np.concatenate(errors).mean()

        everything = np.ones(len(y), bool)
        if fold.max() == 0:
            best, error = 1.0, np.nan
        else:
            scores = [score(penalty) for penalty in PENALTIES]
            best, error = PENALTIES[int(np.argmin(scores))], np.sqrt(min(scores))
        return cls(mean, scale, solve(everything, best), intercept, float(best), float(error))

    def __call__(self, codes: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
        return (codes - self.mean) / self.scale @ self.weights + self.intercept
