"""Physics: a Lagrangian or a Hamiltonian in, exact trajectories out; no learning."""

from typing import TYPE_CHECKING, Any

from dhn.systems.library.n_pendulum import n_pendulum
from dhn.systems.registry import SYSTEMS, get_system, register
from dhn.systems.simulation import simulate
from dhn.systems.system import System

if TYPE_CHECKING:
    from dhn.systems.solvers import GaussLegendre4, ImplicitMidpoint, Leapfrog
    from dhn.systems.terms import hamilton_term, separable_terms

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
    # Diffrax takes longer to import than all the rest together.
    if name in ("Leapfrog", "ImplicitMidpoint", "GaussLegendre4"):
        from dhn.systems import solvers

        return getattr(solvers, name)
    if name in ("hamilton_term", "separable_terms"):
        from dhn.systems import terms

        return getattr(terms, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
