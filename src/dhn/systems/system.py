"""`System`: a Lagrangian or a Hamiltonian with names; all mechanics follow by differentiation."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from dhn.checks import mapping, numbers, sequence, whole
from dhn.errors import UserError
from dhn.systems.legendre import invert_gradient
from dhn.systems.programs import compiled

Params = Mapping[str, Any]
"""Name -> value: one number a name inside a system's functions."""


def in_words(name: str) -> str:
    """A name as a heading: `double_pendulum` is `Double pendulum`."""
    return name[:1].upper() + name[1:].replace("_", " ")


@final
@dataclasses.dataclass(frozen=True, eq=False)
class System:
    """A mechanical system: give `lagrangian` or `hamiltonian`, the rest is derived from it.

    The given functions see one state: `q` and `v` (or `p`) of shape `(d,)` and `params` as a
    mapping of scalars, and return a scalar made with `jax.numpy`. In `params` and `initial` a
    number is a fixed value and a pair `(low, high)` is drawn uniformly for each trajectory.
    """

    name: str
    coordinates: Sequence[str]
    lagrangian: Callable[..., Any] | None = None
    """`L(q, v, params)`, with a definite Hessian in `v`."""
    hamiltonian: Callable[..., Any] | None = None
    """`H(q, p, params)`, with a definite Hessian in `p`."""
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Default value or range of every parameter; names not listed here do not exist."""
    initial: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Default starts: a coordinate `x`, its velocity `v_x` or its momentum `p_x`; else zero."""
    angles: Sequence[str] = ()
    """Names of the coordinates that are angles in radians."""
    units: Mapping[str, str] = dataclasses.field(default_factory=dict)
    invariants: Mapping[str, Callable[..., Any]] = dataclasses.field(default_factory=dict)
    """Conserved quantities beyond energy: name -> `I(q, p, params)`, a scalar."""
    time_step: float | int = 10 / 128
    steps: int = 128
    """Default time grid: `steps + 1` states, `time_step` apart."""
    description: str = ""
    title: str = ""
    """What headings call it; by default its name in words."""

    def __post_init__(self):
        set_ = functools.partial(object.__setattr__, self)
        for name in ("coordinates", "angles"):
            value = getattr(self, name)
            set_(name, (value,) if isinstance(value, str) else sequence(name, value))
        for name in ("params", "initial", "units", "invariants"):
            set_(name, mapping(name, getattr(self, name)))
        self._check()
        set_("title", self.title or in_words(self.name))

    def _check(self):
        if not isinstance(self.name, str) or not self.name:
            raise UserError(f"a system needs a name, as text; got {self.name!r}.")
        if (self.lagrangian is None) == (self.hamiltonian is None):
            count = "neither" if self.lagrangian is None else "both"
            raise UserError(
                f"system '{self.name}' needs exactly one of lagrangian= and hamiltonian=; "
                f"got {count}."
            )
        functions = {"lagrangian": self.lagrangian, "hamiltonian": self.hamiltonian}
        for name, value in {**functions, **self.invariants}.items():
            if value is not None and not callable(value):
                second = "v" if name == "lagrangian" else "p"
                raise UserError(
                    f"'{name}' of system '{self.name}' must be a function of (q, {second}, "
                    f"params); got {value!r:.60}."
                )
        if not all(isinstance(x, str) for x in self.coordinates):
            raise UserError(
                f"system '{self.name}' needs names of coordinates, as text; got {self.coordinates}."
            )
        if not self.coordinates or len(set(self.coordinates)) != len(self.coordinates):
            raise UserError(
                f"system '{self.name}' needs one or more distinct coordinate names; "
                f"got {self.coordinates}."
            )
        for name in self.angles:
            if name not in self.coordinates:
                raise UserError(
                    f"system '{self.name}': angle '{name}' is not a coordinate; "
                    f"the coordinates are {', '.join(self.coordinates)}."
                )
        whole("steps", self.steps)
        step = numbers("time_step", self.time_step)
        if step.ndim or not 0 < step < np.inf:
            raise UserError(
                f"system '{self.name}' needs a finite time_step > 0; got {self.time_step}."
            )

    @property
    def dim(self) -> int:
        """Number of coordinates `d`."""
        return len(self.coordinates)

    @property
    def angle_flags(self) -> tuple[bool, ...]:
        return tuple(name in self.angles for name in self.coordinates)

    @property
    def times(self) -> np.ndarray:
        """The default time grid."""
        return np.arange(self.steps + 1) * self.time_step

    # One state, pure JAX: these can be jitted, differentiated and vmapped like any function.

    def H(self, q: Float[Array, " d"], p: Float[Array, " d"], params: Params) -> Float[Array, ""]:
        """The Hamiltonian of one state; from a Lagrangian, `H = <p, v> - L` at `p = ∂L/∂v`.

        Arguments:
            q: (d,) coordinates.
            p: (d,) momenta.
            params: Name -> value.

        Returns:
            A scalar.
        """
        if self.hamiltonian is not None:
            return self.hamiltonian(q, p, params)
        assert self.lagrangian is not None
        v = self._velocity(q, p, params)
        return jnp.dot(p, v) - self.lagrangian(q, v, params)

    def vector_field(
        self, q: Float[Array, " d"], p: Float[Array, " d"], params: Params, gamma: Any = 0.0
    ) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
        """Hamilton's equations `dq/dt = ∂H/∂p`, `dp/dt = -∂H/∂q - gamma p` for one state.

        Arguments:
            q: (d,) coordinates.
            p: (d,) momenta.
            params: Name -> value.
            gamma: Damping rate.

        Returns:
            (d,) and (d,): `dq/dt` and `dp/dt`.
        """
        if self.hamiltonian is not None:
            force, v = jax.grad(self.hamiltonian, (0, 1))(q, p, params)
            return v, -force - gamma * p
        # -∂H/∂q at fixed p equals ∂L/∂q at fixed v, so the solve for v needs no derivative.
        assert self.lagrangian is not None
        v = self._velocity(q, p, params)
        return v, jax.grad(self.lagrangian)(q, v, params) - gamma * p

    def _velocity(self, q, p, params):
        if self.hamiltonian is not None:
            return jax.grad(self.hamiltonian, 1)(q, p, params)
        assert self.lagrangian is not None
        of_velocity = functools.partial(_of_second, self.lagrangian, q, params)
        return invert_gradient(of_velocity, p, quadratic=self._quadratic)

    def _momentum(self, q, v, params):
        if self.lagrangian is not None:
            return jax.grad(self.lagrangian, 1)(q, v, params)
        assert self.hamiltonian is not None
        of_momentum = functools.partial(_of_second, self.hamiltonian, q, params)
        return invert_gradient(of_momentum, v, quadratic=self._quadratic)

    # Facts about the functions, seen at points where nothing vanishes by accident.

    @functools.cached_property
    def generic_state(self) -> np.ndarray:
        """`(3, d)`: some `q` and two momenta or velocities."""
        rng = np.random.default_rng(0)
        return rng.uniform(0.3, 0.6, (3, self.dim)) * (1 + np.arange(self.dim))

    @functools.cached_property
    def separable(self) -> bool:
        """Whether `H = T(p) + V(q)`, i.e. its mixed second derivatives vanish."""
        mixed = self._at_generic_states(jax.jacfwd(jax.grad(self.H), 1))
        return all(np.abs(x).max() < 1e-12 for x in mixed)

    @functools.cached_property
    def _quadratic(self) -> bool:
        """Whether the Hessian in velocities (momenta) is constant."""
        f = self.lagrangian if self.lagrangian is not None else self.hamiltonian
        assert f is not None
        first, second = self._at_generic_states(jax.hessian(f, 1))
        return bool(np.allclose(first, second, rtol=1e-10, atol=1e-12 * np.abs(first).max()))

    def _at_generic_states(self, f):
        params = {
            name: np.float64(np.mean(value) if np.any(value) else 1.0)
            for name, value in self.params.items()
        }
        q, *others = self.generic_state

        def run():
            with jax.enable_x64(True):
                program = jax.jit(f)
                return [np.asarray(program(q, x, params)) for x in others]

        # What is traced belongs to a thread: this is computed even within a function being traced.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(run).result()

    # Many states at once, on the host in float64 whatever JAX's default precision.

    def energy(self, q: Any, p: Any, params: Params | None = None) -> Any:
        """Total energy `H` of states.

        Arguments:
            q: (..., d) coordinates.
            p: (..., d) momenta.
            params: Each a scalar or an array whose axes line up with the *first* axes of `q`, so
                that `(n,)` goes with `(n, T, d)`; those with a fixed default may be left out.

        Returns:
            (...) energies.
        """
        return self._evaluate("energy", q, p, params)

    def momenta(self, q: Any, v: Any, params: Params | None = None) -> Any:
        """Conjugate momenta `p = ∂L/∂v`.

        Arguments:
            q: (..., d) coordinates.
            v: (..., d) velocities.
            params: As for `energy`.

        Returns:
            (..., d) momenta.
        """
        return self._evaluate("momenta", q, v, params)

    def velocities(self, q: Any, p: Any, params: Params | None = None) -> Any:
        """Velocities `v = ∂H/∂p`.

        Arguments:
            q: (..., d) coordinates.
            p: (..., d) momenta.
            params: As for `energy`.

        Returns:
            (..., d) velocities.
        """
        return self._evaluate("velocities", q, p, params)

    def derivatives(
        self, q: Any, p: Any, params: Params | None = None, gamma: Any = 0.0
    ) -> tuple[Any, Any]:
        """Time derivatives of states.

        Arguments:
            q: (..., d) coordinates.
            p: (..., d) momenta.
            params: As for `energy`.
            gamma: Damping rate.

        Returns:
            (..., d) and (..., d): `dq/dt` and `dp/dt`.
        """
        return self._evaluate("derivatives", q, p, params, gamma)

    def conserved(self, q: Any, p: Any, params: Params | None = None) -> dict[str, Any]:
        """Every conserved quantity of states.

        Arguments:
            q: (..., d) coordinates.
            p: (..., d) momenta.
            params: As for `energy`.

        Returns:
            Name -> (...) values, energy first.
        """
        values = {name: self._evaluate(_INVARIANT + name, q, p, params) for name in self.invariants}
        return {"energy": self.energy(q, p, params), **values}

    def _evaluate(self, which, q, x, params, gamma=0.0):
        traced = any(isinstance(y, Tracer) for y in jax.tree.leaves((q, x, params)))
        to_array = (lambda _, value: jnp.asarray(value)) if traced else numbers
        q, x = to_array("q", q), to_array("p or v", x)
        if q.shape != x.shape or q.ndim == 0 or q.shape[-1] != self.dim:
            raise UserError(
                f"system '{self.name}' needs two arrays of shape (..., {self.dim}) for "
                f"coordinates {', '.join(self.coordinates)}; got {q.shape} and {x.shape}."
            )
        lead = q.shape[:-1]
        values = {
            name: _spread(to_array(name, value), lead, name)
            for name, value in {**self._complete(params), _GAMMA: gamma}.items()
        }
        rate = values.pop(_GAMMA)
        flat = q.reshape(-1, self.dim), x.reshape(-1, self.dim), values, rate
        out = _batched(self, *flat, which=which) if traced else _on_host(self, which, flat)
        return jax.tree.map(lambda y: y.reshape(lead + y.shape[1:]), out)

    def _complete(self, params: Params | None) -> dict[str, Any]:
        given = {} if params is None else mapping("params", params)
        values = {}
        for name, default in self.params.items():
            if name in given:
                values[name] = given[name]
            elif np.ndim(default) == 0:
                values[name] = default
            else:
                raise UserError(
                    f"system '{self.name}' needs a value for parameter '{name}'; "
                    f"got {', '.join(given) or 'none'}. Add params={{'{name}': ...}}."
                )
        return values


