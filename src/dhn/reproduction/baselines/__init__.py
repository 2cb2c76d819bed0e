"""Baselines behind the same contract as DHN, and classical ones that need no network.

A single generating function ("GF") is no class of its own: it is
`DHNConfig(block_size=1, stride=1, linked=True)` without a denoising loss.
"""

from dhn.models.registry import register_model
from dhn.reproduction.baselines.cnn import CNNModel as CNNModel
from dhn.reproduction.baselines.config import CNNConfig as CNNConfig
from dhn.reproduction.baselines.config import HNNConfig as HNNConfig
from dhn.reproduction.baselines.config import NeighbourConfig as NeighbourConfig
from dhn.reproduction.baselines.config import VanillaConfig as VanillaConfig
from dhn.reproduction.baselines.hnn import HNNModel as HNNModel
from dhn.reproduction.baselines.matching import matched_width as matched_width
from dhn.reproduction.baselines.neighbour import NeighbourModel as NeighbourModel
from dhn.reproduction.baselines.upsampler import AbstractUpsampler as AbstractUpsampler
from dhn.reproduction.baselines.vanilla import VanillaModel as VanillaModel

register_model("hnn", HNNConfig, HNNModel)
register_model("vanilla", VanillaConfig, VanillaModel)
register_model("cnn", CNNConfig, CNNModel)
register_model("neighbour", NeighbourConfig, NeighbourModel)
