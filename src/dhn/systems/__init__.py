"""Physics: a Lagrangian or a Hamiltonian in, exact trajectories out; no learning."""

from dhn.systems.library.n_pendulum import n_pendulum
from dhn.systems.registry import SYSTEMS, get_system, register
from dhn.systems.simulation import simulate
from dhn.systems.system import System

__all__ = ["SYSTEMS", "System", "get_system", "n_pendulum", "register", "simulate"]
