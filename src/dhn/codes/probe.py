"""Probe: read a system's parameter off frozen codes (paper, Sec. 4.2).

The paper's probe is linear. Codes of systems that differ in one parameter lie along a curve,
though, which a long training may bend strongly. What a line leaves over is then a smooth function
of the code, which a few hundred training codes determine.
"""

import dataclasses
from typing import final

import numpy as np
from jaxtyping import Float

from dhn.blocks import Codes

PENALTIES = 10.0 ** np.arange(-12, 2)
WIDTHS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Of the Gaussian kernel, over the root mean square distance of codes from their mean."""
MOST_CENTRES = 512
"""Training codes that the kernel is laid on: the work grows with the cube of their number."""
NEGLIGIBLE = 1e-6
"""A line that leaves no more than this share of the target's spread needs no bend."""
WORTH_IT = 0.5
"""A curved probe must have so much of the linear one's squared error, or less."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Probe:
    """Ridge regression from codes to one number, chosen on training codes alone."""

    mean: np.ndarray
    scale: np.ndarray
    weights: np.ndarray
    intercept: float
    error: float
    """Cross-validated standard error on the training codes."""
    bend: "Bend | None" = None
    """What is added to the line; None for a linear probe."""

    @classmethod
    def fit(
        cls, codes: Codes, target: Float[np.ndarray, " n"], *, linear: bool = False, folds: int = 5
    ) -> "Probe":
        """Cross-validation picks the penalty and, unless `linear`, whether a bend is worth it.

        Then all codes fit the weights.
        """
        codes, target = np.asarray(codes, np.float64), np.asarray(target, np.float64)
        mean, scale = codes.mean(0), codes.std(0)
        scale = np.where(scale > 1e-12 * scale.max(initial=1e-300), scale, np.inf)
        intercept = float(target.mean())
        x, y = (codes - mean) / scale, target - intercept
        weights, error = _ridge(x, y, min(folds, len(codes)))
        line = cls(mean, scale, weights, intercept, error)
        # Nothing to bend: codes that never moved, or a line that leaves nothing over.
        straight = not np.isfinite(scale).any() or not line.error > NEGLIGIBLE * target.std()
        if linear or len(codes) < 2 or straight:
            return line
        bend, error = Bend.fit(codes, target - line(codes), min(folds, len(codes)))
        if not error**2 < WORTH_IT * line.error**2:
            return line
        return dataclasses.replace(line, bend=bend, error=error)

    @property
    def linear(self) -> bool:
        return self.bend is None

    def __call__(self, codes: Codes) -> Float[np.ndarray, " n"]:
        line = (codes - self.mean) / self.scale @ self.weights + self.intercept
        return line if self.bend is None else line + self.bend(codes)

    def standard_errors(
        self, codes: Codes, root: Float[np.ndarray, "n k r"]
    ) -> Float[np.ndarray, " n"]:
        """Of each estimate: the probe's own, and what the code's uncertainty `root` does to it.

        The probe's own grows where no training code is near.
        """
        moved = [(self(codes + side) - self(codes - side)) / 2 for side in np.moveaxis(root, 2, 0)]
        beyond = 0.0 if self.bend is None else self.bend.variance(codes)
        return np.sqrt(self.error**2 + beyond + np.sum(np.square(moved), axis=0))


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Bend:
    """Kernel ridge regression with a Gaussian kernel; it fades far from the training codes."""

    centres: np.ndarray
    """(m, k)"""
    width: float
    weights: np.ndarray
    root: np.ndarray
    """(m, m): `RᵀR` is the inverse of kernel and penalty."""
    amplitude: float
    """Variance of the Gaussian process whose most likely course this is."""

    @classmethod
    def fit(cls, codes: Codes, rest: Float[np.ndarray, " n"], folds: int) -> "tuple[Bend, float]":
        """Leaving codes out one by one chooses width and penalty; whole folds estimate the error.

        One by one is cheap, but too optimistic where errors are near round-off.
        """
        chosen = np.unique(np.linspace(0, len(codes) - 1, MOST_CENTRES).astype(int))
        centres, rest = codes[chosen], rest[chosen]
        spread = max(float(np.sqrt(codes.var(0).sum())), 1e-300)
        best = (np.inf, spread, 1.0)
        for width in WIDTHS:
            values, vectors = np.linalg.eigh(_kernel(centres, centres, width * spread))
            turned = vectors.T @ rest
            for penalty in PENALTIES[PENALTIES >= 1e-10]:
                inverse = 1.0 / (np.maximum(values, 0.0) + penalty)
                left_out = vectors @ (inverse * turned) / (vectors**2 @ inverse)
                best = min(best, (float(np.mean(left_out**2)), width * spread, float(penalty)))
        _, width, penalty = best

        def bend(rows: np.ndarray) -> Bend:
            gram = _kernel(centres[rows], centres[rows], width) + penalty * np.eye(rows.sum())
            root = np.linalg.inv(np.linalg.cholesky(gram))
            whitened = root @ rest[rows]
            return cls(centres[rows], width, root.T @ whitened, root, float(np.mean(whitened**2)))

        fold = np.arange(len(rest)) % folds
        errors = [bend(fold != f)(centres[fold == f]) - rest[fold == f] for f in range(folds)]
        error = float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))
        return bend(np.ones(len(rest), bool)), error

    def __call__(self, codes: Codes) -> Float[np.ndarray, " n"]:
        return self._seen(codes) @ self.weights

    def variance(self, codes: Codes) -> Float[np.ndarray, " n"]:
        """Of the Gaussian process, given the training codes: next to nothing among them."""
        explained = ((self._seen(codes) @ self.root.T) ** 2).sum(1)
        return self.amplitude * np.maximum(1.0 - explained, 0.0)

    def _seen(self, codes: Codes) -> np.ndarray:
        return _kernel(np.asarray(codes, np.float64), self.centres, self.width)


def _kernel(a: Codes, b: Float[np.ndarray, "m k"], width: float) -> np.ndarray:
    square = (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T
    return np.exp(-np.maximum(square, 0.0) / (2 * width**2))


def _ridge(x: np.ndarray, y: np.ndarray, folds: int) -> tuple[np.ndarray, float]:
    """Weights and cross-validated root mean square error."""
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
        return solve(everything, 1.0), float("nan")
    scores = [score(penalty) for penalty in PENALTIES]
    return solve(everything, PENALTIES[int(np.argmin(scores))]), float(np.sqrt(min(scores)))
