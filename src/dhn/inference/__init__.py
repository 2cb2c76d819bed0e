"""Using trained models: denoise, forecast, complete, interpolate, probe, and the estimator."""

from dhn.inference.estimator import AbstractEstimator as AbstractEstimator
from dhn.inference.estimator import load as load
from dhn.inference.forecast import forecast as forecast
from dhn.inference.kinds import DHN as DHN
from dhn.inference.kinds import make_estimator as make_estimator
from dhn.inference.probe import Probe as Probe
