"""Bands that hold: the filter's predictive spread times a factor from past forecasts."""

import dataclasses
from statistics import NormalDist
from typing import final

import numpy as np
from jaxtyping import Float, Int

from dhn.mechanics.predicting import Mechanics
from dhn.mechanics.windows import Forecasts, Windows, errors, forecasts

LEVELS = (0.5, 0.9)  # shares of the truth that the bands are to hold
PRIOR_WINDOWS = 4.0
"""Independent windows that the filter's own spread counts as; few windows then change it little."""
ENOUGH = 10.0
"""Independent windows, up to which those of the training part fill up a short validation part."""
KNOTS = 12
"""Horizons, evenly spread over those that validation reaches, at which factors are set."""
POWERS = (0.0, 0.5, 1.0)
"""How the spread may grow with the motion's amplitude: not at all, as its root, in proportion."""
LEAST, MOST = 0.5, 2.0
"""Amplitudes beyond these multiples of the training data's are taken as these: no power law holds
further."""
PENALTY = 0.05
"""Nats a measurement that a power of one must gain over none."""
EVERY = 2
"""Share of the windows, one over this, that are forecast with other coefficients."""
WIDEST = 3.0
"""The uncertainty of the coefficients widens a band at most by this factor: what is linear near the
fitted coefficients is not linear further off."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Bands:
    """Factors of the predictive standard deviation by horizon, for each level."""

    ahead: Float[np.ndarray, " K"]
    """Scaled times; beyond the last, its factor is used."""
    factors: Float[np.ndarray, "levels K"]
    """Half-width of each band over the standard deviation."""
    windows: Float[np.ndarray, " K"]
    """Independent windows at each horizon."""
    power: float
    """Of the amplitude, in the spread beyond the sensor's own."""

    def spread(self, found: Forecasts) -> Float[np.ndarray, "n H d"]:
        """Predictive standard deviations, scaled with the motion's amplitude.

        Arguments: found: forecasts.
        Returns: (n, H, d).
        """
        return _spread(found, self.power)

    def half_width(
        self, sd: Float[np.ndarray, "n H d"], ahead: Float[np.ndarray, "n H"], level: float
    ) -> Float[np.ndarray, "n H d"]:
        """Half the width of a band.

        Arguments: sd: (n, H, d) from `spread`; ahead: (n, H) scaled times after the last observed
            position; level: share that the band should hold.
        Returns: (n, H, d).
        """
        gauss = [NormalDist().inv_cdf(0.5 + x / 2) for x in LEVELS]
        own = np.stack([np.interp(ahead, self.ahead, x) for x in self.factors])
        ratios = own / np.array(gauss)[:, None, None]
        # Other levels lie between or beyond the calibrated ones in the normal quantile.
        wanted = NormalDist().inv_cdf(0.5 + level / 2)
        share = np.clip((wanted - gauss[0]) / (gauss[1] - gauss[0]), 0.0, 1.0)
        return sd * (wanted * (ratios[0] * (1 - share) + ratios[1] * share))[..., None]


def _spread(found: Forecasts, power: float) -> np.ndarray:
    floor = np.minimum(found.floor, found.variance)
    size = np.clip(found.amplitude, LEAST, MOST)[:, None, None] ** (2 * power)
    return np.sqrt(floor + size * (found.variance - floor))


