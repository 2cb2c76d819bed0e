"""`System`: mechanics derived from one scalar function, user systems, clear errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dhn.errors import UserError
from dhn.systems import SYSTEMS, System, get_system, n_pendulum, register, simulate
from dhn.systems.registry import system_title


def relativistic(name="relativistic"):
    """Its Lagrangian is not quadratic in the velocity: the transform takes Newton's method."""
    return System(
        name=name,
        coordinates=("x",),
        lagrangian=lambda q, v, c: -c["m"] * jnp.sqrt(1 - v[0] ** 2) - 0.5 * c["k"] * q[0] ** 2,
        params={"m": 1.0, "k": (0.5, 1.0)},
        initial={"x": (1.0, 2.0)},
        time_step=0.1,
        steps=20,
    )


def test_a_lagrangian_that_is_not_quadratic_in_velocity():
    system, c = relativistic(), {"m": 1.5, "k": 0.7}
    q, p = np.random.default_rng(0).normal(0, 3, (2, 50, 1))
    np.testing.assert_allclose(
        system.velocities(q, p, c), p / np.sqrt(1.5**2 + p**2), rtol=1e-12, atol=1e-14
    )
    exact = np.sqrt(1.5**2 + p**2) + 0.35 * q**2
    np.testing.assert_allclose(system.energy(q, p, c), exact[:, 0], rtol=1e-12)
    with jax.enable_x64(True):
        slope = jax.jit(jax.grad(system.H, 1))(jnp.ones(1), 2 * jnp.ones(1), c)
    np.testing.assert_allclose(slope, 2 / np.sqrt(1.5**2 + 4), rtol=1e-12)


def test_velocities_and_momenta_invert_each_other_from_either_function():
    by_lagrangian = relativistic()
    by_hamiltonian = System(
        name="same",
        coordinates=("x",),
        hamiltonian=lambda q, p, c: jnp.sqrt(c["m"] ** 2 + p[0] ** 2) + 0.5 * c["k"] * q[0] ** 2,
        params={"m": 1.0, "k": 1.0},
    )
    q, v = np.random.default_rng(0).uniform(-0.9, 0.9, (2, 20, 1))
    c = {"m": 1.2, "k": 0.8}
    one, other = (s.momenta(q, v, c) for s in (by_lagrangian, by_hamiltonian))
    np.testing.assert_allclose(one, other, rtol=1e-11)
    rates = [np.stack(s.derivatives(q, one, c)) for s in (by_lagrangian, by_hamiltonian)]
    np.testing.assert_allclose(*rates, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "name, title",
    {
        "henon_heiles": "Hénon–Heiles system",
        "double_pendulum": "Double pendulum",
        "somebody's_own": "Somebody's own",
    }.items(),
)
def test_what_headings_call_a_system(name, title):
    assert system_title(name) == title


def test_a_users_system_works_wherever_a_name_does():
    system = relativistic("users_own")
    data = simulate(system, 4, seed=1)
    energy = system.energy(data.q, data.p, data.params)
    assert np.abs(energy / energy[:, :1] - 1).max() < 1e-9
    assert np.abs(system.velocities(data.q, data.p, data.params)).max() < 1
    with pytest.raises(UserError, match="no system 'users_own'"):
        get_system("users_own")
    register(system)
    assert get_system("users_own") is system and "users_own" in SYSTEMS
    with pytest.raises(UserError, match="'users_own' exists already"):
        register(relativistic("users_own"))
    assert register(system) is system and SYSTEMS.count("users_own") == 1


def test_hamiltonian_of_a_lagrangian_generates_the_same_vector_field():
    system = get_system("elastic_pendulum")
    c = {"k": 3.0, "l": 1.0, "m": 1.3, "g": 0.981}
    with jax.enable_x64(True):
        q, p = jnp.array([1.2, 0.4]), jnp.array([-0.3, 0.5])
        dq, dp = system.vector_field(q, p, c)
        force, velocity = jax.grad(system.H, (0, 1))(q, p, c)
    np.testing.assert_allclose(dq, velocity, rtol=1e-13)
    np.testing.assert_allclose(dp, -force, rtol=1e-13)


