"""From what a file or a person says to a configuration, and from a configuration to a model."""

from difflib import get_close_matches
from typing import Any

import jax.random as jr

from dhn.baselines.registry import MODELS, build_model
from dhn.errors import UserError
from dhn.models import AbstractModel, ModelContext
from dhn.models.config import Config


def skeleton(config: Any, context: ModelContext) -> AbstractModel:
    """A model of the right structure, to be filled with stored weights."""
    return build_model(config, context, jr.key(0))


def config_class(kind: str) -> type[Config]:
    """The configuration of this kind of model."""
    if kind not in MODELS:
        close = get_close_matches(str(kind), MODELS, 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise UserError(f"unknown model {kind!r}; expected one of {', '.join(MODELS)}.{hint}")
    return MODELS[kind][0]


def read_config(values: dict[str, Any]) -> Any:
    """The configuration that a file describes."""
    return config_class(values.get("kind", "")).model_validate(values)
