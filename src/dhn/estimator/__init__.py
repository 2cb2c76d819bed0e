"""The estimator: fit, save, load and ask a model."""

from dhn.estimator.kinds import DHN as DHN
from dhn.estimator.kinds import AbstractEstimator as AbstractEstimator
from dhn.estimator.kinds import load as load
from dhn.estimator.reconstruction import Reconstruction as Reconstruction
from dhn.estimator.trained import TrainedModel as TrainedModel