def test_chain_of_two_is_the_papers_double_pendulum():
    chain, paper = n_pendulum(2), get_system("double_pendulum")
    q, v = np.random.default_rng(0).normal(size=(2, 6, 2))
    c = {"l1": 1.1, "l2": 0.6, "m1": 0.9, "m2": 1.4, "g": 2.0}
    p = paper.momenta(q, v, c)
    np.testing.assert_allclose(chain.momenta(q, v, c), p, rtol=1e-12)
    np.testing.assert_allclose(chain.energy(q, p, c), paper.energy(q, p, c), rtol=1e-12)


def test_float64_results_under_a_float32_default():
    system = get_system("single_pendulum")
    q = np.array([[1.0 + 1e-12]])
    with jax.enable_x64(False):
        energy = system.energy(q, np.zeros((1, 1)), {"l": 1.0})
    assert energy.dtype == np.float64
    np.testing.assert_allclose(energy, 0.981 * (1 - np.cos(q[:, 0])), rtol=1e-15)


def test_params_line_up_with_the_first_axes():
    system = get_system("single_pendulum")
    q, p = np.random.default_rng(0).normal(size=(2, 5, 3, 1))
    l = np.linspace(0.5, 1.0, 5)
    energy = system.energy(q, p, {"l": l})
    assert energy.shape == (5, 3)
    for i in range(5):
        np.testing.assert_array_equal(energy[i], system.energy(q[i], p[i], {"l": l[i]}))
    assert system.energy(q[0, 0], p[0, 0], {"l": 1.0}).shape == ()


def test_inside_a_jitted_function_it_is_ordinary_jax():
    system = get_system("single_pendulum")
    total = jax.jit(jax.grad(lambda q: system.energy(q, 0 * q, {"l": 0.5}).sum()))
    np.testing.assert_allclose(total(jnp.ones((4, 1))), 0.981 * 0.5 * np.sin(1.0), rtol=1e-5)


ERRORS = {
    "no function": (
        lambda: System(name="s", coordinates=("x",)),
        r"'s' needs exactly one of lagrangian= and hamiltonian=; got neither",
    ),
    "two functions": (
        lambda: System(name="s", coordinates=("x",), lagrangian=max, hamiltonian=max),
        r"got both",
    ),
    "no coordinates": (
        lambda: System(name="s", coordinates=(), lagrangian=max),
        r"one or more distinct coordinate names; got \(\)",
    ),
    "strange angle": (
        lambda: System(name="s", coordinates=("x",), angles=("phi",), lagrangian=max),
        r"angle 'phi' is not a coordinate; the coordinates are x",
    ),
    "time step": (
        lambda: System(name="s", coordinates=("x",), lagrangian=max, time_step=0.0),
        r"needs a finite time_step > 0; got 0.0",
    ),
    "shapes differ": (
        lambda: get_system("double_pendulum").energy(np.zeros((3, 2)), np.zeros((4, 2))),
        r"shape \(\.\.\., 2\) for coordinates theta1, theta2; got \(3, 2\) and \(4, 2\)",
    ),
    "parameter missing": (
        lambda: get_system("double_pendulum").energy(np.zeros(2), np.zeros(2), {"m1": 1.0}),
        r"needs a value for parameter 'l2'; got m1",
    ),
    "parameter of wrong shape": (
        lambda: get_system("double_pendulum").energy(
            np.zeros((3, 5, 2)), np.zeros((3, 5, 2)), {"l2": np.ones(5)}
        ),
        r"parameter 'l2' of shape \(5,\) does not line up with states of shape \(3, 5\)",
    ),
    "no links": (lambda: n_pendulum(0), r"at least one link; got 0"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_mistakes_are_answered_in_one_clear_line(case):
    call, message = ERRORS[case]
    with pytest.raises(UserError, match=message):
        call()
