"""Noise and velocities of a recording, from local polynomials (Savitzky and Golay's filter).

All of it holds for uneven times.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import final

import numpy as np
from jaxtyping import Float
from numpy.polynomial import legendre

ORDERS = (3, 5)
"""Degrees of the polynomials that are tried."""
EDGE = 2.0
"""A computed velocity counts as less certain where its deviation is above EDGE times that in the
middle of the recording."""

_POINTS = 600  # times at which a window is judged; more would change little
_TOLERATED = 4.0  # squared bias over variance beyond which wider windows are not tried
_CHUNK = 2048  # evaluation points at a time, to bound the memory of long recordings
_DIFFERENCES = range(1, 11)  # orders of differences that are tried
_FEWEST = 8  # windows that an estimate needs
_OUTLIER = 6.0  # deviations beyond which a difference is a glitch, not noise


def noise_level(
    times: Sequence[Float[np.ndarray, " _"]], values: Sequence[Float[np.ndarray, " _"]]
) -> float:
    """Standard deviation of white noise on a smooth signal, recorded in one or more stretches.

    The m-th divided difference of m + 1 neighbours removes any polynomial below degree m and,
    scaled to weights of unit norm, keeps the noise's deviation; that holds for uneven times too.
    Each order bounds the noise from above by what the signal leaks into it, so the smallest of
    ten orders is taken, unless it is smaller by no more than chance. Noise that is correlated over
    neighbouring samples is underestimated.
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
    return best


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


def _deviation(differences: np.ndarray) -> float:
    typical = np.median(np.abs(differences)) / 0.6745
    kept = differences[np.abs(differences) <= _OUTLIER * typical] if typical > 0 else differences
    return float(np.sqrt(np.mean(np.square(kept))))


def nearest(t: Float[np.ndarray, " N"], at: Float[np.ndarray, " M"]) -> np.ndarray:
    """Index of the sample nearest to each time of `at`, the earlier of two."""
    right = np.clip(np.searchsorted(t, at), 0, len(t) - 1)
    left = np.maximum(right - 1, 0)
    return np.where(np.abs(t[left] - at) <= np.abs(t[right] - at), left, right)


