"""From a configuration to a model: the kinds that a saved file may name."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Key, PyTree

from dhn.errors import UserError, did_you_mean
from dhn.memory import check_memory
from dhn.models.config import Config, DHNConfig
from dhn.models.contract import AbstractModel, ModelContext
from dhn.models.dhn import DHNModel

_MODELS: dict[str, tuple[type[Config], Any]] = {"dhn": (DHNConfig, DHNModel)}
"""Kind of configuration -> (configuration, model with `build(config, context, key)`)."""


BYTES_A_PARAMETER = 16
"""float32 four times: the weight, its gradient and two moments of Adam."""


def register_model(kind: str, config: type[Config], model: Any) -> None:
    """Add a kind of model, so that it can be trained, saved and loaded by its configuration."""
    if _MODELS.get(kind, (config, model)) != (config, model):
        raise UserError(f"a model of kind {kind!r} exists already; choose another name.")
    _MODELS[kind] = (config, model)


def build_model(config: Any, context: ModelContext, key: Key[Array, ""]) -> AbstractModel:
    """Fresh weights for any configuration; a `UserError` if they do not fit into memory."""
    skeleton(config, context)
    return draw_weights(_entry(config.kind)[1], config, context, key)


# Without optimisation, because it runs once (3.6 s instead of 9.8 for the paper's transformer).
_ONCE: dict[str, Any] = {
    "compiler_options": {
        "xla_backend_optimization_level": 0,
        "xla_cpu_use_fusion_emitters": False,
    }
}


@eqx.filter_jit(**_ONCE)
def draw_weights(model: Any, config: Any, context: ModelContext, key: Key[Array, ""]) -> Any:
    """`model.build`, compiled as one program: weight by weight it would be hundreds."""
    return model.build(config, context, key)


def skeleton(config: Any, context: ModelContext) -> AbstractModel:
    """The structure of a model, with `jax.ShapeDtypeStruct` for arrays; a `UserError` if its
    weights would not fit into memory."""
    found = _shapes(config, context)
    count = count_parameters(found)
    check_memory(
        BYTES_A_PARAMETER * count,
        f"a model of {count} parameters",
        "choose a smaller width, depth, block_size or latent_size",
    )
    return found


def _shapes(config: Any, context: ModelContext) -> AbstractModel:
    key = jax.eval_shape(jr.key, 0)
    return eqx.filter_eval_shape(_entry(config.kind)[1].build, config, context, key)


def config_class(kind: str) -> type[Config]:
    """The configuration class of this kind of model."""
    return _entry(kind)[0]


def read_config(values: dict[str, Any]) -> Any:
    """The configuration that a file describes."""
    return config_class(values.get("kind", "")).model_validate(values)


def _entry(kind: str) -> tuple[type[Config], Any]:
    if kind not in _MODELS:
        raise UserError(
            f"unknown model {kind!r}; expected one of {', '.join(_MODELS)}."
            f"{did_you_mean(kind, _MODELS)} Baselines become known by `import dhn.reproduction`."
        )
    return _MODELS[kind]


def count_parameters(model: PyTree) -> int:
    """Trainable numbers of a model; the codebook grows with the data and is not counted."""
    return sum(
        x.size
        for x in jax.tree.leaves(model)
        if hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.inexact)
    )


def planned_parameters(config: Any, context: ModelContext) -> int:
    """The result of `count_parameters` for a model that is not built yet."""
    return count_parameters(_shapes(config, context))
