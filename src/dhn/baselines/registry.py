"""From a configuration to a model, whichever kind; and parameter counts made equal."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Key, PyTree

from dhn.baselines.cnn import CNNModel
from dhn.baselines.config import CNNConfig, HNNConfig, NeighbourConfig, VanillaConfig
from dhn.baselines.hnn import HNNModel
from dhn.baselines.neighbour import NeighbourModel
from dhn.baselines.vanilla import VanillaModel
from dhn.models.config import Config, DHNConfig
from dhn.models.contract import AbstractModel, ModelContext
from dhn.models.dhn import DHNModel

MODELS: dict[str, tuple[type[Config], Any]] = {
    "dhn": (DHNConfig, DHNModel),
    "hnn": (HNNConfig, HNNModel),
    "vanilla": (VanillaConfig, VanillaModel),
    "cnn": (CNNConfig, CNNModel),
    "neighbour": (NeighbourConfig, NeighbourModel),
}
"""Kind of configuration -> (configuration, model with `build(config, context, key)`)."""

MATCHING_ROUNDS = 12


def build_model(config: Any, context: ModelContext, key: Key[Array, ""]) -> AbstractModel:
    """Fresh weights for any configuration."""
    return MODELS[config.kind][1].build(config, context, key)


def count_parameters(model: PyTree) -> int:
    """Trainable numbers of a model; the codebook grows with the data and is not counted."""
    return sum(
        x.size
        for x in jax.tree.leaves(model)
        if hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.inexact)
    )


def planned_parameters(config: Config, context: ModelContext) -> int:
    """What `count_parameters` will say of a model, without building it."""
    return count_parameters(eqx.filter_eval_shape(build_model, config, context, jr.key(0)))


def matched_width(config: Config, context: ModelContext, target_parameters: int) -> Config:
    """The same configuration, as wide as brings its parameter count nearest to the target.

    Within 10 % wherever one step of the width is finer than that (a transformer's width moves in
    steps of its heads); `planned_parameters` tells the count to print beside the number.
    """
    network = getattr(config, "network", None)
    part = network if isinstance(network, Config) else config
    transformer = "transformer" in (getattr(part, "kind", None), network)
    unit = getattr(part, "heads", 1) if transformer else 1

    def widened(multiple: int) -> Config:
        wider = part.model_copy(update={"width": multiple * unit})
        return wider if part is config else config.model_copy(update={"network": wider})

    sizes: dict[int, int] = {}

    def size(multiple: int) -> int:
        if multiple not in sizes:
            sizes[multiple] = planned_parameters(widened(multiple), context)
        return sizes[multiple]

    # Counts grow like the width squared, so this lands next to the answer in a few rounds.
    multiple = max(1, getattr(part, "width") // unit)  # noqa: B009
    for _ in range(MATCHING_ROUNDS):
        better = max(1, round(multiple * math.sqrt(target_parameters / size(multiple))))
        if better == multiple:
            break
        multiple = better
    candidates = range(max(1, multiple - 1), multiple + 2)
    return widened(min(candidates, key=lambda m: abs(size(m) - target_parameters)))
