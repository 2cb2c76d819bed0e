"""How large the grid is and how long each of its models trains."""

from typing import Any

import pydantic

from dhn.errors import UserError
from dhn.models.config import Config, Positive
from dhn.reproduction.cell import Training

EXPERIMENTS = ("fit", "completion", "representation", "interpolation", "stress")
"""Run by default."""
ON_REQUEST = ("curves", "peers")
"""Hours rather than minutes, so that they are run only if they are named."""


class Preset(Config):
    """One scale of the whole grid."""

    name: str
    training: Training
    train: Positive = 1000
    test: Positive = 200
    seeds: Positive = 1
    """Seeds of the models that a claim ranks; all others have one."""
    stress_seeds: Positive = 1
    network: dict[str, Any] = pydantic.Field(default_factory=dict)
    """Options of every MLP."""
    transformer: dict[str, Any] = pydantic.Field(default_factory=dict)
    """Options of the baselines' transformers."""
    paper: dict[str, Any] = pydantic.Field(default_factory=dict)
    """What is changed in the model preset `paper` so that it fits this grid."""
    exact: bool = False
    """The model preset `paper` as it is, for its own number of steps."""
    full: bool = True
    """False leaves models and tasks out that differ from others in a number only."""
    fitted: Positive = 40
    """Test trajectories of the parametric fit, which solves a problem for each."""
    options: dict[str, Any] = pydantic.Field(default_factory=dict)
    """Changes to every training recipe."""
    xla_flags: str = ""
    """For the compiler of the worker processes."""


SMOKE = Preset(
    name="smoke",
    training=Training(steps=20),
    train=16,
    test=4,
    network={"width": 8, "depth": 1},
    transformer={"width": 8, "depth": 1, "heads": 2},
    paper={"width": 8, "depth": 1, "heads": 2, "batch_of": "windows"},
    full=False,
    fitted=1,
    options={"batch_size": 32, "latent_size": 2, "warmup": 5, "validation": 0.0},
    # Twenty steps of tiny networks: nearly all the time goes into compilation.
    xla_flags="--xla_backend_optimization_level=0",
)
QUICK = Preset(
    name="quick",
    training=Training(seconds=15.0),
    seeds=3,
    stress_seeds=3,
    transformer={
        "width": 32,
        "depth": 2,
        "heads": 4,
        "optimiser": "adam",
        "learning_rate": 2e-3,
    },
    # Its form, masks, losses and rounds, with steps small enough that seconds hold many of them.
    paper={
        "width": 32,
        "batch_of": "windows",
        "batch_size": 256,
        "learning_rate": 1e-3,
        "code_learning_rate": 1e-3,
        "final_learning_rate": 1e-4,
    },
    # Every second of so few goes into training: the learning rate comes to rest at the end, and
    # the last weights are taken. Processor time, since cells share the machine.
    options={"validation": 0.0, "clock": "processor"},
)
PAPER = Preset(
    name="paper",
    # 200 epochs of 1000 trajectories with about 127 windows, 512 windows a step.
    training=Training(steps=200 * 127_000 // 512),
    seeds=3,
    stress_seeds=3,
    exact=True,
    transformer={
        "width": 128, "depth": 2, "heads": 4, "activation": "gelu", "layer_norm": True,
        "latent_size": 128, "optimiser": "adam", "learning_rate": 1e-3,
        "code_learning_rate": 1e-3,
    },
    fitted=200,
)  # fmt: skip

PRESETS = {preset.name: preset for preset in (SMOKE, QUICK, PAPER)}


def get_preset(name: str) -> Preset:
    if name not in PRESETS:
        raise UserError(f"unknown preset {name!r}; expected one of {', '.join(PRESETS)}.")
    return PRESETS[name]
