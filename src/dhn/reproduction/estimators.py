"""Baselines behind the estimator's face, and estimators by name."""

from typing import Any, final

from dhn.errors import UserError
from dhn.estimator.kinds import DHN, AbstractEstimator, register_estimator
from dhn.estimator.options import apply_options
from dhn.models.config import Config
from dhn.models.registry import config_class
from dhn.training.config import TrainingConfig


@final
class Baseline(AbstractEstimator):
    """A baseline behind the same face: `Baseline("hnn", rollout="rk4")`, `Baseline("vanilla")`."""

    def __init__(self, kind: str | Config, **options: Any):
        base = config_class(kind)() if isinstance(kind, str) else kind
        made = apply_options({"model": base, "training": TrainingConfig()}, options)
        self.config = made["model"]
        self.training = made["training"]
        self.given = {"kind": kind, **options}
        self.fitted = None


for _kind in ("hnn", "vanilla", "cnn", "neighbour"):
    register_estimator(_kind, Baseline)


def make_estimator(kind: str, preset: str, options: dict[str, Any]) -> AbstractEstimator:
    """An untrained model by name; presets belong to DHN."""
    if kind == "dhn":
        return DHN(preset, **options)
    if preset != "default":
        raise UserError(f"presets belong to model dhn; {kind!r} has none. Leave the preset out.")
    return Baseline(kind, **options)
