"""Which configuration builds which model."""

from difflib import get_close_matches
from typing import Any

import jax.random as jr
from jaxtyping import Array, Key

from dhn.errors import UserError
from dhn.models import AbstractModel, DHNConfig, DHNModel, ModelContext
from dhn.models.config import Config

MODELS: dict[str, tuple[type[Config], type[Any]]] = {"dhn": (DHNConfig, DHNModel)}
"""Kind of configuration -> (configuration, model with `build(config, context, key)`)."""


def register_model(kind: str, config: type[Config], model: type[Any]) -> None:
    """Make a model of your own trainable, savable and comparable like the built-in ones."""
    MODELS[kind] = (config, model)


def build_model(config: Any, context: ModelContext, key: Key[Array, ""]) -> AbstractModel:
    return MODELS[config.kind][1].build(config, context, key)


def skeleton(config: Any, context: ModelContext) -> AbstractModel:
    """A model of the right structure, to be filled with stored weights."""
    return build_model(config, context, jr.key(0))


def read_config(values: dict[str, Any]) -> Any:
    """The configuration that a file describes."""
    kind = values.get("kind", "")
    if kind not in MODELS:
        close = get_close_matches(str(kind), MODELS, 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise UserError(f"unknown model kind {kind!r}; expected one of {', '.join(MODELS)}.{hint}")
    return MODELS[kind][0].model_validate(values)
