"""Learning from noisy trajectories: training and reconstruction of the training set in turns.

One-step equations fitted to noisy states are biased, since both ends of a step carry noise. So the
training set is smoothed by local polynomials first. A model trained on that reconstructs the
training set from the measurements, which leaves far less noise, and is trained again on the result.
Momenta that were not measured begin as `M(q) v` of a mass matrix and are reconstructed likewise.
"""

import numpy as np
from jaxtyping import Float

from dhn.blocks import StateBlock
from dhn.errors import UserError
from dhn.mechanics.momenta import first_momenta
from dhn.reconstruct.guess import join_all
from dhn.reconstruct.question import States
from dhn.training.prepare import check_even, make_context
from dhn.trajectories.container import Trajectories
from dhn.trajectories.noise import measurement_noise, smoothed
from dhn.trajectories.scaling import Scaler

NOISY = 2e-3
"""Noise over a typical change in one step above which training takes turns."""
SHARES = (0.2, 0.2, 0.6)
"""Of steps or budget: on smoothed data, then on one reconstruction after the other."""


def noise_per_step(
    measured: Trajectories, train: Trajectories, scaler: Scaler
) -> tuple[Float[np.ndarray, "2 d"], float]:
    """Scaled noise of what was measured, and its largest share of a typical change in one step.

    `train` are the same trajectories with momenta.
    """
    noise = scaler.scaled_noise(measurement_noise(measured))
    return noise, float(np.max(noise) / make_context(train, scaler).change(1))


def with_states(train: Trajectories, scaler: Scaler, states: States) -> Trajectories:
    """The training set with its states replaced by scaled estimates; times and labels stay."""
    q, p = scaler.inverse(*StateBlock.of(states))
    name = "v" if train.p is None else "p"
    held = np.isfinite(states).all(-1)
    return train.replace(q=q, known=held, noise=None, **{name: p})


def smooth_start(values: States, known: np.ndarray, noise: Float[np.ndarray, " m"]) -> States:
    """Local polynomials through measurements; gaps are joined by splines first."""
    joined = join_all(values, known)
    columns = [smoothed(joined[..., k], float(noise[k]))[0] for k in range(joined.shape[2])]
    return np.stack(columns, axis=-1)


def momenta_of(train: Trajectories) -> str:
    """What stands for momenta in a model of these trajectories; see `TrainedModel.momenta`."""
    return "inferred" if train.momenta is None else "v" if train.p is None else "p"


def with_first_momenta(train: Trajectories) -> Trajectories:
    """Positions with momenta to begin with, by a mass matrix; turns of reconstruction refine them.

    Velocities in place of momenta would not do: a network fits them as well, and reconstruction by
    that network returns them.

    Arguments:
        train: Positions on an even grid of times.

    Returns:
        The same trajectories with `p`, in units of the first coordinate's inertia.
    """
    check_even(train)
    noise = measurement_noise(train)[0]
    known = np.asarray(train.known_q)
    never = ~known.any(1)
    if never.any():
        row, k = np.argwhere(never)[0]
        raise UserError(
            f"trajectory {train.ids[row]!r} has no known number of {train.names[k]}; leave it out."
        )
    joined = join_all(np.where(known, train.q, 0.0), known)
    columns = [smoothed(joined[..., k], float(noise[k])) for k in range(train.dim)]
    q, change = (np.stack(x, axis=-1) for x in zip(*columns, strict=True))
    v = change / train.time_step
    return train.replace(p=first_momenta(q, v, train.time_step, train.angles, noise))
