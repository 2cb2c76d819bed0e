"""Do error bars mean what they say: coverage of bands and the CRPS of quantiles."""

import numpy as np

from dhn.trajectories.container import Trajectories

BANDS = {"50 %": (0.25, 0.75), "90 %": (0.05, 0.95)}


def _predicted(prediction: Trajectories, truth: Trajectories) -> tuple[int, np.ndarray]:
    length = min(prediction.q.shape[1], truth.q.shape[1])
    return length, ~np.asarray(prediction.known)[:, :length] & truth.has_known_q[:, :length]


def coverage(prediction: Trajectories, truth: Trajectories) -> dict[str, float]:
    """Share of predicted coordinates whose truth lies inside each band."""
    length, valid = _predicted(prediction, truth)
    q = truth.q[:, :length]
    found = {}
    for name, (low, high) in BANDS.items():
        below = prediction.q_quantiles[low][:, :length] <= q
        above = q <= prediction.q_quantiles[high][:, :length]
        found[name] = float((below & above)[valid].mean())
    return found


def crps(prediction: Trajectories, truth: Trajectories) -> float:
    """Continuous ranked probability score from the quantiles: twice the mean pinball loss."""
    length, valid = _predicted(prediction, truth)
    q = truth.q[:, :length]
    losses = []
    for level, quantile in prediction.q_quantiles.items():
        error = q - quantile[:, :length]
        losses.append(np.maximum(level * error, (level - 1) * error)[valid].mean())
    return float(2 * np.mean(losses))
