"""Error bands: quantiles of the posterior, widened or narrowed to what held-out data showed."""

import dataclasses
from statistics import NormalDist
from typing import final

import numpy as np
from jaxtyping import Float

from dhn.reconstruct.question import Mask, States

LEVELS = (0.5, 0.9)
"""Shares of the truth that the bands are to hold."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)  # median and the ends of both bands
BINS = 6
"""Horizons with factors of their own, at most, on a logarithmic scale."""
LEAST_ERRORS = 40
"""Held-out errors that a factor is made from; with fewer of them horizons are joined."""


PARTLY = -1.0
"""Instead of a horizon: states of which some numbers are known and others are not."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Bands:
    """Factors on posterior standard deviations, by horizon beyond the last known number."""

    edges: Float[np.ndarray, " b"]
    """First horizon of each bin, in the numbers of `horizons`."""
    factors: Float[np.ndarray, "b m levels"]
    """Half-width of a band over the posterior standard deviation; `m` is 1 if all numbers of a
    state have the same."""

    @classmethod
    def gaussian(cls) -> "Bands":
        """The posterior as it is."""
        return cls(
            np.zeros(1), np.array([[[NormalDist().inv_cdf(0.5 + level / 2) for level in LEVELS]]])
        )

    @classmethod
    def fit(cls, scores: States, horizon: Float[np.ndarray, "n T"]) -> "Bands":
        """From errors of held-out reconstructions.

        Arguments:
            scores: Absolute errors over posterior standard deviations; NaN where nothing is known.
            horizon: As from `horizons`.

        Returns:
            For each bin of horizons and number of a state the finite-sample quantiles of scores.
        """
        longest = max(float(horizon.max()), 1.0)
        edges = np.concatenate([[PARTLY, 0.0], np.geomspace(1, longest, BINS)])
        edges = np.unique(edges.round())
        kept, factors, waiting = [], [], []
        for i, edge in enumerate(edges):
            stop = edges[i + 1] if i + 1 < len(edges) else np.inf
            waiting.append(scores[(horizon >= edge) & (horizon < stop)])
            pooled = np.concatenate(waiting)
            columns = [x[np.isfinite(x)] for x in (*pooled.T, pooled)]
            if max(len(x) for x in columns[:-1]) >= LEAST_ERRORS:
                kept.append(edges[i + 1 - len(waiting)])
                # Coordinates and momenta err differently.
                enough = (x if len(x) >= LEAST_ERRORS else columns[-1] for x in columns[:-1])
                factors.append([_conformal(x) for x in enough])
                waiting = []
        if not kept:
            return cls.gaussian()
        return cls(np.array(kept), np.array(factors))

    def quantiles(
        self, mean: States, deviation: States, horizon: Float[np.ndarray, "n T"]
    ) -> dict[float, States]:
        """Level -> quantile of every number."""
        row = np.searchsorted(self.edges, horizon, side="right") - 1
        found = {0.5: mean}
        for i, level in enumerate(LEVELS):
            width = self.factors[np.maximum(row, 0), :, i] * deviation
            found[round(0.5 - level / 2, 3)] = mean - width
            found[round(0.5 + level / 2, 3)] = mean + width
        return {level: found[level] for level in QUANTILES}

    def widening(self, known: Mask) -> Float[np.ndarray, " n"]:
        """Factor on the standard deviations of codes.

        Momenta inferred from positions are wrong because the code is: the model's error, which is
        systematic, moves both along directions that positions barely determine. So both posteriors
        are too narrow by the same factor, which held-out momenta show.

        Arguments:
            known: Which numbers are known.

        Returns:
            That factor, at least 1, for trajectories of which no state is wholly known; 1 for
            others, and without calibration.
        """
        nominal = Bands.gaussian().factors[0, 0, -1]
        partly = self.factors[0, :, -1].mean() / nominal if self.edges[0] == PARTLY else 1.0
        whole = np.logical_and.reduce(known, axis=2)
        return np.where(np.logical_or.reduce(whole, axis=1), 1.0, max(1.0, partly))

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"bands/edges": self.edges, "bands/factors": self.factors}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Bands":
        factors = arrays["bands/factors"]
        # Files of 0.2.0's first models have one factor for all numbers of a state.
        return cls(arrays["bands/edges"], factors if factors.ndim == 3 else factors[:, None])


def _conformal(scores: Float[np.ndarray, " k"]) -> Float[np.ndarray, " levels"]:
    """Quantiles of so many scores that hold for a new one: rank `ceil((k + 1) * level)`."""
    rank = np.minimum(np.ceil((len(scores) + 1) * np.array(LEVELS)), len(scores))
    return np.sort(scores)[rank.astype(int) - 1]


def horizons(known: Mask) -> Float[np.ndarray, "n T"]:
    """Where a state lies among the known ones: errors of a posterior differ from place to place.

    Arguments:
        known: Which numbers are known.

    Returns:
        States beyond the last known number of each trajectory, 0 before it, and `PARTLY` where a
        part of the state itself is known.
    """
    any_known = np.logical_or.reduce(known, axis=-1)
    whole = np.logical_and.reduce(known, axis=-1)
    last = known.shape[1] - 1 - np.argmax(any_known[:, ::-1], axis=1)
    ahead = np.maximum(np.arange(known.shape[1])[None] - last[:, None], 0).astype(float)
    return np.where(any_known & ~whole, PARTLY, ahead)
