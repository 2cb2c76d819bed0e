"""Symplectic integrators as Diffrax solvers, all for a constant step size.

`Leapfrog` is explicit and for separable Hamiltonians `H = T(p) + V(q)`. `ImplicitMidpoint` and
`GaussLegendre4` are symplectic for every Hamiltonian. All three are symmetric in time. Hairer,
Lubich and Wanner, "Geometric Numerical Integration" (2006), I.1.4, II.1.3 and VI.4.
"""

import math
from typing import Any, ClassVar, final

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from equinox.internal import ω
from jax.flatten_util import ravel_pytree

from dhn.systems.newton import find_root


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


@final
class ImplicitMidpoint(diffrax.AbstractSolver):
    """`y1 = y0 + h f((y0 + y1)/2)`: order 2, symplectic for every Hamiltonian."""

    term_structure: ClassVar = diffrax.AbstractTerm
    interpolation_cls: ClassVar = diffrax.LocalLinearInterpolation

    def order(self, terms):
        return 2

    def init(self, terms, t0, t1, y0, args):
        return None

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        y1, result = _collocate(_MIDPOINT, terms, t0, t1, y0, args)
        return y1, None, dict(y0=y0, y1=y1), None, result

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)


@final
class GaussLegendre4(diffrax.AbstractSolver):
    """Collocation at the two Gauss points: order 4, symplectic for every Hamiltonian."""

    term_structure: ClassVar = diffrax.AbstractTerm
    interpolation_cls: ClassVar = diffrax.ThirdOrderHermitePolynomialInterpolation

    def order(self, terms):
        return 4

    def init(self, terms, t0, t1, y0, args):
        return None

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        y1, result = _collocate(_GAUSS_2, terms, t0, t1, y0, args)
        control = terms.contr(t0, t1)
        k0 = terms.vf_prod(t0, y0, args, control)
        k1 = terms.vf_prod(t1, y1, args, control)
        return y1, None, dict(y0=y0, y1=y1, k0=k0, k1=k1), None, result

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)


# Butcher tableaux (matrix, weights, nodes).
_MIDPOINT = (np.array([[0.5]]), np.array([1.0]), np.array([0.5]))
_SHIFT = math.sqrt(3) / 6
_GAUSS_2 = (
    np.array([[0.25, 0.25 - _SHIFT], [0.25 + _SHIFT, 0.25]]),
    np.array([0.5, 0.5]),
    np.array([0.5 - _SHIFT, 0.5 + _SHIFT]),
)


def _collocate(tableau, terms, t0, t1, y0, args) -> tuple[Any, diffrax.RESULTS]:
    """One step of an implicit Runge-Kutta method, its stages solved by Newton to round-off."""
    flat, unravel = ravel_pytree(y0)
    matrix, weights, nodes = (jnp.asarray(x, flat.dtype) for x in tableau)
    control = terms.contr(t0, t1)

    def increment(t, y):
        return ravel_pytree(terms.vf_prod(t, unravel(y), args, control))[0]

    def residual(k):
        k = k.reshape(len(weights), -1)
        return (k - jax.vmap(increment)(t0 + nodes * (t1 - t0), flat + matrix @ k)).reshape(-1)

    guess = jnp.tile(increment(t0, flat), len(weights))
    k, found = find_root(residual, guess)
    y1 = unravel(flat + weights @ k.reshape(len(weights), -1))
    failed: Any = diffrax.RESULTS.nonlinear_divergence
    result = diffrax.RESULTS.where(found, diffrax.RESULTS.successful, failed)
    return y1, result
