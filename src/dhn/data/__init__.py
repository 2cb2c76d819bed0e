"""The trajectories of a system: container, files, scaling."""

from dhn.data.files import FORMATS, read, write
from dhn.data.scaling import Scaler
from dhn.data.trajectories import Trajectories

__all__ = ["FORMATS", "Scaler", "Trajectories", "read", "write"]
