"""Numerical integrators for a learned Hamiltonian, and the equations each one lays on its steps.

Two views of the same rule. `STEPS` moves a state by one time step: rollouts. `EQUATIONS` is given
both ends of a step and finds where the rule puts its end: training. With both ends an implicit
rule needs no solve, so that training through it costs little more than the Euler loss.

States are blocks of one state, `(n, 1, d)`. A learned `H(q, p)` is not separable, so leapfrog is
the generalised Störmer-Verlet rule, whose two halves are implicit; for a separable `H` it is the
familiar one.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from dhn.blocks import Code, StateBlock
from dhn.models.solve import solve_fixed_point

Code = Code
Field = Callable[[StateBlock, Code], StateBlock]
"""`(dq/dt, dp/dt)` at a state, sample by sample."""
Step = Callable[[Field, StateBlock, Code, float], StateBlock]
Equation = Callable[[Field, StateBlock, StateBlock, Code, float], StateBlock]

DOPRI5_MAX_STEPS = 4096  # of the solver
LEAPFROG_TRAINING_ITERATIONS = 2
"""From the mean of both ends' momenta, two passes leave an error of fourth order in the step."""


def _move(state: StateBlock, rate: StateBlock, h: float) -> StateBlock:
    return jax.tree.map(lambda x, dx: x + h * dx, state, rate)


def euler(field: Field, state: StateBlock, z: Code, h: float) -> StateBlock:
    """`x + h f(x)`; first order, gains energy."""
    return _move(state, field(state, z), h)


def rk4(field: Field, state: StateBlock, z: Code, h: float) -> StateBlock:
    """The classical Runge-Kutta rule; fourth order, loses energy slowly."""
    k1 = field(state, z)
    k2 = field(_move(state, k1, h / 2), z)
    k3 = field(_move(state, k2, h / 2), z)
    k4 = field(_move(state, k3, h), z)
    return jax.tree.map(
        lambda x, a, b, c, d: x + h / 6 * (a + 2 * b + 2 * c + d), state, k1, k2, k3, k4
    )


def leapfrog(field: Field, state: StateBlock, z: Code, h: float) -> StateBlock:
    """Half a step of p, a whole step of q, half a step of p; second order, symplectic."""
    q, p = state
    half = solve_fixed_point(lambda half: p + h / 2 * field(StateBlock(q, half), z).p, p).or_nan
    first = field(StateBlock(q, half), z).q
    end = solve_fixed_point(
        lambda end: q + h / 2 * (first + field(StateBlock(end, half), z).q), q + h * first
    ).or_nan
    return StateBlock(end, half + h / 2 * field(StateBlock(end, half), z).p)


def midpoint(field: Field, state: StateBlock, z: Code, h: float) -> StateBlock:
    """`x' = x + h f((x + x')/2)`; second order, symplectic."""
    start = _join(state)

    def update(middle):
        return start + h / 2 * _join(field(_split(middle), z))

    # `2 middle - x` would double the rounding of the solve; one more evaluation does not.
    middle = solve_fixed_point(update, start).or_nan
    return _split(start + h * _join(field(_split(middle), z)))


def dopri5(field: Field, state: StateBlock, z: Code, h: float) -> StateBlock:
    """Adaptive fifth order (Diffrax), every sample with its own steps: the exact flow of `H`.

    Tolerances are near the precision of the numbers, so what is left is the error of `H`.
    """
    import diffrax  # slow to import, and only this rollout needs it

    tolerance = 1e-6 if state.q.dtype == jnp.float32 else 1e-10

    def rate(t, y, z):
        return _join(field(_split(y[None]), z[None]))[0]

    def single(y, z):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(rate),
            diffrax.Dopri5(),
            0.0,
            h,
            h,
            y,
            args=z,
            saveat=diffrax.SaveAt(t1=True),
            stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance),
            adjoint=diffrax.ForwardMode(),
            max_steps=DOPRI5_MAX_STEPS,
            throw=False,
        )
        assert solution.ys is not None
        return solution.ys[0]

    return _split(jax.vmap(single)(_join(state), z))


def _join(state: StateBlock) -> Float[Array, "n 1 e"]:
    return jnp.concatenate(state, axis=-1)


def _split(x: Float[Array, "n 1 e"]) -> StateBlock:
    return StateBlock(*jnp.split(x, 2, axis=-1))


def _leapfrog_equation(
    field: Field, source: StateBlock, target: StateBlock, z: Code, h: float
) -> StateBlock:
    half = (source.p + target.p) / 2
    for _ in range(LEAPFROG_TRAINING_ITERATIONS):
        first = field(StateBlock(source.q, half), z)
        half = source.p + h / 2 * first.p
    first = field(StateBlock(source.q, half), z)
    last = field(StateBlock(target.q, half), z)
    return StateBlock(source.q + h / 2 * (first.q + last.q), half + h / 2 * last.p)


def _midpoint_equation(
    field: Field, source: StateBlock, target: StateBlock, z: Code, h: float
) -> StateBlock:
    middle = jax.tree.map(lambda a, b: (a + b) / 2, source, target)
    return _move(source, field(middle, z), h)


STEPS: dict[str, Step] = {
    "euler": euler,
    "leapfrog": leapfrog,
    "rk4": rk4,
    "midpoint": midpoint,
    "dopri5": dopri5,
}

EQUATIONS: dict[str, Equation] = {
    "euler": lambda field, source, target, z, h: euler(field, source, z, h),
    "leapfrog": _leapfrog_equation,
    "rk4": lambda field, source, target, z, h: rk4(field, source, z, h),
    "midpoint": _midpoint_equation,
}
