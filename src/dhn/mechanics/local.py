"""Positions, velocities and accelerations by local polynomials: a start, never a result."""

import dataclasses
from typing import final

import numpy as np
from jaxtyping import Float

DEGREE = 4  # of the polynomials
TURN = 2 * np.pi


@final
@dataclasses.dataclass(frozen=True)
class LocalStates:
    """Local fits at the rows of a run; NaN where too few measurements lie near."""

    q: Float[np.ndarray, "N d"]
    v: Float[np.ndarray, "N d"]
    a: Float[np.ndarray, "N d"]
    noise: Float[np.ndarray, " d"]
    """Robust standard deviation of the measurements about the fits."""


def degree_of(window: int) -> int:
    """Degree of the polynomial over so many rows.

    Arguments: window.
    Returns: the degree.
    """
    return max(1, min(DEGREE, (window - 1) // 2))


def local_states(
    t: Float[np.ndarray, " N"],
    y: Float[np.ndarray, "N d"],
    seen: Float[np.ndarray, "N d"],
    window: int,
    angles: tuple[bool, ...],
    at: slice = slice(None),
) -> LocalStates:
    """Fit a quartic (a lower degree over few rows) to the rows around each row.

    Arguments: t: (N,) times; y: (N, d); seen: (N, d) of 0 and 1; window: rows of a fit; angles:
        which coordinates may have jumps of full turns; at: the rows to fit at.
    Returns: fits at those rows.
    """
    n, d = y.shape
    window = min(window, n)
    degree = degree_of(window)
    rows = np.arange(n)[at]
    first = np.clip(rows - window // 2, 0, n - window)
    near = first[:, None] + np.arange(window)
    width = max(float(np.median(np.ptp(t[near], axis=1))), 1e-300)
    x = (t[near] - t[rows][:, None]) / width
    basis = x[..., None] ** np.arange(degree + 1)
    found = np.full((3, len(rows), d), np.nan)
    noise = np.zeros(d)
    for k in range(d):
        values, weight = y[near, k], seen[near, k]
        if angles[k]:  # continuous about the first measurement of each window
            anchor = values[np.arange(len(rows)), np.argmax(weight > 0, axis=1)][:, None]
            values = np.unwrap(np.where(weight > 0, values, anchor), axis=1)
            own = np.where(seen[rows, k] > 0, y[rows, k], anchor[:, 0])
            centre = np.clip(rows - first, 0, window - 1)
            shift = values[np.arange(len(rows)), centre] - own
            values = values - TURN * np.round(shift / TURN)[:, None]
        enough = weight.sum(1) >= degree + 2
        normal = np.einsum("nwi,nw,nwj->nij", basis, weight, basis)
        normal += 1e-9 * np.eye(degree + 1)
        right = np.einsum("nwi,nw,nw->ni", basis, weight, values)
        c = np.linalg.solve(normal, right[..., None])[..., 0]
        for order, factor in enumerate((1.0, 1.0, 2.0)):
            if order <= degree:
                found[order, :, k] = np.where(enough, factor * c[:, order] / width**order, np.nan)
        left = (values - np.einsum("nwi,ni->nw", basis, c))[weight > 0]
        free = window / max(window - degree - 1, 1)
        if len(left):
            noise[k] = 1.4826 * np.median(np.abs(left)) * np.sqrt(free)
    return LocalStates(found[0], found[1], found[2], noise)