_GAMMA = "damping rate"  # a name no parameter has, since it is not an identifier
_INVARIANT = "invariant "


def _of_second(f, q, params, x):
    return f(q, x, params)


def _spread(value, lead, name):
    aligned = value.reshape(value.shape + (1,) * (len(lead) - value.ndim))
    try:
        xp = np if isinstance(value, np.ndarray) else jnp
        return xp.broadcast_to(aligned, lead).reshape(-1)
    except ValueError:
        raise UserError(
            f"parameter '{name}' of shape {value.shape} does not line up with states of shape "
            f"{lead}; give a scalar or one value for each trajectory."
        ) from None


def _on_host(system, which, flat):
    """Padded with copies of the last state, so that few numbers of states compile."""
    count = len(flat[0])
    size = 1 << (count - 1).bit_length() if count else 0
    rows = np.minimum(np.arange(size), count - 1)
    with jax.enable_x64(True):
        out = _compiled(system, which, size)(*jax.tree.map(lambda x: x[rows], flat))
        return jax.tree.map(lambda x: np.asarray(x)[:count], out)


@functools.lru_cache(maxsize=256)
def _compiled(system, which, size):
    vector = jax.ShapeDtypeStruct((size,), np.float64)
    state = jax.ShapeDtypeStruct((size, system.dim), np.float64)
    shapes = (state, state, dict.fromkeys(system.params, vector), vector)
    return compiled(system, functools.partial(_batched, which=which), shapes, which)


def _batched(system, q, x, params, gamma, *, which):
    if which == "derivatives":
        return jax.vmap(system.vector_field)(q, x, params, gamma)
    functions = {"energy": system.H, "momenta": system._momentum, "velocities": system._velocity}
    functions |= {_INVARIANT + name: function for name, function in system.invariants.items()}
    return jax.vmap(functions[which])(q, x, params)
