"""From scaled paths back to `Trajectories` in physical units."""

import dataclasses

import numpy as np

from dhn.blocks import StateBlock
from dhn.reconstruct.calibration import Calibration
from dhn.trajectories.container import Trajectories
from dhn.trajectories.scaling import Scaler

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def stacked(states: StateBlock) -> np.ndarray:
    """(n, T, 2, d): coordinates and momenta side by side, in double precision."""
    return np.stack([np.asarray(x, np.float64) for x in states], axis=2)


def together(each: list[list[StateBlock]], samples: int) -> list[StateBlock]:
    """Paths of several models as of one: their mean first, then all of theirs if `samples > 1`."""
    best = [paths[0] for paths in each]
    mean = StateBlock(*(np.mean([path[i] for path in best], axis=0) for i in (0, 1)))
    return [mean] if samples == 1 else [mean, *(path for paths in each for path in paths)]


def joined(
    observed: Trajectories,
    paths: list[StateBlock],
    scaler: Scaler,
    time_step: float,
    calibration: Calibration | None,
) -> Trajectories:
    """Observed states, then the first path; with several paths, quantiles too."""
    scaled = [stacked(path) for path in paths]

    def physical(x):
        return scaler.inverse(x[:, :, 0], x[:, :, 1])

    q, p = physical(scaled[0])
    momenta = observed.momenta
    assert momenta is not None
    ahead = time_step * np.arange(1, q.shape[1] + 1)
    t = np.concatenate([observed.t, observed.t[..., -1:] + ahead], axis=-1)
    known = np.concatenate([observed.known, np.zeros(q.shape[:2], bool)], axis=1)
    found = with_momenta(
        observed,
        np.concatenate([observed.q, q], axis=1),
        np.concatenate([momenta, p], axis=1),
        t,
        known,
    )
    if len(paths) == 1:
        return found
    bands: dict[str, dict[float, np.ndarray]] = {"q_quantiles": {}, "p_quantiles": {}}
    for level, values in quantiles(np.stack(scaled), calibration).items():
        for name, part, seen in zip(bands, physical(values), (observed.q, momenta), strict=True):
            bands[name][level] = np.concatenate([seen, part], axis=1)
    return found.replace(**bands)


def quantiles(samples: np.ndarray, calibration: Calibration | None) -> dict[float, np.ndarray]:
    """Quantiles of `(K, n, h, 2, d)` scaled paths; calibrated ones are centred on the first."""
    if calibration is None:
        return dict(zip(QUANTILES, np.quantile(samples, QUANTILES, axis=0), strict=True))
    centre = samples[0]
    found = {0.5: centre}
    for level, width in calibration.half_widths(samples.std(0)).items():
        found[round(0.5 - level / 2, 3)] = centre - width
        found[round(0.5 + level / 2, 3)] = centre + width
    return {level: found[level] for level in QUANTILES}


def with_momenta(like: Trajectories, q, p, t, known) -> Trajectories:
    """New states with the labels of `like`; what stood for momenta there does so here."""
    momenta = {"p": p, "v": None} if like.p is not None else {"p": None, "v": p}
    return dataclasses.replace(
        like, q=q, t=t, known=known, **momenta, q_quantiles={}, p_quantiles={}
    )
