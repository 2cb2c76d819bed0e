"""A system's own equations as the classical part: its parameters are fitted within their bounds."""

import dataclasses
from collections.abc import Mapping
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dhn.errors import UserError
from dhn.mechanics.layout import Numbers
from dhn.mechanics.rows import Scale
from dhn.systems import System
from dhn.systems.legendre import solve_definite


@final
@dataclasses.dataclass(frozen=True)
class Parameter:
    """A number of the system that is fitted; `x` = 0 is where the fit begins."""

    name: str
    start: float
    low: float
    high: float

    @property
    def logarithmic(self) -> bool:
        """Whether `x` is the logarithm of the value over its start: positive parameters."""
        return self.low >= 0 and self.start > 0

    @property
    def unit(self) -> float:
        """Change of the value at the start for a change of `x` by one."""
        return self.start if self.logarithmic else max(abs(self.start), 1.0)

    def value(self, x: Any) -> Any:
        """The parameter itself."""
        return self.start * jnp.exp(x) if self.logarithmic else self.start + self.unit * x

    def inverse(self, value: float) -> float:
        """The `x` of a value."""
        if self.logarithmic:
            return float(np.log(value / self.start)) if value > 0 else -np.inf
        return (value - self.start) / self.unit


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Classical:
    """A system in scaled coordinates and times."""

    system: System
    held: Mapping[str, float]
    free: tuple[Parameter, ...]
    scale: Scale
    inertia: float
    """Of the first coordinate in the system's units, near the start: what forces are scaled by."""

    def values(self, x: Float[Numbers, " k"]) -> dict[str, Any]:
        """All parameters of the system.

        Arguments: x: (k,) fitted numbers.
        Returns: name -> value.
        """
        return dict(self.held) | {p.name: p.value(x[i]) for i, p in enumerate(self.free)}

    @property
    def force(self) -> Float[np.ndarray, " d"]:
        """(d,) the system's units of one scaled generalised force."""
        scale = self.scale
        return self.inertia * scale.size[0] ** 2 / scale.size / scale.time**2

    def acceleration(
        self, x: Float[Numbers, " k"], q: Float[Numbers, " d"], v: Float[Numbers, " d"],
        outer: Float[Numbers, " d"],
    ) -> Float[Numbers, " d"]:  # fmt: skip
        """Accelerations by the system's equations and a force from outside, all scaled.

        Arguments: x: (k,) fitted numbers; q, v, outer: (d,).
        Returns: (d,).
        """
        q, v = self._own(q, v)
        params, outer = self.values(x), outer * self.force
        if self.system.lagrangian is not None:
            slope = jax.grad(self.system.lagrangian, 1)
            turned = jax.jvp(lambda q: slope(q, v, params), (q,), (v,))[1]
            right = jax.grad(self.system.lagrangian)(q, v, params) - turned + outer
            found = solve_definite(jax.jacfwd(slope, 1)(q, v, params), right)
        else:
            p = jnp.asarray(self.system.momenta(q, v, params))

            def velocity(q, p):
                return jax.grad(self.system.H, 1)(q, p, params)

            force = outer - jax.grad(self.system.H)(q, p, params)
            found = jax.jvp(velocity, (q, p), (v, force))[1]
        return found * self.scale.time**2 / self.scale.size

    def energy(
        self, x: Float[Numbers, " k"], q: Float[Numbers, " d"], v: Float[Numbers, " d"]
    ) -> Float[Numbers, ""]:
        """The Hamiltonian, scaled.

        Arguments: x: (k,); q, v: (d,) scaled.
        Returns: a scalar.
        """
        params, (q, v) = self.values(x), self._own(q, v)
        p = jnp.asarray(self.system.momenta(q, v, params))
        unit = self.inertia * (self.scale.size[0] / self.scale.time) ** 2
        return self.system.H(jnp.asarray(q), p, params) / unit

    def _own(self, q: Any, v: Any) -> tuple[Any, Any]:
        place, size = jnp.asarray(self.scale.offset), jnp.asarray(self.scale.size)
        return place + size * q, size * v / self.scale.time


def classical(
    system: System, given: Mapping[str, Any], scale: Scale, typical: Float[np.ndarray, " d"]
) -> Classical:
    """The system with what is known about its parameters.

    A number that is given holds a parameter, a pair bounds it. Of those not given, a pair of the
    system's own bounds it as well; a number is where the fit begins, and keeps its sign.

    Arguments: system; given: name -> number or pair; scale: of the data; typical: (d,) some
        coordinates of the data, scaled.
    Returns: the classical part.
    """
    unknown = [x for x in given if x not in system.params]
    if unknown:
        names = ", ".join(system.params) or "none"
        raise UserError(
            f"system '{system.name}' has no parameter '{unknown[0]}'; its parameters are {names}."
        )
    held, free = {}, []
    for name, default in system.params.items():
        value = given.get(name, default)
        if np.ndim(value):
            low, high = (float(x) for x in np.ravel(value))
            if not low < high:
                raise UserError(f"the bounds of '{name}' must increase; got {low:g} and {high:g}.")
            middle = np.sqrt(low * high) if low > 0 else (low + high) / 2
            inside = np.ndim(default) == 0 and low < default < high
            free.append(Parameter(name, float(default if inside else middle), low, high))
        elif name in given:
            held[name] = float(value)
        elif default > 0:
            free.append(Parameter(name, float(default), 0.0, np.inf))
        else:
            low, high = (-np.inf, 0.0) if default < 0 else (-np.inf, np.inf)
            free.append(Parameter(name, float(default), low, high))
    found = Classical(system, held, tuple(free), scale, 1.0)
    params = {p.name: p.start for p in free} | held
    q = scale.offset + scale.size * typical
    one = np.eye(system.dim)[0]
    momenta = [system.momenta(q, v, params)[0] for v in (one, np.zeros(system.dim))]
    inertia = float(momenta[0] - momenta[1])
    if not (np.isfinite(inertia) and inertia > 0):
        raise UserError(
            f"the mass matrix of system '{system.name}' is not positive at its first parameters "
            f"and the middle of the data; give other parameters or bounds."
        )
    return dataclasses.replace(found, inertia=inertia)
