"""From trajectories to a question in the model's units, and from a posterior back."""

import dataclasses
import warnings
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Float

from dhn.blocks import StateBlock
from dhn.errors import UserError
from dhn.models.dhn import as_dhn
from dhn.reconstruct.bands import Bands, horizons
from dhn.reconstruct.denoised import reconstruct_by_denoising
from dhn.reconstruct.engine import reconstruct
from dhn.reconstruct.guess import reliable
from dhn.reconstruct.knowledge import least_noise
from dhn.reconstruct.posterior import Posterior
from dhn.reconstruct.question import Between, Mask, States, interpolate_path
from dhn.trajectories.container import Trajectories

if TYPE_CHECKING:
    from dhn.estimator.trained import TrainedModel

ABSURD = 1e8
"""Scaled numbers beyond this are mistakes, and their squares lose all digits."""
ON_GRID = 1e-4
"""Distance from a time of the grid, in steps, below which a measurement lies on it."""
SAME_NOISE = 3.0
"""Ratio up to which the noise of data counts as that of the calibration."""
BETWEEN = 1e-5
"""Least noise of a measurement between grid states, scaled: the error of interpolation there."""
MOST_STATES = 1 << 20
"""Longest grid that is laid over the times of one trajectory, in states."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Asked:
    """Trajectories on the model's grid, in its units."""

    values: States
    known: Mask
    noise: States
    between: Between | None
    place: Float[np.ndarray, "n S"]
    """Position of each of the data's times on the grid, in steps."""

    @property
    def on_grid(self) -> bool:
        return self.between is None


def ask(trained: "TrainedModel", data: Trajectories) -> Asked:
    """The numbers of `data` on the model's grid, in its units.

    Arguments:
        trained: The model whose grid and units are used.
        data: Trajectories; unknown numbers are NaN or belong to states that are not known.

    Returns:
        Scaled numbers with their noise; measurements off the grid keep their own times.
    """
    check_data(trained, data)
    q, p, noise = _scaled(trained, data)
    values = np.concatenate([q, p], axis=-1)
    known = np.asarray(data.known)[..., None] & np.isfinite(values)
    if (np.abs(values[known]) > ABSURD).any():
        raise UserError(
            f"these data hold numbers more than {ABSURD:g} times as large as in training; check "
            f"their units and columns."
        )
    if (noise[known] > ABSURD).any():
        raise UserError(
            f"the noise of these data is more than {ABSURD:g} times as large as the motion in "
            f"training; check its units."
        )
    if not known.any((1, 2)).all():
        empty = data.ids[int(np.argmin(known.any((1, 2))))]
        raise UserError(f"trajectory {empty!r} has no known number; leave it out.")
    place = (data.times - data.times[:, :1]) / trained.context.time_step
    last = np.nanmax(place, axis=1)
    states = int(np.ceil(last.max() - ON_GRID)) + 1
    if states > MOST_STATES:
        raise UserError(
            f"these data span {states} time steps of the model ({trained.context.time_step:.6g}); "
            f"at most {MOST_STATES} are reconstructed at once. Cut them into pieces."
        )
    nearest = np.round(place)
    even = np.isfinite(place) & (np.abs(place - nearest) <= ON_GRID * np.maximum(1, place / 100))
    if (even | ~np.isfinite(place)).all():
        return _on_grid(values, known, noise, place, nearest, states)
    least = max(least_noise(trained.knowledge), BETWEEN)
    return _off_grid(values, known, noise, place, max(states, 2), least)


def _scaled(trained: "TrainedModel", data: Trajectories):
    """Scaled q and p (NaN without momenta) and the noise of each number."""
    given = {"momenta": data.p, "velocities": data.v}
    used = {"p": "momenta", "v": "velocities", "inferred": "positions"}[trained.momenta]
    momenta = given.pop(used, None)
    if trained.momenta == "inferred" and data.p is not None and np.isfinite(data.p).any():
        raise UserError(
            "the model was trained on positions alone, and its momenta are in units of the first "
            "coordinate's inertia, those of these data are not; leave them out: "
            "data.replace(p=None)."
        )
    others = [name for name, x in given.items() if x is not None and np.isfinite(x).any()]
    if momenta is None and others:
        warnings.warn(
            f"the model was trained on {used}; the {' and '.join(others)} of these data are not "
            f"used.",
            stacklevel=5,
        )
    q = trained.scaler.transform_q(data.q)
    p = np.full_like(q, np.nan) if momenta is None else trained.scaler.transform_p(momenta)
    return q, p, trained.scaler.number_noise(data, trained.noise)


def _on_grid(values, known, noise, place, nearest, states) -> Asked:
    n, _, m = values.shape
    found = [np.zeros((n, states, m)), np.zeros((n, states, m), bool), np.zeros((n, states, m))]
    for i in range(n):
        here = np.isfinite(place[i])
        index = nearest[i][here].astype(int)
        for target, source in zip(found, (values, known, noise), strict=True):
            target[i, index] = source[i][here]
    return Asked(np.nan_to_num(found[0]), found[1], found[2], None, nearest)


