"""Baselines as wide as gives them the same number of parameters."""

import math

from dhn.models.config import Config, NetworkConfig
from dhn.models.contract import ModelContext
from dhn.models.registry import planned_parameters

MATCHING_ROUNDS = 12
"""Rounds of the search for a width; counts grow like its square, so a few are enough."""


def matched_width(config: Config, context: ModelContext, target_parameters: int) -> Config:
    """The same configuration, as wide as brings its parameter count nearest to the target.

    Within 10 % wherever one step of the width is finer than that (a transformer's width moves in
    steps of its heads); `planned_parameters` gives the count to print beside the number.
    """
    network = dict(config).get("network")
    part = network if isinstance(network, NetworkConfig) else config
    values = dict(part)
    is_transformer = "transformer" in (values.get("kind"), values.get("network"))
    unit = values["heads"] if is_transformer else 1

    def widened(multiple: int) -> Config:
        wider = part.model_copy(update={"width": multiple * unit})
        return wider if part is config else config.model_copy(update={"network": wider})

    sizes: dict[int, int] = {}

    def size(multiple: int) -> int:
        if multiple not in sizes:
            sizes[multiple] = planned_parameters(widened(multiple), context)
        return sizes[multiple]

    # Counts grow like the width squared, so this lands next to the answer in a few rounds.
    multiple = max(1, values["width"] // unit)
    for _ in range(MATCHING_ROUNDS):
        better = max(1, round(multiple * math.sqrt(target_parameters / size(multiple))))
        if better == multiple:
            break
        multiple = better
    candidates = range(max(1, multiple - 1), multiple + 2)
    return widened(min(candidates, key=lambda m: abs(size(m) - target_parameters)))