def local_weights(
    t: Float[np.ndarray, " N"], at: Float[np.ndarray, " M"], window: int, order: int
) -> tuple[np.ndarray, Float[np.ndarray, "2 M w"]]:
    """First sample of each window, and the weights that give value and derivative at `at`.

    Each window holds the `window` samples nearest in index to its time; at the ends it is moved
    inwards, which is where the weights, and so the uncertainty, grow.
    """
    window = min(window, len(t))
    order = min(order, window - 1)
    first = np.clip(nearest(t, at) - window // 2, 0, len(t) - window)
    times = t[first[:, None] + np.arange(window)]
    middle, half = (times[:, -1] + times[:, 0]) / 2, (times[:, -1] - times[:, 0]) / 2
    half = np.where(half > 0, half, 1.0)
    basis = legendre.legvander((times - middle[:, None]) / half[:, None], order)
    here = (at - middle) / half
    slopes = np.stack(
        [legendre.legval(here, legendre.legder(np.eye(order + 1)[k])) for k in range(order + 1)],
        axis=-1,
    )
    targets = np.stack([legendre.legvander(here, order), slopes / half[:, None]], axis=-1)
    gram = np.einsum("mwi,mwj->mij", basis, basis)
    return first, np.einsum("mwi,mik->kmw", basis, np.linalg.solve(gram, targets))


def local_fit(
    t: Float[np.ndarray, " N"],
    x: Float[np.ndarray, " N"],
    at: Float[np.ndarray, " M"],
    window: int,
    order: int,
) -> tuple[Float[np.ndarray, "2 M"], Float[np.ndarray, "2 M"]]:
    """Value and derivative at `at`, and the gain of each: its deviation for unit noise in x."""
    values, gains = np.empty((2, len(at))), np.empty((2, len(at)))
    for start in range(0, len(at), _CHUNK):
        part = slice(start, start + _CHUNK)
        first, weights = local_weights(t, at[part], window, order)
        samples = x[first[:, None] + np.arange(weights.shape[2])]
        values[:, part] = np.einsum("kmw,mw->km", weights, samples)
        gains[:, part] = np.sqrt(np.square(weights).sum(-1))
    return values, gains


@final
@dataclasses.dataclass(frozen=True)
class Filter:
    """Polynomial of degree `order` through `window` samples, and the error it should have."""

    window: int
    order: int
    error: float
    """Root mean square error of the derivative: noise and bias together."""


def windows(order: int, samples: int) -> Iterator[int]:
    """Odd lengths, about a fifth wider each time."""
    window = order + 4 if order % 2 else order + 5
    while window <= max(samples, order + 4):
        yield window
        window = max(window + 2, int(window * 1.2) | 1)


def choose_filter(
    times: Sequence[Float[np.ndarray, " _"]],
    values: Sequence[Float[np.ndarray, " _"]],
    noise: float,
) -> Filter:
    """The filter of least expected error of the derivative, for noise of that deviation.

    Variance follows from the weights. The bias of degree n is what degree n + 2 on the same
    window sees in addition, less what noise alone would make of that difference. Windows are
    widened until bias dominates: beyond that, the two degrees may agree on being wrong.
    """
    usable = [(t, x) for t, x in zip(times, values, strict=True) if len(t) >= ORDERS[0] + 4]
    if not usable:
        return Filter(ORDERS[0] + 2, ORDERS[0], float("nan"))
    longest = max(len(t) for t, _ in usable)
    best: Filter | None = None
    for order in ORDERS:
        for window in windows(order, longest // 2):
            judged = _judge(usable, window, order, noise)
            if judged is None:
                continue
            bias, variance = judged
            error = float(np.sqrt(bias + variance))
            if best is None or error < best.error:
                best = Filter(window, order, error)
            if bias > _TOLERATED * variance:
                break
    return best or Filter(ORDERS[0] + 4, ORDERS[0], float("nan"))


def _judge(
    usable: list[tuple[np.ndarray, np.ndarray]], window: int, order: int, noise: float
) -> tuple[float, float] | None:
    """Squared bias and variance of the derivative, averaged over the middle of the stretches."""
    total = sum(len(t) for t, _ in usable)
    excess, variance, count = 0.0, 0.0, 0
    for t, x in usable:
        half = window // 2
        if len(t) < window + 2:
            continue
        inner = t[half:-half]
        share = max(8, _POINTS * len(t) // total)
        at = inner[np.unique(np.linspace(0, len(inner) - 1, min(share, len(inner))).astype(int))]
        first, low = local_weights(t, at, window, order)
        _, high = local_weights(t, at, window, order + 2)
        step = low[1] - high[1]
        index = first[:, None] + np.arange(window)
        difference = np.einsum("mw,mw->m", step, x[index] - x[index].mean(1, keepdims=True))
        excess += float(np.sum(difference**2) - noise**2 * np.sum(step**2))
        variance += float(noise**2 * np.sum(low[1] ** 2))
        count += len(at)
    return (max(excess, 0.0) / count, variance / count) if count else None


def differentiate(
    t: Float[np.ndarray, " N"],
    x: Float[np.ndarray, " N"],
    at: Float[np.ndarray, " M"],
    chosen: Filter,
) -> tuple[Float[np.ndarray, " M"], Float[np.ndarray, " M"], np.ndarray]:
    """Value and derivative at the times `at`, and where the derivative is uncertain (bool)."""
    if len(t) < 2:
        return np.full(len(at), x[0]), np.full(len(at), np.nan), np.ones(len(at), bool)
    values, gains = local_fit(t, x, at, chosen.window, chosen.order)
    if len(t) <= chosen.window:
        return values[0], values[1], np.ones(len(at), bool)
    middle = t[len(t) // 2 :][:1]
    typical = local_fit(t, x, middle, chosen.window, chosen.order)[1][1]
    return values[0], values[1], gains[1] > EDGE * typical[0]
