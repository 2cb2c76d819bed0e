"""Measurement noise of trajectories: stated, or estimated from differences of high order."""

from math import comb

import numpy as np
from jaxtyping import Float

from dhn.trajectories.container import Trajectories

ORDERS = (6, 8)
"""Orders of differences. A smooth motion leaves less and less of them, white noise does not."""
WHITE = 0.8
"""Estimates by both orders that agree to this ratio are noise; others are the motion itself."""
DEGREE = 4
"""Of local polynomials."""
WIDTHS = (7, 9, 11, 15, 19, 25, 31, 41)
"""States of a local polynomial."""
UNSEEN = 1.1
"""A polynomial fits if its residuals are no larger than this multiple of what noise explains."""


def measurement_noise(data: Trajectories) -> Float[np.ndarray, "2 d"]:
    """Standard deviations of q and of p (or v): the stated (typical) ones, else estimates.

    Arguments:
        data: Trajectories on an even grid.

    Returns:
        (2, d), zero where the data show no noise.
    """
    parts = (data.q, data.momenta)
    typical = data.typical_noise
    stated = np.full((2, data.dim), np.nan) if typical is None else np.array(typical)
    for row, part in enumerate(parts):
        for k in range(data.dim):
            if not np.isfinite(stated[row, k]):
                known = None if part is None else np.where(data.known, part[..., k], np.nan)
                stated[row, k] = 0.0 if known is None else estimated_noise(known)
    return stated


def estimated_noise(values: Float[np.ndarray, "n T"]) -> float:
    """White noise of evenly spaced values; 0 where there is none to be seen.

    Arguments:
        values: NaN where nothing was measured.

    Returns:
        A robust standard deviation.
    """
    found = []
    for order in ORDERS:
        if values.shape[1] <= order:
            return 0.0
        difference = np.diff(values, n=order, axis=1)
        difference = difference[np.isfinite(difference)]
        if len(difference) < 2 * order:
            return 0.0
        # The median absolute value of a normal number is 0.6745 of its standard deviation.
        found.append(np.median(np.abs(difference)) / 0.6745 / np.sqrt(comb(2 * order, order)))
    low, high = found
    return float(high) if high > WHITE * low and high > 0 else 0.0


def smoothed(
    values: Float[np.ndarray, "n T"], noise: float
) -> tuple[Float[np.ndarray, "n T"], Float[np.ndarray, "n T"]]:
    """Local polynomials, as wide as the residuals allow.

    Arguments:
        values: Evenly spaced, without gaps.
        noise: Standard deviation of their noise.

    Returns:
        Smoothed values, or the values themselves without noise, and their change per step.
    """
    from scipy.signal import savgol_coeffs, savgol_filter  # a second to import; training alone

    best, chosen = values, min(WIDTHS[0], values.shape[1] - (values.shape[1] + 1) % 2)
    for width in WIDTHS:
        if noise == 0 or width > values.shape[1]:
            break
        trial = np.asarray(savgol_filter(values, width, DEGREE, axis=1, mode="interp"))
        inside = slice(width // 2, values.shape[1] - width // 2)
        left = np.mean((trial - values)[:, inside] ** 2)
        expected = noise**2 * (1 - savgol_coeffs(width, DEGREE)[width // 2])
        if left > UNSEEN * expected:
            break
        best, chosen = trial, width
    degree = min(DEGREE, chosen - 1)
    change = savgol_filter(values, chosen, degree, deriv=1, axis=1, mode="interp")
    return best, np.asarray(change)
