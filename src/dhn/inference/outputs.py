"""From scaled paths back to `Trajectories` in physical units."""

import dataclasses

import numpy as np

from dhn.blocks import StateBlock
from dhn.data.scaling import Scaler
from dhn.data.trajectories import Trajectories

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def joined(
    observed: Trajectories, paths: list[StateBlock], scaler: Scaler, time_step: float
) -> Trajectories:
    """Observed states, then the first path; with several paths, their quantiles too."""
    physical = [scaler.inverse(x.q.astype(np.float64), x.p.astype(np.float64)) for x in paths]
    q, p = physical[0]
    steps = q.shape[1]
    momenta = observed.momenta
    assert momenta is not None
    ahead = time_step * np.arange(1, steps + 1)
    last = observed.t[..., -1:]
    t = np.concatenate([observed.t, last + ahead], axis=-1)
    known = np.concatenate([observed.known, np.zeros(q.shape[:2], bool)], axis=1)
    joined = with_momenta(
        observed,
        np.concatenate([observed.q, q], axis=1),
        np.concatenate([momenta, p], axis=1),
        t,
        known,
    )
    if len(paths) == 1:
        return joined
    bands = {}
    for name, part, seen in (("q_quantiles", 0, observed.q), ("p_quantiles", 1, momenta)):
        levels = np.quantile(np.stack([x[part] for x in physical]), QUANTILES, axis=0)
        bands[name] = {
            level: np.concatenate([seen, values], axis=1)
            for level, values in zip(QUANTILES, levels, strict=True)
        }
    return joined.replace(**bands)


def with_momenta(like: Trajectories, q, p, t, known) -> Trajectories:
    """New states with the labels of `like`; what stood for momenta there does so here."""
    momenta = {"p": p, "v": None} if like.p is not None else {"p": None, "v": p}
    return dataclasses.replace(
        like, q=q, t=t, known=known, **momenta, q_quantiles={}, p_quantiles={}
    )
