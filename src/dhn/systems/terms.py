"""A system's equations of motion as Diffrax terms; `args` is the mapping of parameters."""

import diffrax
import jax
import jax.numpy as jnp

from dhn.errors import UserError
from dhn.systems.registry import get_system
from dhn.systems.system import System


def hamilton_term(system: str | System) -> diffrax.ODETerm:
    """Hamilton's equations on `y = (q, p)`, for every solver but `Leapfrog`."""
    system = get_system(system)

    def field(t, y, params):
        q, p = y
        return system.vector_field(q, p, params)

    return diffrax.ODETerm(field)


def separable_terms(system: str | System) -> tuple[diffrax.ODETerm, diffrax.ODETerm]:
    """`dq/dt` from `p` and `dp/dt` from `q`, for `Leapfrog` and `diffrax.SemiImplicitEuler`."""
    system = get_system(system)
    if not system.separable:
        raise UserError(
            f"leapfrog needs H = T(p) + V(q), but the Hamiltonian of '{system.name}' mixes q and "
            "p; use ImplicitMidpoint or GaussLegendre4 with hamilton_term(system)."
        )
    elsewhere = jnp.asarray(system.generic_state[0])

    def drift(t, p, params):
        return system.vector_field(elsewhere.astype(p.dtype), p, params)[0]

    def kick(t, q, params):
        return -jax.grad(system.H)(q, jnp.zeros_like(q), params)

    return diffrax.ODETerm(drift), diffrax.ODETerm(kick)
