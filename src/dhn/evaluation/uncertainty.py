"""Whether error bars hold: coverage of bands and the CRPS of quantiles."""

import numpy as np

from dhn.evaluation.metrics import comparable
from dhn.trajectories.container import Trajectories

BANDS = {"50 %": (0.25, 0.75), "90 %": (0.05, 0.95)}


def coverage(prediction: Trajectories, truth: Trajectories) -> dict[str, float]:
    """Share of predicted coordinates whose truth lies inside each band."""
    valid = comparable(prediction, truth)
    length = valid.shape[1]
    q = truth.q[:, :length]
    found = {}
    for name, (low, high) in BANDS.items():
        below = prediction.q_quantiles[low][:, :length] <= q
        above = q <= prediction.q_quantiles[high][:, :length]
        found[name] = float((below & above)[valid].mean())
    return found


def crps(prediction: Trajectories, truth: Trajectories) -> float:
    """Continuous ranked probability score from the quantiles: twice the mean pinball loss."""
    valid = comparable(prediction, truth)
    length = valid.shape[1]
    q = truth.q[:, :length]
    losses = []
    for level, quantile in prediction.q_quantiles.items():
        error = q - quantile[:, :length]
        losses.append(np.maximum(level * error, (level - 1) * error)[valid].mean())
    return float(2 * np.mean(losses))
