"""Learning from noisy trajectories: training and reconstruction of the training set in turns.

One-step equations fitted to noisy states are biased, since both ends of a step carry noise. So the
training set is smoothed by local polynomials first. A model trained on that reconstructs the
training set from the measurements, which leaves far less noise, and is trained again on the result.
"""

import numpy as np
from jaxtyping import Float

from dhn.reconstruct.guess import join_all
from dhn.training.prepare import make_context
from dhn.trajectories.container import Trajectories
from dhn.trajectories.noise import measurement_noise, smoothed
from dhn.trajectories.scaling import Scaler

NOISY = 2e-3
"""Noise over a typical change in one step above which training takes turns."""
SHARES = (0.15, 0.25, 0.6)
"""Of steps or budget: on smoothed data, then on one reconstruction after the other."""


def noise_per_step(train: Trajectories, scaler: Scaler) -> tuple[Float[np.ndarray, "2 d"], float]:
    """Scaled noise of the training set, and its largest share of a typical change in one step."""
    noise = scaler.scaled_noise(measurement_noise(train))
    return noise, float(np.max(noise) / make_context(train, scaler).change(1))


def with_states(
    train: Trajectories, scaler: Scaler, states: Float[np.ndarray, "n T m"]
) -> Trajectories:
    """The training set with its states replaced by scaled estimates; times and labels stay."""
    d = train.dim
    q, p = scaler.inverse(states[..., :d], states[..., d:])
    name = "v" if train.p is None else "p"
    held = np.isfinite(states).all(-1)
    return train.replace(q=q, known=held, noise=None, **{name: p})


def smooth_start(
    values: Float[np.ndarray, "n T m"],
    known: np.ndarray,
    noise: Float[np.ndarray, " m"],
) -> Float[np.ndarray, "n T m"]:
    """Local polynomials through measurements; gaps are joined by splines first."""
    joined = join_all(values, known)
    columns = [smoothed(joined[..., k], float(noise[k])) for k in range(joined.shape[2])]
    return np.stack(columns, axis=-1)
