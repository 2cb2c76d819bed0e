"""A small problem that trains in a second: harmonic oscillators of different frequency."""

import jax
import numpy as np

from dhn.models import DHNConfig, DHNModel, NetworkConfig
from dhn.models.registry import draw_weights
from dhn.training.config import TrainingConfig
from dhn.training.devices import Devices
from dhn.training.prepare import bucket, make_context, place_states, prepare, scaled_part
from dhn.trajectories.container import Trajectories
from dhn.trajectories.scaling import Scaler
from dhn.trajectories.segments import code_rows

SMALL = DHNConfig(network=NetworkConfig(width=8, depth=1), latent_size=2)


def oscillators(trajectories: int = 12, states: int = 24, seed: int = 0, **fields) -> Trajectories:
    rng = np.random.default_rng(seed)
    frequency = rng.uniform(0.8, 1.2, (trajectories, 1))
    phase = rng.uniform(0, 2 * np.pi, (trajectories, 1))
    t = 0.1 * np.arange(states)
    q = np.cos(frequency * t + phase)[..., None]
    p = -(frequency * np.sin(frequency * t + phase))[..., None]
    return Trajectories(**{"q": q, "p": p, "t": t, **fields})


def recipe(**changes) -> TrainingConfig:
    base = {"steps": 40, "batch_size": 16, "warmup": 5, "validation": 0.0}
    return TrainingConfig(**{**base, **changes})


def problem(data: Trajectories | None = None, config: DHNConfig = SMALL, seed: int = 0):
    """`(model, data, scaler)`, the first arguments of `fit`."""
    data = oscillators() if data is None else data
    scaler = Scaler.fit(data)
    return (
        draw_weights(DHNModel, config, make_context(data, scaler), jax.random.key(seed)),
        data,
        scaler,
    )


def prepared(data: Trajectories, scaler: Scaler, shapes, precision="float32", usable=None):
    """The arrays that steps on these trajectories read, on one device."""
    rows = bucket(len(data))
    part = scaled_part(data, scaler, precision, rows)
    states, known = place_states(part, rows, len(data), Devices())
    return prepare(states, known if usable is None else usable, shapes, code_rows(data))
