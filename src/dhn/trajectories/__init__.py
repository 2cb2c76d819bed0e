"""The container of trajectories, and what can be done with it alone: splits, joining, scaling."""

from dhn.trajectories.container import Trajectories as Trajectories
from dhn.trajectories.frames import from_xarray as from_xarray
from dhn.trajectories.scaling import Scaler as Scaler
