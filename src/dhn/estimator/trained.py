"""`TrainedModel`: a trained model with all that is needed to use it."""

import dataclasses
from typing import Any, final

import numpy as np
from jaxtyping import Float

from dhn.blocks import Codes
from dhn.codes.autodecode import CodePrior
from dhn.codes.probe import Probe
from dhn.estimator.network import AbstractNetworkAnswers
from dhn.models.contract import AbstractForecaster, AbstractModel, ModelContext, as_forecaster
from dhn.reconstruct.bands import Bands
from dhn.reconstruct.guess import Examples
from dhn.reconstruct.knowledge import Knowledge
from dhn.training.config import TrainingConfig
from dhn.trajectories.scaling import Scaler


@final
@dataclasses.dataclass(frozen=True, eq=False)
class TrainedModel(AbstractNetworkAnswers):
    """Weights, codes, scaling, error bands and where they came from."""

    model: AbstractModel
    config: Any
    training: TrainingConfig
    context: ModelContext
    scaler: Scaler
    codes: Codes
    """Codes of the training trajectories."""
    prior: CodePrior
    examples: Examples
    bands: Bands
    noise: Float[np.ndarray, "2 d"]
    """Scaled measurement noise of the training set, assumed of data that state none."""
    momenta: str
    """What stands for momenta: "p", "v", or "inferred" from positions, in units of the inertia of
    the first coordinate. Momenta of other data are then not comparable and refused."""
    ids: tuple[str, ...]
    params: dict[str, np.ndarray]
    """The training trajectories' constants, for probes."""
    names: tuple[str, ...]
    units: dict[str, str]
    system: str | None
    summary: dict[str, Any]
    """Steps, seconds, final losses, data fingerprint, options of the run."""
    probes: dict[tuple[str, bool], Probe] = dataclasses.field(
        init=False, repr=False, default_factory=dict
    )
    """Probes that were asked for: parameter and whether linear -> the fitted regression."""

    @property
    def momenta_field(self) -> str:
        """The field of trajectories that answers are given in."""
        return "v" if self.momenta == "v" else "p"

    @property
    def trained(self) -> "TrainedModel":
        return self

    @property
    def knowledge(self) -> Knowledge:
        """What the engine needs; only models that move forward in time can be asked."""
        return Knowledge(self.forecaster, self.prior, self.examples, self.context.change(1))

    @property
    def forecaster(self) -> AbstractForecaster:
        """The model, if it moves a trajectory forward."""
        return as_forecaster(self.model)
