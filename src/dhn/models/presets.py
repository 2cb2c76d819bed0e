"""Named configurations: the paper's own, and what measured best."""

from typing import Any

from dhn.errors import UserError
from dhn.models.config import DenoisingConfig, DHNConfig, NetworkConfig

PAPER_NETWORK = NetworkConfig(
    kind="transformer", width=128, depth=2, heads=4, activation="gelu", layer_norm=True
)
PAPER = DHNConfig(
    block_size=2,
    stride=1,
    linked=False,
    network=PAPER_NETWORK,
    latent_size=128,
    denoising_weight=1.0,
    denoising_outputs="all",
    angles="raw",
    inference=DenoisingConfig(steps=10, start="noise"),
)
PAIRED = DHNConfig(block_size=2, stride=1, linked=False, denoising_weight=1.0)
TRANSFORMER = DHNConfig(network=NetworkConfig(kind="transformer", width=32, depth=2, heads=4))
"""The paper's network in the default's form: with two networks and denoising, five minutes
lead thousands of times less far (docs/experiments.md)."""
MEASURED = DHNConfig(
    network=NetworkConfig(width=32, depth=2, quadratic=True),
    latent_size=8,
    damping="learned",
    path=16,
)
"""`path` is set from the period of the data (`inference.adapt`)."""

PRESETS: dict[str, tuple[DHNConfig, dict[str, Any]]] = {
    "default": (DHNConfig(), {}),
    "linked": (DHNConfig(), {}),
    "paper": (PAPER, {"optimiser": "adam", "learning_rate": 1e-3, "code_learning_rate": 1e-3}),
    "paired": (PAIRED, {}),
    "measured": (
        MEASURED,
        {
            "optimiser": "adam",
            "steps": 3000,
            "batch_size": 32,
            "warmup": 50,
            "validation": 0.15,
            "learning_rate": 1e-3,
            "code_learning_rate": 1e-3,
        },
    ),
    "transformer": (
        TRANSFORMER,
        {
            "optimiser": "adam",
            "learning_rate": 1e-3,
            "code_learning_rate": 4e-3,
            "batch_size": 64,
        },
    ),
}
"""Name -> (model, changes to the training recipe)."""


def get_preset(name: str) -> tuple[DHNConfig, dict[str, Any]]:
    if name not in PRESETS:
        raise UserError(f"unknown preset {name!r}; expected one of {', '.join(PRESETS)}.")
    return PRESETS[name]
