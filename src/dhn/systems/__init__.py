"""Physics: a Lagrangian or a Hamiltonian in, exact trajectories out; no learning."""

from typing import TYPE_CHECKING, Any

from dhn.systems.library.n_pendulum import n_pendulum
from dhn.systems.registry import SYSTEMS, get_system, register
from dhn.systems.simulation import simulate
from dhn.systems.system import System

if TYPE_CHECKING:
    from dhn.systems.solvers import (
        GaussLegendre4,
        ImplicitMidpoint,
        Leapfrog,
        hamilton_term,
        separable_terms,
    )

__all__ = [
    "SYSTEMS",
    "GaussLegendre4",
    "ImplicitMidpoint",
    "Leapfrog",
    "System",
    "get_system",
    "hamilton_term",
    "n_pendulum",
    "register",
    "separable_terms",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name in __all__:  # Diffrax takes longer to import than all the rest together
        from dhn.systems import solvers

        return getattr(solvers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