def _off_grid(values, known, noise, place, states, least) -> Asked:
    """Measurements between the states of the grid, sorted into its intervals.

    For the first guess each is also moved to the nearest state of the grid, along straight lines.
    """
    n, S, m = values.shape
    interval = np.clip(np.floor(np.nan_to_num(place)), 0, states - 2).astype(int)
    counts = np.zeros((n, states - 1), int)
    slots = np.zeros((n, S), int)
    for i in range(n):
        for s in np.flatnonzero(known[i].any(-1)):
            slots[i, s] = counts[i, interval[i, s]]
            counts[i, interval[i, s]] += 1
    most = int(counts.max())
    between = Between(
        np.zeros((n, states - 1, most, m)),
        np.zeros((n, states - 1, most, m)),
        np.zeros((n, states - 1, most)),
    )
    for i in range(n):
        at = np.flatnonzero(known[i].any(-1))
        index = (i, interval[i, at], slots[i, at])
        between.values[index] = np.nan_to_num(values[i, at])
        between.weight[index] = np.where(known[i, at], 1 / np.maximum(noise[i, at], least) ** 2, 0)
        between.fraction[index] = place[i, at] - interval[i, at]
    moved, near = np.zeros((n, states, m)), np.zeros((n, states, m), bool)
    seen = reliable(known, noise)
    for i in range(n):
        for j in range(m):
            at = np.flatnonzero(seen[i, :, j])
            if len(at):
                index = np.unique(np.round(place[i, at]).astype(int))
                near[i, index, j] = True
                moved[i, index, j] = np.interp(index, place[i, at], values[i, at, j])
    return Asked(moved, near, np.zeros((n, states, m)), between, place)


def answer(trained: "TrainedModel", asked: Asked, draws: int = 0, seed: int = 0) -> Posterior:
    """The posterior of the states on the grid and, with calibrated covariance, of the codes."""
    posterior = reconstruct(
        trained.knowledge, asked.values, asked.known, asked.noise,
        between=asked.between, draws=draws, seed=seed,
    )  # fmt: skip
    wider = bands_for(trained, asked).widening(asked.known)
    return dataclasses.replace(posterior, code_root=posterior.code_root * wider[:, None, None])


def denoised(trained: "TrainedModel", asked: Asked, seed: int) -> Posterior:
    """The answer of the paper's solver; only for a DHN and measurements on its grid."""
    if not asked.on_grid:
        raise UserError(
            "denoising takes measurements on the model's time grid; these are at other times. Use "
            "solver='smooth'."
        )
    return reconstruct_by_denoising(
        as_dhn(trained.model), trained.knowledge, asked.values, asked.known,
        seed=seed, wide=trained.training.precision == "float64",
    )  # fmt: skip


def bands_for(trained: "TrainedModel", asked: Asked) -> Bands:
    """The calibrated bands, or the bare posterior's where the noise is of another size.

    Calibration corrects the size of the model's own error. Where measurement noise dominates, and
    did not in calibration, the posterior needs no correction.
    """
    own = trained.prior.noise * trained.context.change(1)
    measured = asked.noise[asked.known] if asked.on_grid else np.zeros(1)
    now, then = (max(float(np.sqrt(np.mean(x**2))), own) for x in (measured, trained.noise))
    return trained.bands if 1 / SAME_NOISE < now / then < SAME_NOISE else Bands.gaussian()


def read_back(
    trained: "TrainedModel", data: Trajectories, asked: Asked, posterior: Posterior
) -> Trajectories:
    """The posterior at the data's times as trajectories with quantiles, in physical units.

    Known numbers without noise keep their values; noisy ones are replaced by the posterior mean.
    """
    horizon = horizons(asked.known) if asked.on_grid else np.zeros(posterior.states.shape[:2])
    bands = bands_for(trained, asked)
    levels = bands.quantiles(posterior.states, posterior.deviation, horizon)
    if len(posterior.draws):
        ahead = (horizon > 0)[..., None]
        drawn = np.quantile(posterior.draws, list(levels), axis=0)
        levels = {
            level: np.where(ahead, x, levels[level]) for level, x in zip(levels, drawn, strict=True)
        }
    index = np.nan_to_num(asked.place)

    def at_times(x):
        if asked.on_grid:
            rows = np.arange(len(x))[:, None]
            return x[rows, index.astype(int)]
        left = np.clip(np.floor(index), 0, x.shape[1] - 2).astype(int)
        path = np.zeros((len(x), index.shape[1], x.shape[2]))
        for i in range(len(x)):
            fine = np.zeros((1, x.shape[1] - 1, index.shape[1]))
            fine[0, left[i], np.arange(index.shape[1])] = index[i] - left[i]
            found = np.asarray(interpolate_path(x[i : i + 1], fine))[0]
            path[i] = found[left[i], np.arange(index.shape[1])]
        return path

    missing = ~np.isfinite(asked.place)[..., None]

    def physical(x):
        x = np.where(missing, np.nan, at_times(x))
        return trained.scaler.inverse(*StateBlock.of(x))

    q, p = physical(posterior.states)
    found = {"q_quantiles": {}, "p_quantiles": {}}
    for level, values in levels.items():
        for name, part in zip(found, physical(values), strict=True):
            found[name][level] = part
    momenta = {"p": None, "v": None, trained.momenta_field: p}
    # The energy function of the system does not hold for momenta in other units.
    system = None if trained.momenta == "inferred" else data.system
    return dataclasses.replace(data, q=q, **momenta, noise=None, system=system, **found)


def check_data(trained: "TrainedModel", data: Trajectories) -> None:
    """The same coordinates as in training; a warning if the system has another name."""
    if data.dim != trained.context.dim:
        raise UserError(
            f"the model was trained on {trained.context.dim} coordinates "
            f"({', '.join(trained.names)}), but these data have {data.dim} "
            f"({', '.join(data.names)}). Use data of the same system."
        )
    if None not in (trained.system, data.system) and trained.system != data.system:
        warnings.warn(
            f"the model was trained on {trained.system!r}, but these data are of {data.system!r}; "
            f"its answers hold for the system it was trained on.",
            stacklevel=5,
        )
