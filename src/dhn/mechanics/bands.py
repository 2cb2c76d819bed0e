"""Bands that hold: the filter's predictive spread times a factor from the validation part."""

import dataclasses
from statistics import NormalDist
from typing import final

import numpy as np
from jaxtyping import Float, Int

from dhn.mechanics.predicting import Mechanics
from dhn.mechanics.windows import Windows, errors, forecasts

LEVELS = (0.5, 0.9)
PRIOR_WINDOWS = 4.0
"""Independent windows that the filter's own spread counts as; few validation windows then change
it little."""
KNOTS = 12
"""Horizons, evenly spread over those that validation reaches, at which factors are set."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Bands:
    """Factors of the predictive standard deviation by horizon, for each level."""

    ahead: Float[np.ndarray, " K"]
    """Scaled times; beyond the last, its factor is used."""
    factors: Float[np.ndarray, "levels K"]
    """Half-width of each band over the standard deviation."""
    windows: Float[np.ndarray, " K"]
    """Independent validation windows at each horizon."""

    def half_width(
        self, sd: Float[np.ndarray, "n H d"], ahead: Float[np.ndarray, "n H"], level: float
    ) -> Float[np.ndarray, "n H d"]:
        """Half the width of a band.

        Arguments: sd: (n, H, d) predictive standard deviations; ahead: (n, H) scaled times after
            the last observed position; level: share that the band should hold.
        Returns: (n, H, d).
        """
        gauss = [NormalDist().inv_cdf(0.5 + x / 2) for x in LEVELS]
        own = np.stack([np.interp(ahead, self.ahead, x) for x in self.factors])
        ratios = own / np.array(gauss)[:, None, None]
        # Other levels lie between or beyond the calibrated ones in the normal quantile.
        wanted = NormalDist().inv_cdf(0.5 + level / 2)
        share = np.clip((wanted - gauss[0]) / (gauss[1] - gauss[0]), 0.0, 1.0)
        return sd * (wanted * (ratios[0] * (1 - share) + ratios[1] * share))[..., None]


def calibrated(mechanics: Mechanics, windows: Windows, systems: Int[np.ndarray, " n"]) -> Bands:
    """Factors by conformal quantiles of the validation errors, in units of predictive spread.

    Overlapping windows count as the independent ones among them: their number is the time that the
    windows cover over the horizon. Quantiles take the finite-sample rank ceil((n + 1) level) and
    are shrunk towards the normal distribution's where few windows are independent.

    Arguments: mechanics; windows of the validation part; systems: (n,) of the windows.
    Returns: the factors.
    """
    mean, sd = forecasts(mechanics, windows, systems)
    ratio = np.abs(errors(mean, windows, mechanics.layout.angles)) / sd
    last = len(windows.ahead)
    knots = np.unique(np.linspace(0, last - 1, min(KNOTS, last)).round().astype(int))
    reach = max(1, last // KNOTS)
    step = windows.ahead[0] if last else 1.0
    starts = np.array([x.t[0] for x in windows.pieces])
    covered = 0.0
    for name in dict.fromkeys(windows.names):
        own = starts[[x == name for x in windows.names]]
        covered += float(np.ptp(own)) + step
    factors, counts = np.zeros((len(LEVELS), len(knots))), np.zeros(len(knots))
    for k, knot in enumerate(knots):
        near = ratio[:, max(0, knot - reach) : knot + reach + 1]
        near = near[np.isfinite(near)]
        runs = len(set(windows.names))
        counts[k] = min(len(near), max(runs, covered / (windows.ahead[knot] + 4 * step)))
        for j, level in enumerate(LEVELS):
            gauss = NormalDist().inv_cdf(0.5 + level / 2)
            if not len(near):
                factors[j, k] = factors[j, k - 1] if k else gauss
                continue
            rank = min(1.0, np.ceil((counts[k] + 1) * level) / counts[k])
            found = float(np.quantile(near, rank))
            weight = counts[k] / (counts[k] + PRIOR_WINDOWS)
            factors[j, k] = gauss * (max(found, 1e-3) / gauss) ** weight
    return Bands(windows.ahead[knots], factors, counts)
