"""Fisher scoring with damping: the coefficients and noise levels of greatest posterior density."""

import dataclasses
import time
from typing import final

import numpy as np
from jaxtyping import Bool, Float

from dhn.mechanics.layout import Layout
from dhn.mechanics.likelihood import Entries, Problem, Slope, likelihood


@final
@dataclasses.dataclass(frozen=True)
class Scored:
    """Coefficients after a fit."""

    theta: Float[np.ndarray, "R P"]
    value: float
    """Log posterior density, up to a constant."""
    covariance: Float[np.ndarray, "k k"]
    """Of the fitted vector: the inverse information with the prior."""
    entries: Entries
    iterations: int
    gated: int
    measured: int


@final
@dataclasses.dataclass(frozen=True)
class Damping:
    """How steps are damped and when they end."""

    first: float = 1e-3
    down: float = 0.2
    up: float = 6.0
    most: float = 1e8
    gain: float = 0.05
    """Nats; a smaller predicted gain ends the fit."""
    step: float = 2.0
    """Greatest change of any coefficient in one step, in scaled units (all are of order one)."""


def fit_scoring(
    problem: Problem,
    theta: Float[np.ndarray, "R P"],
    active: Bool[np.ndarray, " P"],
    own: Bool[np.ndarray, " P"] | None = None,
    *,
    iterations: int = 20,
    deadline: float = np.inf,
    damping: Damping = Damping(),
    begun: Slope | None = None,
) -> Scored:
    """Maximise likelihood times prior over the active entries, from `theta` on.

    Arguments: problem; theta: (R, P) within bounds; active: (P,); own: (P,) entries that differ by
        system; iterations; deadline: `time.monotonic()` at which to stop; begun: the likelihood
        and its derivatives at `theta`, where they are known.
    Returns: the best coefficients found; `iterations` 0 if no step was an improvement.
    """
    layout = problem.layout
    own = np.zeros(layout.size, bool) if own is None else own
    entries = Entries.of(active, own, problem.runs)
    x = entries.gather(theta)
    low, high, precision, centre = _prior(layout, entries, x)

    def worth(x: np.ndarray, slope: Slope) -> float:
        value = slope.value - 0.5 * (precision * (x - centre) ** 2).sum()
        finite = np.isfinite(value) and np.isfinite(slope.information).all()
        return float(value) if finite else -np.inf

    x = np.clip(x, low, high)
    slope = begun or likelihood(problem, entries.scatter(theta, x), entries)
    value = worth(x, slope)
    damp, done = damping.first, 0
    for _ in range(iterations):
        gradient = slope.gradient - precision * (x - centre)
        matrix = slope.information + np.diag(precision)
        better = False
        while damp < damping.most and time.monotonic() < deadline:
            step, predicted = _step(matrix, gradient, damp, x, low, high)
            step *= min(1.0, damping.step / max(np.abs(step).max(initial=0), 1e-300))
            if predicted < damping.gain:
                break
            trial = np.clip(x + step, low, high)
            new_slope = likelihood(problem, entries.scatter(theta, trial), entries)
            new = worth(trial, new_slope)
            if new > value:
                better, gain = True, new - value
                x, value, slope = trial, new, new_slope
                damp *= damping.down
                break
            damp *= damping.up
        if not better:
            break
        done += 1
        if gain < damping.gain:
            break
    matrix = slope.information + np.diag(precision)
    free = ~(((x <= low) | (x >= high)) & np.isfinite(np.where(x <= low, low, high)))
    covariance = np.zeros_like(matrix)
    size = np.sqrt(np.diag(matrix)) + 1e-12
    inside = np.ix_(free, free)
    scaled = (matrix / size[:, None] / size)[inside]
    covariance[inside] = np.linalg.pinv(scaled, rcond=1e-12, hermitian=True)
    covariance /= size[:, None] * size
    return Scored(
        entries.scatter(theta, x), value, covariance, entries, done, slope.gated, slope.measured
    )


def expected_gain(
    layout: Layout, theta: Float[np.ndarray, "R P"], entries: Entries, slope: Slope
) -> float:
    """Nats that a first step over the entries should gain, within their bounds.

    Arguments: layout; theta: (R, P); entries: what would be fitted; slope: derivatives at `theta`
        in these entries.
    Returns: half the gradient times the step; a quadratic likelihood gains just that.
    """
    x = entries.gather(theta)
    low, high, precision, centre = _prior(layout, entries, x)
    matrix = slope.information + np.diag(precision)
    gradient = slope.gradient - precision * (x - centre)
    return 0.5 * _step(matrix, gradient, Damping().first, x, low, high)[1]


def _prior(layout: Layout, entries: Entries, begun: np.ndarray) -> tuple[np.ndarray, ...]:
    """Bounds, precisions and centres of the prior of the fitted vector."""
    low, high = layout.bounds()
    where = np.concatenate([entries.shared, np.tile(entries.own, entries.runs)])
    centre = np.where(np.isin(where, _logarithms(layout)), begun, 0.0)
    return low[where], high[where], layout.prior()[where], centre


def drawn(scored: Scored, layout: Layout, count: int) -> Float[np.ndarray, "k R P"]:
    """Coefficients from the normal distribution about the fitted ones, noise levels left alone.

    Arguments: scored; layout; count: k, how many; the draws are the same every time.
    Returns: (k, R, P) within their bounds.
    """
    values, vectors = np.linalg.eigh(scored.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    low, high = layout.bounds()
    noise = _logarithms(layout)
    rng, found = np.random.default_rng(0), []
    for _ in range(count):
        step = root @ rng.normal(size=len(values))
        theta = scored.entries.scatter(scored.theta, scored.entries.gather(scored.theta) + step)
        theta[:, noise] = scored.theta[:, noise]
        found.append(np.clip(theta, low, high))
    return np.array(found)


def _step(
    matrix: np.ndarray, gradient: np.ndarray, damp: float, x: np.ndarray, low: np.ndarray,
    high: np.ndarray,
) -> tuple[np.ndarray, float]:  # fmt: skip
    """A damped Newton step with the entries held that would leave their bounds."""
    size = np.sqrt(np.diag(matrix)) + 1e-12
    free = ~(((x <= low) & (gradient < 0)) | ((x >= high) & (gradient > 0)))
    step = np.zeros_like(x)
    for _ in range(len(x)):
        inside = np.ix_(free, free)
        scaled = (matrix / size[:, None] / size)[inside] + damp * np.eye(free.sum())
        step[:] = 0.0
        step[free] = np.linalg.solve(scaled, (gradient / size)[free]) / size[free]
        out = free & (((x + step < low) & (x <= low)) | ((x + step > high) & (x >= high)))
        if not out.any():
            break
        free &= ~out
    step = np.clip(x + step, low, high) - x
    return step, float(gradient @ step)


def _logarithms(layout) -> np.ndarray:
    names = [x for x in layout.slices if x.startswith("log_")]
    return np.concatenate([np.arange(layout.size)[layout.slices[x]] for x in names])
