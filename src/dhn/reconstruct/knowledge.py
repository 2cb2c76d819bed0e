"""What an answer needs from training."""

import dataclasses
from typing import final

from dhn.codes.autodecode import CodePrior
from dhn.models.contract import AbstractForecaster
from dhn.reconstruct.guess import Examples

EXACT = 1e-2
"""Noise of a measurement without any, as a share of the model's own one-step error."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Knowledge:
    """All that an answer needs from training."""

    model: AbstractForecaster
    prior: CodePrior
    examples: Examples
    change: float
    """Typical change of a scaled state over one step of the grid."""


def least_noise(knowledge: Knowledge) -> float:
    """Smallest standard deviation of a measurement, in scaled units."""
    return EXACT * knowledge.prior.noise * knowledge.change
