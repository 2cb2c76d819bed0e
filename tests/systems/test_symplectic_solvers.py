"""Leapfrog, implicit midpoint and Gauss-Legendre: order, symplecticity, bounded energy."""

import functools

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dhn.errors import UserError
from dhn.systems import (
    GaussLegendre4,
    ImplicitMidpoint,
    Leapfrog,
    System,
    get_system,
    hamilton_term,
    separable_terms,
)

# Name -> solver, its terms, a system, the order. The double pendulum's H is not separable.
MIXED = System(
    name="mixed",
    coordinates=("x",),
    hamiltonian=lambda q, p, c: 0.5 * p[0] ** 2 * (1 + c["mixing"] * q[0] ** 2) - jnp.cos(q[0]),
    params={"mixing": 0.5},
)
CASES = {
    "leapfrog": (Leapfrog(), separable_terms, "henon_heiles", 2),
    "midpoint": (ImplicitMidpoint(), hamilton_term, "double_pendulum", 2),
    "gauss": (GaussLegendre4(), hamilton_term, "double_pendulum", 4),
}
STARTS = {
    "henon_heiles": (np.array([0.3, -0.1]), np.array([0.1, 0.25])),
    "double_pendulum": (np.array([0.9, -0.5]), np.array([0.2, 0.4])),
}
PARAMS = {
    "henon_heiles": {"strength": 0.8},
    "double_pendulum": {"l1": 1.0, "l2": 0.8, "m1": 1.0, "m2": 1.2, "g": 0.981},
}


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


@functools.cache
def stepper(case):
    """A jitted `(y, step, params) -> y` of one step on the joined state."""
    solver, make_terms, name, _ = CASES[case]
    terms = make_terms(name)
    d = get_system(name).dim

    def one_step(y, step, params):
        y0 = (y[:d], y[d:])
        state = solver.init(terms, 0.0, step, y0, params)
        y1, _, _, _, result = solver.step(terms, 0.0, step, y0, params, state, False)
        return jnp.where(result == diffrax.RESULTS.successful, jnp.concatenate(y1), jnp.nan)

    return jax.jit(one_step)


@functools.cache
def rollout(case):
    one_step = stepper(case)
    return jax.jit(
        lambda y, step, count, params: jax.lax.fori_loop(
            0, count, lambda _, y: one_step(y, step, params), y
        )
    )


def start(case):
    name = CASES[case][2]
    return jnp.concatenate(STARTS[name]), PARAMS[name]


@pytest.mark.parametrize("case", CASES)
def test_order_by_regression_on_the_step_size(case):
    y0, params = start(case)
    run = rollout(case)
    # Far finer than the steps compared; its error is 8^-order of the least of theirs.
    counts = np.array([16, 32, 64, 128])
    exact = run(y0, 2.0 / 1024, 1024, params)
    errors = [float(jnp.abs(run(y0, 2.0 / n, int(n), params) - exact).max()) for n in counts]
    slope = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    order = CASES[case][3]
    assert order - 0.15 < slope < order + 0.3, (slope, errors)


@pytest.mark.parametrize("case", CASES)
def test_the_step_is_a_symplectic_map(case):
    y0, params = start(case)
    d = len(y0) // 2
    unit, zero = np.eye(d), np.zeros((d, d))
    omega = np.block([[zero, unit], [-unit, zero]])
    jacobian_of = jax.jit(jax.jacfwd(stepper(case)))
    for step in (0.05, 0.5):
        jacobian = np.asarray(jacobian_of(y0, step, params))
        # Entries are of order 1 and some 100 operations deep: round-off is about 1e-14.
        np.testing.assert_allclose(jacobian.T @ omega @ jacobian, omega, atol=2e-13)
        assert np.abs(jacobian - np.eye(2 * d)).max() > 0.01  # it does move


def test_an_explicit_midpoint_step_is_not_symplectic():
    """The property tested above is not one that every integrator has."""
    q, p = STARTS["double_pendulum"]
    term, params = hamilton_term("double_pendulum"), PARAMS["double_pendulum"]

    def stepped(y):
        half = jax.tree.map(
            lambda y, k: y + 0.25 * k, (y[:2], y[2:]), term.vf(0.0, (y[:2], y[2:]), params)
        )
        return y + 0.5 * jnp.concatenate(term.vf(0.0, half, params))

    jacobian = np.asarray(jax.jit(jax.jacfwd(stepped))(jnp.concatenate([q, p])))
    omega = np.kron([[0, 1], [-1, 0]], np.eye(2))
    assert np.abs(jacobian.T @ omega @ jacobian - omega).max() > 1e-4


