"""What the training data decide about the default model."""

import numpy as np

from dhn.data.scaling import Scaler
from dhn.data.trajectories import Trajectories
from dhn.training.prepare import make_context

DECIDED = {"linked", "block_size", "stride", "denoising_weight", "spacings"}
"""Options that say it already."""
NOISY = 0.02
"""Measurement noise over a typical change in one step, above which a linked H⁺ goes wrong."""


def noise_per_step(train: Trajectories) -> float:
    """The largest announced noise of a coordinate, as a share of a typical change in one step."""
    if train.noise is None:
        return 0.0
    scaler = Scaler.fit(train)
    change = make_context(train, scaler).change(1)
    return float(np.max(scaler.scaled_noise(train.noise)) / change)


def adapted_preset(train: Trajectories) -> str:
    """`paired` for noisy data, else `linked`.

    One-step equations fitted to noisy states are biased: the network is told both ends of a step
    with the same noise, and learns too small a mixed derivative. Solved implicitly, H⁺ then
    multiplies momenta by its inverse at every step and diverges. With two networks both ends are
    outputs, and the same bias damps the noise instead (docs/experiments.md).
    """
    return "paired" if noise_per_step(train) > NOISY else "linked"
