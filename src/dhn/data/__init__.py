"""The trajectories of a system: container, files, scaling."""

from dhn.data.scaling import Scaler
from dhn.data.trajectories import Trajectories

__all__ = ["Scaler", "Trajectories"]
