"""Velocities from positions: a local polynomial whose window is chosen by the noise."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import final

import numpy as np
from jaxtyping import Float

from dhn.files.foreign.local import local_fit, local_weights

ORDERS = (3, 5)
EDGE = 2.0
"""A computed velocity counts as less certain where its deviation is above EDGE times that in the
middle of the recording."""

_POINTS = 600  # times at which a window is judged; more would change little
_TOLERATED = 4.0  # squared bias over variance beyond which wider windows are not tried


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