def calibrated(
    mechanics: Mechanics,
    validation: tuple[Windows, Int[np.ndarray, " n"]],
    training: tuple[Windows, Int[np.ndarray, " m"]],
    optimism: float,
    draws: Float[np.ndarray, "k R P"],
) -> Bands:
    """Factors by conformal quantiles of forecast errors, in units of predictive spread.

    Overlapping windows count as the n independent ones among them (see `independent_windows`).
    Quantiles are taken at the finite-sample share `level (n + 1) / n`, and shrunk where few windows
    are independent: towards those of Student's distribution with as many degrees of freedom,
    widened by the uncertainty of the coefficients. Windows of the training part, their errors
    enlarged by `optimism`, fill up a validation part that is too short to tell a factor.

    Arguments: mechanics; validation, training: windows and (n,) the systems they belong to;
        optimism: expected error of new data over that of fitted data; draws: (k, R, P)
        coefficients drawn from their distribution.
    Returns: the factors.
    """
    from scipy.special import stdtrit  # slow to import; only a fit needs it

    parts = [(x, forecasts(mechanics, x, systems)) for x, systems in (validation, training)]
    scales = (1.0, optimism)
    off = [
        np.abs(errors(found.mean, x, mechanics.layout.angles)) * scale
        for (x, found), scale in zip(parts, scales, strict=True)
    ]
    power = min(POWERS, key=lambda p: _cost(parts, off, p) + PENALTY * p)
    ratios = [e / _spread(found, power) for (_, found), e in zip(parts, off, strict=True)]
    ahead = validation[0].ahead
    last = len(ahead)
    knots = np.unique(np.linspace(0, last - 1, min(KNOTS, last)).round().astype(int))
    reach = max(1, last // KNOTS)
    factors, counts = np.zeros((len(LEVELS), len(knots))), np.zeros(len(knots))
    widened = _widened(mechanics, *validation, parts[0][1], draws)
    for k, knot in enumerate(knots):
        rows = slice(max(0, knot - reach), knot + reach + 1)
        near = [x[:, rows][np.isfinite(x[:, rows])] for x in ratios]
        independent = []
        for x, ratio, (w, _) in zip(near, ratios, parts, strict=True):
            here = ratio[:, min(knot, ratio.shape[1] - 1)]
            independent.append(min(float(len(x)), independent_windows(w, here, float(ahead[knot]))))
        independent[1] = min(independent[1], max(0.0, ENOUGH - independent[0]))
        counts[k] = sum(independent)
        weights = np.concatenate(
            [np.full(len(x), n / max(len(x), 1)) for x, n in zip(near, independent, strict=True)]
        )
        for j, level in enumerate(LEVELS):
            # Student's: the size of errors is itself estimated from few windows.
            prior = float(stdtrit(PRIOR_WINDOWS + counts[k], 0.5 + level / 2)) * widened[knot]
            if counts[k] <= 0:
                factors[j, k] = max(factors[j, k - 1], prior) if k else prior
                continue
            # Counts are no whole numbers, so that the rank is not rounded up.
            found = _quantile(np.concatenate(near), weights, min(1.0, level * (1 + 1 / counts[k])))
            share = counts[k] / (counts[k] + PRIOR_WINDOWS)
            factors[j, k] = prior * (max(found, 1e-3) / prior) ** share
    return Bands(ahead[knots], factors, counts, power)


def _widened(
    mechanics: Mechanics, windows: Windows, systems: np.ndarray, found: Forecasts, draws: np.ndarray
) -> np.ndarray:
    """(H,) spread with the uncertainty of the coefficients over the filter's own spread."""
    moved, some = [], slice(None, None, EVERY)
    for theta in draws:
        changed = dataclasses.replace(mechanics, theta=theta)
        moved.append(forecasts(changed, windows.take(some), systems[some]).mean - found.mean[some])
    share = np.mean(np.square(moved), axis=0) / found.variance[some]
    wide = np.ones(share.shape[1])
    there = np.isfinite(share).any((0, 2))
    wide[there] = np.sqrt(1 + np.nanmedian(share[:, there], axis=(0, 2)))
    return np.minimum(wide, WIDEST)


def _cost(parts: list[tuple[Windows, Forecasts]], off: list[np.ndarray], power: float) -> float:
    """Negative log-likelihood a measurement, with the best common factor."""
    ratios, logs = [], []
    for (_, found), e in zip(parts, off, strict=True):
        sd = _spread(found, power)
        good = np.isfinite(e) & np.isfinite(sd)
        ratios.append((e / sd)[good])
        logs.append(np.log(sd[good]))
    ratio = np.concatenate(ratios)
    return float(np.log(np.sqrt((ratio**2).mean())) + np.concatenate(logs).mean())


def independent_windows(windows: Windows, ratios: Float[np.ndarray, "n d"], ahead: float) -> float:
    """Number of independent windows among those that overlap.

    At least those that do not overlap: the time that starts cover over the horizon. More where
    errors are hardly correlated from start to start: their number over the sum of their
    autocorrelations, up to the first that is not positive.

    Arguments: windows; ratios: (n, d) errors at a horizon, in units of their spread; ahead: the
        horizon, scaled.
    Returns: the number.
    """
    starts, names = np.array([x.t[0] for x in windows.pieces]), np.array(windows.names)
    apart, hardly = 0.0, np.zeros(ratios.shape[1])
    centred = ratios - np.nanmean(ratios, axis=0) if np.isfinite(ratios).any() else ratios
    for name in dict.fromkeys(windows.names):
        here = names == name
        apart += (float(np.ptp(starts[here])) + windows.ahead[0]) / (ahead + 4 * windows.ahead[0])
        for k, column in enumerate(centred[here].T):
            x = column[np.isfinite(column)]
            full = np.correlate(x, x, "full")[len(x) - 1 :] if len(x) else np.zeros(1)
            ends = np.flatnonzero(full <= 0)
            total = full[: ends[0] if len(ends) else None].sum()
            hardly[k] += len(x) * full[0] / max(2 * total - full[0], 1e-300)
    return max(apart, float(hardly.min()))


def _quantile(values: np.ndarray, weights: np.ndarray, level: float) -> float:
    order = np.argsort(values)
    share = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(np.searchsorted(share, level - 1e-12), len(values) - 1)])
