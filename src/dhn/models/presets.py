"""Named configurations: the paper's own, and what measured best."""

from typing import Any

from dhn.errors import UserError
from dhn.models.config import DenoisingConfig, DHNConfig, NetworkConfig

PAPER_NETWORK = NetworkConfig(
    kind="transformer",
    width=128,
    depth=2,
    heads=4,
    activation="relu",
    layer_norm=True,
    initial="pytorch",
)
PAPER = DHNConfig(
    block_size=2,
    stride=1,
    linked=False,
    network=PAPER_NETWORK,
    latent_size=128,
    units="state",
    denoising_weight=0.1,
    noise="uniform",
    denoising_outputs="all",
    angles="raw",
    inference=DenoisingConfig(noisy_rounds=10, clean_rounds=1, advance="one"),
)
"""The paper with the values of its authors' public code; `PAPER_TRAINING` has the optimiser's.

One thing is not theirs: momenta are divided by the mean over training trajectories of their largest
one (`Scaler.fit`), not by each trajectory's own, future included. And one level belongs to one
token, where theirs draws a level for each coordinate and conditions the network on the first.
"""
PAPER_TRAINING: dict[str, Any] = {
    "scaling": "quarter-turn",
    "optimiser": "adam",
    "learning_rate": 1e-4,
    "code_learning_rate": 1e-4,
    "warmup": 0,
    "final_learning_rate": 1.0,
    "clip": 0.0,
    "l2": 1e-4,
    "batch_of": "trajectories",
    "batch_size": 32,
    "steps": 6432,  # 201 epochs of 32 steps
    "code_start": 1.0,
    "code_updates": "all",
    "code_search": 0.0,
    "validation": 0.0,  # all 1000 trajectories train, nothing is selected
}
SMOOTH = PAPER.model_copy(
    update={"network": PAPER_NETWORK.model_copy(update={"activation": "gelu"})}
)
"""The paper with a smooth activation: ReLU makes ∂H piecewise constant in what it acts on."""
RANDOM = PAPER.model_copy(update={"mask": "random", "shared_mask": True})
"""The paper's representation learning."""
SUPERRESOLUTION = PAPER.model_copy(
    update={
        "spacings": (4, 2, 1),
        "mask": "superresolution",
        "denoising_outputs": "unknown",
    }
)
"""The paper's interpolation: three stages, and here the known outputs are left out of the loss."""
BLOCKS = DHNConfig(block_size=2, stride=1, linked=False, denoising_weight=0.02, noise="nearby")
"""The paper's two networks and masked denoising with MLPs inside. Windows are noised nearby and in
the clean pass, and inference refines a straight continuation with the clean equations."""
TRANSFORMER = DHNConfig(network=NetworkConfig(kind="transformer", width=32, depth=2, heads=4))
"""The paper's network in the default's form: with two networks and denoising, five minutes
lead thousands of times less far (docs/lab/experiments.md)."""
PRESETS: dict[str, tuple[DHNConfig, dict[str, Any]]] = {
    "default": (DHNConfig(), {}),
    "paper": (PAPER, PAPER_TRAINING),
    "paper-smooth": (SMOOTH, PAPER_TRAINING),
    "paper-random": (RANDOM, PAPER_TRAINING),
    "paper-superresolution": (SUPERRESOLUTION, PAPER_TRAINING),
    "blocks": (BLOCKS, {}),
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
    if not isinstance(name, str) or name not in PRESETS:
        raise UserError(f"unknown preset {name!r}; expected one of {', '.join(PRESETS)}.")
    return PRESETS[name]
