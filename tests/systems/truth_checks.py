"""What must hold of every system's simulation, by name; used by both files of truths."""

import functools

import numpy as np
from equations_by_hand import BY_HAND
from scipy.integrate import solve_ivp

from dhn.systems import get_system, simulate

COUNT = 4


@functools.cache
def simulated(name):
    """One simulation a system over its default horizon: compiling is what takes the time."""
    return simulate(name, COUNT, seed=3)


def constants(data, i):
    return {key: float(value[i]) for key, value in data.params.items()}


def check_scipy(name):
    data = simulated(name)
    assert data.q.shape == (COUNT, 129, get_system(name).dim)
    for i in range(COUNT):
        y0 = np.concatenate([data.q[i, 0], data.p[i, 0]])
        exact = solve_ivp(
            BY_HAND[name], (data.t[0], data.t[-1]), y0, method="DOP853", t_eval=data.t,
            rtol=1e-12, atol=1e-13, args=(constants(data, i),),
        ).y.T  # fmt: skip
        np.testing.assert_allclose(np.hstack([data.q[i], data.p[i]]), exact, rtol=0, atol=1e-7)
        assert np.ptp(exact, axis=0).max() > 0.1  # something happens


def check_drift(name):
    data, system = simulated(name), get_system(name)
    kinetic = system.energy(data.q, data.p, data.params) - system.energy(
        data.q, np.zeros_like(data.p), data.params
    )
    # The double pendulum starts at energy zero, so drift is relative to what is exchanged.
    scale = np.abs(kinetic).max(axis=1, keepdims=True)
    for quantity, value in system.conserved(data.q, data.p, data.params).items():
        assert value.shape == (COUNT, 129)
        relative = np.abs(value - value[:, :1]) / (scale if quantity == "energy" else 1.0)
        assert relative.max() <= 1e-8, quantity


def check_brackets(name):
    """Its Poisson bracket with H vanishes at states that no simulation visited."""
    system = get_system(name)
    rng = np.random.default_rng(0)
    q, p = rng.uniform(0.5, 1.5, (2, 8, system.dim)) * (1 + np.arange(system.dim))
    params = {key: rng.uniform(0.5, 1.5) for key in system.params}
    dq, dp = system.derivatives(q, p, params)
    step = 1e-6
    for quantity, after in system.conserved(q + step * dq, p + step * dp, params).items():
        before = system.conserved(q - step * dq, p - step * dp, params)[quantity]
        rate = (after - before) / (2 * step)
        assert np.abs(rate).max() < 1e-6 * (1 + np.abs(after).max()), quantity