@pytest.mark.parametrize("case", CASES)
def test_energy_stays_bounded_over_ten_thousand_steps(case):
    y0, params = start(case)
    one_step = stepper(case)
    system, d = get_system(CASES[case][2]), len(y0) // 2

    @jax.jit
    def energies(y):
        def body(y, _):
            y = one_step(y, 0.05, params)
            return y, system.H(y[:d], y[d:], params)

        return jax.lax.scan(body, y, length=10_000)[1]

    error = np.abs(np.asarray(energies(y0)) - system.energy(y0[:d], y0[d:], params))
    # A drift would make the last tenth some ten times worse than the first.
    assert error[-1000:].max() < 1.3 * error[:1000].max()
    assert error.max() < {2: 5e-3, 4: 1e-5}[CASES[case][3]]


@pytest.mark.parametrize("case", CASES)
def test_steps_are_reversible_in_time(case):
    y0, params = start(case)
    there = stepper(case)(y0, 0.3, params)
    assert np.abs(there - y0).max() > 0.02
    np.testing.assert_allclose(stepper(case)(there, -0.3, params), y0, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [ImplicitMidpoint(), GaussLegendre4(), Leapfrog()])
def test_inside_diffrax_it_converges_and_has_gradients(solver):
    explicit = isinstance(solver, Leapfrog)
    terms = separable_terms("single_pendulum") if explicit else hamilton_term(MIXED)
    varied = "l" if explicit else "mixing"
    params = {"m": 1.0, "g": 0.981, "l": 0.8, "mixing": 0.5}

    @jax.jit
    def end(value):
        solution = diffrax.diffeqsolve(
            terms, solver, 0.0, 1.0, 0.05, (jnp.full(1, 0.7), jnp.full(1, 0.7)),
            args={**params, varied: value}, max_steps=24,
        )  # fmt: skip
        assert solution.ys is not None
        return solution.ys[0][-1, 0]

    system = get_system("single_pendulum") if explicit else MIXED
    exact = solve_ivp(
        lambda t, y: np.ravel(system.derivatives(y[:1], y[1:], params)), (0, 1), [0.7, 0.7],
        method="DOP853", rtol=1e-10, atol=1e-10,
    ).y[0, -1]  # fmt: skip
    assert abs(end(params[varied]) - exact) < (1e-3 if solver.order(terms) == 2 else 1e-6)
    gradient = jax.grad(end)(params[varied])
    numeric = (end(params[varied] + 1e-5) - end(params[varied] - 1e-5)) / 2e-5
    assert abs(gradient) > 1e-2
    assert abs(gradient - numeric) < 1e-8


def test_midpoint_is_the_cayley_transform_on_the_oscillator():
    params = {"k": 2.0, "m": 1.5}
    term = hamilton_term("mass_spring")
    step = jax.jit(lambda y: ImplicitMidpoint().step(term, 0.0, 0.4, y, params, None, False)[0])
    q, p = step((jnp.ones(1), jnp.ones(1)))
    generator = np.array([[0, 1 / 1.5], [-2.0, 0]])
    exact = np.linalg.solve(np.eye(2) - 0.2 * generator, (np.eye(2) + 0.2 * generator) @ [1, 1])
    np.testing.assert_allclose(np.concatenate([q, p]), exact, rtol=1e-14)


def test_a_step_without_a_solution_is_reported():
    runaway = System(
        name="runaway", coordinates="x", hamiltonian=lambda q, p, _: p[0] * (1 + q[0] ** 2)
    )
    term = hamilton_term(runaway)
    step = jax.jit(lambda y: ImplicitMidpoint().step(term, 0.0, 10.0, y, {}, None, False)[-1])
    assert step((jnp.ones(1), jnp.ones(1))) == diffrax.RESULTS.nonlinear_divergence


def test_implicit_solvers_run_in_float32_too():
    y0, params = start("gauss")
    double = stepper("gauss")(y0, 0.1, params)
    with jax.enable_x64(False):
        single = stepper("gauss")(jnp.asarray(y0, jnp.float32), 0.1, params)
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, double, atol=1e-6)


def test_leapfrog_refuses_a_hamiltonian_that_mixes_q_and_p():
    with pytest.raises(UserError, match=r"needs H = T\(p\) \+ V\(q\).*'double_pendulum' mixes"):
        separable_terms("double_pendulum")
    assert get_system("single_pendulum").separable
    assert not get_system("charged_particle").separable
