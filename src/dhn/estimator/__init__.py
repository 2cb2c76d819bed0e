"""The estimator: fit, save, load and ask a model."""

from dhn.estimator.choosing import fit as fit
from dhn.estimator.choosing import load as load
from dhn.estimator.choosing import wants_mechanics as wants_mechanics
from dhn.estimator.kinds import DHN as DHN
from dhn.estimator.kinds import AbstractEstimator as AbstractEstimator
from dhn.estimator.mechanical import Mechanics as Mechanics
from dhn.estimator.network import AbstractNetworkAnswers as AbstractNetworkAnswers
from dhn.estimator.pretrained import pretrained as pretrained
from dhn.estimator.reconstruction import Reconstruction as Reconstruction
from dhn.estimator.trained import TrainedModel as TrainedModel
