"""The estimators that a person makes: DHN, and the baselines behind the same face."""

from typing import Any

from dhn.estimator.adapt import DECIDED, adapted_preset, noise_per_step
from dhn.estimator.estimator import AbstractEstimator
from dhn.estimator.options import apply_options
from dhn.models.config import DHNConfig
from dhn.models.presets import get_preset
from dhn.training.config import TrainingConfig
from dhn.trajectories.container import Trajectories


class DHN(AbstractEstimator):
    """Denoising Hamiltonian Network in scikit-learn's manner.

    `DHN()` is the recipe that measured best: `DHN("linked")` for clean data, `DHN("paired")` where
    the training set announces noise, `DHN("measured")` for what `dhn import` wrote. `DHN("paper")`
    is the paper's own. Any field of `DHNConfig`, `NetworkConfig` and `TrainingConfig` can be given
    by name:
    `DHN(block_size=2, stride=1, linked=False, width=64, learning_rate=1e-3, seed=1)`.
    """

    def __init__(self, preset: str | DHNConfig = "default", /, **options: Any):
        self._take(preset, options)
        self.artifact = None
        # What the data decide unless it was said: see `adapted_preset`.
        self._open = options if preset == "default" and not DECIDED & set(options) else None

    def _take(self, preset: str | DHNConfig, options: dict[str, Any]) -> None:
        base, training = get_preset(preset) if isinstance(preset, str) else (preset, {})
        made = apply_options(
            {"model": base, "training": TrainingConfig.model_validate(training)}, options
        )
        self.config = made["model"]
        self.training = made["training"]

    def adapt(self, train: Trajectories) -> str | None:
        if self._open is None:
            return None
        preset, more = adapted_preset(train)
        self._take(preset, {**more, **self._open})
        if preset == "linked":
            return None
        if preset == "measured":
            damping = "damping is learned, and " if self.config.damping == "learned" else ""
            return (
                f"measured data: {damping}paths of {self.config.path} states are laid through them "
                f"(preset measured)"
            )
        share = noise_per_step(train)
        return f"noise is {share:.0%} of the change in a step: two networks (preset {preset})"
