"""Symplectic integrators as Diffrax solvers, all for a constant step size, and the terms they take.

`Leapfrog` is explicit and for separable Hamiltonians `H = T(p) + V(q)`. `ImplicitMidpoint` and
`GaussLegendre4` are symplectic for every Hamiltonian. All three are symmetric in time. Hairer,
Lubich and Wanner, "Geometric Numerical Integration" (2006), I.1.4, II.1.3 and VI.4.
"""

import math
from typing import Any, ClassVar, final

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from equinox.internal import ω
from jax.flatten_util import ravel_pytree

from dhn.errors import UserError
from dhn.systems.newton import find_root
from dhn.systems.registry import get_system
from dhn.systems.system import System

_SHIFT = math.sqrt(3) / 6  # of the Gauss points from the middle


@final
class Leapfrog(diffrax.AbstractSolver):
    """Störmer-Verlet as kick, drift, kick; order 2, one force a step.

    Takes a pair of terms and a state `(q, p)`: the first term gives `dq/dt` from `p` alone, the
    second `dp/dt` from `q` alone (`separable_terms` makes them from a system). A Hamiltonian that
    is not separable does not fit into that signature; freezing the missing argument would run but
    be neither symplectic nor of order 2. Use `ImplicitMidpoint` there.
    """

    term_structure: ClassVar = (diffrax.AbstractTerm, diffrax.AbstractTerm)
    interpolation_cls: ClassVar = diffrax.LocalLinearInterpolation

    def order(self, terms):
        return 2

    def init(self, terms, t0, t1, y0, args):
        return terms[1].vf(t0, y0[0], args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        drift, kick = terms
        q0, p0 = y0
        middle = t0 + 0.5 * (t1 - t0)
        # The force at the end of a step is the force at the start of the next.
        force = jax.lax.cond(made_jump, lambda: kick.vf(t0, q0, args), lambda: solver_state)
        p = (p0**ω + kick.prod(force, kick.contr(t0, middle)) ** ω).ω
        q1 = (q0**ω + drift.vf_prod(middle, p, args, drift.contr(t0, t1)) ** ω).ω
        force = kick.vf(t1, q1, args)
        p1 = (p**ω + kick.prod(force, kick.contr(middle, t1)) ** ω).ω
        y1 = (q1, p1)
        return y1, None, dict(y0=y0, y1=y1), force, diffrax.RESULTS.successful

    def func(self, terms, t0, y0, args):
        return terms[0].vf(t0, y0[1], args), terms[1].vf(t0, y0[0], args)


class AbstractCollocation(diffrax.AbstractSolver):
    """An implicit Runge-Kutta method, its stages solved by Newton's method to round-off."""

    term_structure: ClassVar = diffrax.AbstractTerm
    interpolation_cls: ClassVar = diffrax.ThirdOrderHermitePolynomialInterpolation
    tableau: eqx.AbstractClassVar[tuple[np.ndarray, np.ndarray, np.ndarray]]
    """Butcher's matrix, weights and nodes; of `s` stages of order `2 s`."""

    def order(self, terms):
        return 2 * len(self.tableau[1])

    def init(self, terms, t0, t1, y0, args):
        return None

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        flat, unravel = ravel_pytree(y0)
        matrix, weights, nodes = (jnp.asarray(x, flat.dtype) for x in self.tableau)
        control = terms.contr(t0, t1)

        def increment(t, y):
            return ravel_pytree(terms.vf_prod(t, unravel(y), args, control))[0]

        def residual(k):
            k = k.reshape(len(weights), -1)
            return (k - jax.vmap(increment)(t0 + nodes * (t1 - t0), flat + matrix @ k)).reshape(-1)

        k, found = find_root(residual, jnp.tile(increment(t0, flat), len(weights)))
        y1 = unravel(flat + weights @ k.reshape(len(weights), -1))
        failed: Any = diffrax.RESULTS.nonlinear_divergence
        result = diffrax.RESULTS.where(found, diffrax.RESULTS.successful, failed)
        k0, k1 = (terms.vf_prod(t, y, args, control) for t, y in ((t0, y0), (t1, y1)))
        return y1, None, dict(y0=y0, y1=y1, k0=k0, k1=k1), None, result


@final
class ImplicitMidpoint(AbstractCollocation):
    """`y1 = y0 + h f((y0 + y1)/2)`: order 2, symplectic for every Hamiltonian."""

    tableau: ClassVar = (np.array([[0.5]]), np.array([1.0]), np.array([0.5]))


@final
class GaussLegendre4(AbstractCollocation):
    """Collocation at the two Gauss points: order 4, symplectic for every Hamiltonian."""

    tableau: ClassVar = (
        np.array([[0.25, 0.25 - _SHIFT], [0.25 + _SHIFT, 0.25]]),
        np.array([0.5, 0.5]),
        np.array([0.5 - _SHIFT, 0.5 + _SHIFT]),
    )


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
