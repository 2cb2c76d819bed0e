"""The estimator: fit, save, load and ask a model."""

from dhn.codes.probe import Probe as Probe
from dhn.estimator.estimator import AbstractEstimator as AbstractEstimator
from dhn.estimator.estimator import load as load
from dhn.estimator.kinds import DHN as DHN
from dhn.reconstruct.forecast import forecast as forecast
