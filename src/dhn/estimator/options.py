"""Loose options, as a person types them, into typed configurations."""

from typing import Any, TypeVar

import pydantic

from dhn.errors import UserError, did_you_mean, first_mistake
from dhn.models.config import Config

C = TypeVar("C", bound=Config)


def apply_options(configs: dict[str, Config], options: dict[str, Any]) -> dict[str, Any]:
    """Each option into the first configuration (or its nested network) that has a field so named.

    `{"model": DHNConfig(), "training": TrainingConfig()}` with `{"width": 64}` changes
    `model.network.width`. An unknown name fails, with the nearest known one.
    """
    values = {name: config.model_dump() for name, config in configs.items()}
    known: dict[str, list[dict[str, Any]]] = {}
    for config in values.values():
        for holder in (config, *(v for v in config.values() if isinstance(v, dict))):
            for field in holder:
                known.setdefault(field, []).append(holder)
    for option, value in options.items():
        if option not in known:
            raise UserError(f"unknown option {option!r}.{did_you_mean(option, known)}")
        holder = known[option][0]
        if isinstance(holder[option], dict) and isinstance(value, str):
            holder[option]["kind"] = value
        elif isinstance(holder[option], dict) and isinstance(value, Config):
            holder[option] = value.model_dump()
        else:
            holder[option] = value
    return {name: validated(type(config), values[name]) for name, config in configs.items()}


def validated(kind: type[C], values: dict[str, Any]) -> C:
    """The configuration, or one line about the first field that is wrong."""
    try:
        return kind.model_validate(values)
    except pydantic.ValidationError as error:
        raise UserError(first_mistake(error)) from None
