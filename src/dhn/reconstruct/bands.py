"""Error bands: quantiles of the posterior, widened or narrowed to what held-out data showed."""

import dataclasses
from statistics import NormalDist
from typing import final

import numpy as np
from jaxtyping import Bool, Float

LEVELS = (0.5, 0.9)
"""Shares of the truth that the bands are to hold."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)  # median and the ends of both bands
BINS = 6
"""Horizons with factors of their own, at most, on a logarithmic scale."""
LEAST_ERRORS = 40
"""Held-out errors that a factor is made from; with fewer of them horizons are joined."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Bands:
    """Factors on posterior standard deviations, by horizon beyond the last known number."""

    edges: Float[np.ndarray, " b"]
    """First horizon of each bin, in states; 0 is between known numbers."""
    factors: Float[np.ndarray, "b levels"]
    """Half-width of a band over the posterior standard deviation."""

    @classmethod
    def gaussian(cls) -> "Bands":
        """The posterior as it is."""
        return cls(
            np.zeros(1), np.array([[NormalDist().inv_cdf(0.5 + level / 2) for level in LEVELS]])
        )

    @classmethod
    def fit(cls, scores: Float[np.ndarray, "m T d"], horizon: Float[np.ndarray, "m T"]) -> "Bands":
        """From errors of held-out reconstructions.

        Arguments:
            scores: Absolute errors over posterior standard deviations; NaN where nothing is known.
            horizon: States beyond the last known number, 0 between known numbers.

        Returns:
            For each bin of horizons the finite-sample quantiles of the scores.
        """
        longest = max(float(horizon.max()), 1.0)
        edges = np.unique(np.concatenate([[0.0, 1.0], np.geomspace(1, longest, BINS)]).round())
        kept, factors, waiting = [], [], []
        for i, edge in enumerate(edges):
            stop = edges[i + 1] if i + 1 < len(edges) else np.inf
            here = scores[(horizon >= edge) & (horizon < stop)]
            waiting.append(here[np.isfinite(here)])
            pooled = np.concatenate(waiting)
            if len(pooled) >= LEAST_ERRORS:
                # The conformal quantile of n scores: rank ceil((n + 1) * level).
                rank = np.minimum(np.ceil((len(pooled) + 1) * np.array(LEVELS)), len(pooled))
                kept.append(edges[i + 1 - len(waiting)])
                factors.append(np.sort(pooled)[rank.astype(int) - 1])
                waiting = []
        if not kept:
            return cls.gaussian()
        kept[0] = 0.0
        return cls(np.array(kept), np.array(factors))

    def quantiles(
        self,
        mean: Float[np.ndarray, "n T m"],
        deviation: Float[np.ndarray, "n T m"],
        horizon: Float[np.ndarray, "n T"],
    ) -> dict[float, Float[np.ndarray, "n T m"]]:
        """Level -> quantile of every number."""
        row = np.searchsorted(self.edges, horizon, side="right") - 1
        found = {0.5: mean}
        for i, level in enumerate(LEVELS):
            width = self.factors[np.maximum(row, 0), i][..., None] * deviation
            found[round(0.5 - level / 2, 3)] = mean - width
            found[round(0.5 + level / 2, 3)] = mean + width
        return {level: found[level] for level in QUANTILES}

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"bands/edges": self.edges, "bands/factors": self.factors}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Bands":
        return cls(arrays["bands/edges"], arrays["bands/factors"])


def horizons(known: Bool[np.ndarray, "n T m"]) -> Float[np.ndarray, "n T"]:
    """States beyond the last known number of each trajectory; 0 before it."""
    any_known = np.logical_or.reduce(known, axis=-1)
    last = known.shape[1] - 1 - np.argmax(any_known[:, ::-1], axis=1)
    return np.maximum(np.arange(known.shape[1])[None] - last[:, None], 0).astype(float)
