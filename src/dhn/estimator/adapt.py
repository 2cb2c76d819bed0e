"""What the training data decide about the default model."""

from typing import Any

import numpy as np

from dhn.training.prepare import make_context, usable_states
from dhn.trajectories.container import Trajectories
from dhn.trajectories.period import characteristic_period
from dhn.trajectories.scaling import Scaler
from dhn.trajectories.segments import is_measured

DECIDED = {"linked", "block_size", "stride", "denoising_weight", "spacings", "path"}
"""Options that say it already."""
NOISY = 0.02
"""Measurement noise over a typical change in one step, above which a linked H⁺ goes wrong."""

PERIODS = 0.75
"""Length of the paths through measured data."""
SHORTEST, LONGEST = 8, 128


def noise_per_step(train: Trajectories) -> float:
    """The largest announced noise of a coordinate, as a share of a typical change in one step."""
    if train.noise is None:
        return 0.0
    scaler = Scaler.fit(train)
    change = make_context(train, scaler).change(1)
    return float(np.max(scaler.scaled_noise(train.noise)) / change)


def path_states(train: Trajectories) -> int:
    """States of a path through measured data: most of a period, and half of an unbroken run."""
    known = usable_states(train)
    run = longest = np.zeros(len(known), int)
    for column in known.T:
        run = np.where(column, run + 1, 0)
        longest = np.maximum(longest, run)
    period = characteristic_period(train)
    wanted = LONGEST if period is None else round(PERIODS * period / train.time_step)
    return int(min(max(wanted, SHORTEST), LONGEST, np.median(longest) // 2))


def adapted_preset(train: Trajectories) -> tuple[str, dict[str, Any]]:
    """The preset for these data, and options that go with it.

    `measured`, along paths, for what `dhn import` wrote, if its runs are long enough. `paired` for
    other noisy data, else `linked`: one-step equations fitted to noisy states are biased. The
    network is told both ends of a step with the same noise, and learns too small a mixed
    derivative. Solved implicitly, H⁺ then multiplies momenta by its inverse at every step and
    diverges. With two networks both ends are outputs, and the same bias damps the noise instead
    (docs/experiments.md).
    """
    if is_measured(train) and (states := path_states(train)) >= SHORTEST:
        return "measured", {"path": states}
    return ("paired" if noise_per_step(train) > NOISY else "linked"), {}
