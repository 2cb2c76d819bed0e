"""The time until which a forecast with bands is valid."""

import dataclasses
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Float

from dhn.trajectories.container import Trajectories

SHARE = 0.2
"""Of the motion's own standard deviation: a forecast that errs by more is no longer valid."""
LEVEL = 0.9
"""Probability with which the error must stay below that."""
MEANING = f"error below {SHARE:.0%} of the motion's standard deviation with {LEVEL:.0%} probability"


@final
@dataclasses.dataclass(frozen=True)
class Validity:
    """The times until which forecasts are valid, one for each trajectory."""

    until: Float[np.ndarray, " n"]
    """After the last known state; 0 where already the first forecast state is not valid."""
    beyond: Bool[np.ndarray, " n"]
    """Whether the forecast ends before it stops to be valid."""

    def summary(self, unit: str = "") -> dict[str, Any]:
        """Median, range and a sentence, as JSON values.

        Arguments: unit: of time, may be empty.
        Returns: `median`, `least`, `greatest`, `beyond` (share of forecasts that end while they are
            valid) and `sentence`.
        """
        middle = float(np.median(self.until))
        low, high = float(self.until.min()), float(self.until.max())
        share = float(self.beyond.mean())
        least = "at least " if share > 0.5 else ""
        words = f"valid until: {least}{middle:.3g} {unit}".rstrip() + " ahead"
        if len(self.until) > 1:
            words += f" (median of {len(self.until)}, {low:.3g} to {high:.3g})"
        return {
            "median": middle, "least": low, "greatest": high, "beyond": share,
            "sentence": f"{words}: {MEANING}",
        }  # fmt: skip


def valid_until(
    ahead: Float[np.ndarray, "n H"],
    half: Float[np.ndarray, "n H d"],
    deviation: Float[np.ndarray, "n d"],
) -> Validity:
    """The last time before the band of `LEVEL` is wider than the share of the motion.

    Arguments: ahead: (n, H) times after the last known state, NaN for padding at the end; half:
        (n, H, d) half-widths of the bands; deviation: (n, d) standard deviations of the motion.
    Returns: the times; every coordinate must be valid.
    """
    there = np.isfinite(ahead)
    inside = there & (half <= SHARE * deviation[:, None]).all(-1)
    count = np.cumprod(inside, axis=1).sum(1)
    times = np.concatenate([np.zeros((len(ahead), 1)), np.where(there, ahead, 0.0)], axis=1)
    return Validity(times[np.arange(len(ahead)), count], count == there.sum(1))


def forecast_validity(found: Trajectories, motion: Trajectories | None = None) -> Validity | None:
    """How long forecasts are valid by their own bands.

    Arguments: found: trajectories whose last states are forecast, with quantiles; motion: whose
        standard deviation counts, by default that of `found`, forecast included.
    Returns: the times; None where there are no bands or nothing is forecast.
    """
    low, high = (round(0.5 + sign * LEVEL / 2, 3) for sign in (-1, 1))
    known = np.asarray(found.known)
    if low not in found.q_quantiles or high not in found.q_quantiles or known[:, -1].any():
        return None
    half = (found.q_quantiles[high] - found.q_quantiles[low]) / 2
    seen = known.shape[1] - np.argmax(known[:, ::-1], axis=1)
    seen = np.where(known.any(1), seen, 0)
    first = int(seen.min())
    if first < 1:
        return None
    q = (found if motion is None else motion).q
    with np.errstate(invalid="ignore"):
        deviation = np.nanstd(q, axis=1)
    last = found.times[np.arange(len(found)), seen - 1]
    ahead = found.times[:, first:] - last[:, None]
    behind = np.arange(first, known.shape[1])[None] < seen[:, None]
    half = np.where(behind[..., None], 0.0, half[:, first:])  # still observed
    return valid_until(np.where(behind, 0.0, ahead), half, deviation)


def measured_validity(
    ahead: Float[np.ndarray, " H"],
    error: Float[np.ndarray, "n H d"],
    deviation: Float[np.ndarray, "n d"],
) -> float:
    """The last time up to which errors were as small as a valid forecast promises.

    Arguments: ahead: (H,) times; error: (n, H, d) of forecasts, NaN where nothing was measured;
        deviation: (n, d) standard deviations of the motion.
    Returns: the last time before fewer than `LEVEL` of the forecasts err by less than `SHARE`.
    """
    small = np.where(np.isfinite(error), np.abs(error) <= SHARE * deviation[:, None], np.nan)
    there = np.isfinite(small).any((0, 2))
    share = np.full(len(ahead), np.nan)
    share[there] = np.nanmean(small[:, there], axis=(0, 2))
    good = ~(share < LEVEL)
    count = int(np.cumprod(good).sum())
    return float(ahead[count - 1]) if count else 0.0
