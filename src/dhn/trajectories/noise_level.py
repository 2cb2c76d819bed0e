"""The noise of a recording, from divided differences; for uneven times too."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

_DIFFERENCES = range(1, 11)  # orders of differences that are tried
_FEWEST = 8  # windows that an estimate needs
_OUTLIER = 6.0  # deviations beyond which a difference is a glitch, not noise
_SAME, _WHOLE = 1e-9, 0.01  # of the range and of a unit: below, a difference is arithmetic's


def noise_level(
    times: Sequence[Float[np.ndarray, " _"]], values: Sequence[Float[np.ndarray, " _"]]
) -> float:
    """Standard deviation of white noise on a smooth signal, recorded in one or more stretches.

    The m-th divided difference of m + 1 neighbours removes any polynomial below degree m and,
    scaled to weights of unit norm, keeps the noise's deviation; that holds for uneven times too.
    Each order bounds the noise from above by what the signal leaks into it, so the smallest of
    ten orders is taken, unless it is smaller by no more than chance. Noise that is correlated over
    neighbouring samples is underestimated, but never below the error of rounding.
    """
    best = float("nan")
    for order in _DIFFERENCES:
        parts = [_differences(t, x, order) for t, x in zip(times, values, strict=True)]
        differences = np.concatenate(parts) if parts else np.empty(0)
        if len(differences) < _FEWEST:
            break
        found = _deviation(differences)
        # Overlapping differences of high order are few in effect; being lower by chance is no gain.
        chance = 0.5 * np.sqrt(order / len(differences))
        if not found >= best * (1 - chance):
            best = found
    return max(best, _unit(np.concatenate(values)) / np.sqrt(12)) if np.isfinite(best) else best


def _differences(t: np.ndarray, x: np.ndarray, order: int) -> np.ndarray:
    if len(t) <= order:
        return np.empty(0)
    index = np.arange(len(t) - order)[:, None] + np.arange(order + 1)
    times, values = t[index], x[index]
    span = times[:, -1] - times[:, 0]
    # Windows across a gap contain the change of the signal and are left out.
    close = span <= 1.5 * np.median(span)
    times, values, span = times[close], values[close], span[close]
    scaled = (times - times[:, :1]) / span[:, None]
    apart = scaled[:, :, None] - scaled[:, None, :] + np.eye(order + 1)
    weights = 1 / np.prod(apart, axis=2)
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    return np.einsum("nw,nw->n", weights, values - values.mean(1, keepdims=True))


def _unit(values: np.ndarray) -> float:
    """What all values are multiples of, up to a constant; 0 if they are not rounded."""
    apart = np.diff(np.unique(values))
    apart = apart[apart > _SAME * np.ptp(values)]
    if not len(apart):
        return 0.0
    steps = apart / apart.min()
    return float(apart.min()) if np.abs(steps - np.round(steps)).max() < _WHOLE else 0.0


def _deviation(differences: np.ndarray) -> float:
    typical = np.median(np.abs(differences)) / 0.6745
    kept = differences[np.abs(differences) <= _OUTLIER * typical] if typical > 0 else differences
    return float(np.sqrt(np.mean(np.square(kept))))
