"""Baselines behind the same contract as DHN, and classical ones that need no network.

A single generating function ("GF") is no class of its own: it is
`DHNConfig(block_size=1, stride=1, linked=True)` without a denoising loss.
"""

from dhn.baselines.cnn import CNNModel as CNNModel
from dhn.baselines.config import CNNConfig as CNNConfig
from dhn.baselines.config import HNNConfig as HNNConfig
from dhn.baselines.config import NeighbourConfig as NeighbourConfig
from dhn.baselines.config import VanillaConfig as VanillaConfig
from dhn.baselines.hnn import HNNModel as HNNModel
from dhn.baselines.neighbour import NeighbourModel as NeighbourModel
from dhn.baselines.registry import MODELS as MODELS
from dhn.baselines.registry import build_model as build_model
from dhn.baselines.registry import count_parameters as count_parameters
from dhn.baselines.registry import matched_width as matched_width
from dhn.baselines.registry import planned_parameters as planned_parameters
from dhn.baselines.upsampler import AbstractUpsampler as AbstractUpsampler
from dhn.baselines.vanilla import VanillaModel as VanillaModel
