"""Equations of motion written out by hand in NumPy, to hold the derived ones against."""

import numpy as np


def chain(t, y, c):
    """A chain of pendulums: momenta `p = M v` with `M_ij = m_ij l_i l_j cos(theta_i - theta_j)`."""
    d = len(y) // 2
    theta, p = y[:d], y[d:]
    m = np.array([c.get(f"m{i + 1}", c.get("m")) for i in range(d)])
    l = np.array([c.get(f"l{i + 1}", c.get("l")) for i in range(d)])
    below = np.cumsum(m[::-1])[::-1]
    weight = below[np.maximum.outer(np.arange(d), np.arange(d))] * np.outer(l, l)
    difference = theta[:, None] - theta[None]
    v = np.linalg.solve(weight * np.cos(difference), p)
    coriolis = v * ((weight * np.sin(difference)) @ v)
    return np.concatenate([v, -coriolis - below * c["g"] * l * np.sin(theta)])


def elastic(t, y, c):
    r, theta, p_r, p_theta = y
    m, k, l, g = c["m"], c["k"], c["l"], c["g"]
    return np.array(
        [
            p_r / m,
            p_theta / (m * r**2),
            p_theta**2 / (m * r**3) + m * g * np.cos(theta) - k * (r - l),
            -m * g * r * np.sin(theta),
        ]
    )


def spring(t, y, c):
    return np.array([y[1] / c["m"], -c["k"] * y[0]])


def coupled(t, y, c):
    x1, x2, p1, p2 = y
    pull = c["coupling"] * (x2 - x1)
    return np.array([p1 / c["m"], p2 / c["m"], -c["k"] * x1 + pull, -c["k"] * x2 - pull])


def gravity(t, y, c):
    bodies = len(y) // 4
    x, p = y[: 2 * bodies].reshape(-1, 2), y[2 * bodies :].reshape(-1, 2)
    m = np.array([c[f"m{i + 1}"] for i in range(bodies)])
    force = np.zeros_like(x)
    for i in range(bodies):
        for j in range(bodies):
            if i != j:
                r = x[j] - x[i]
                force[i] += c["G"] * m[i] * m[j] * r / np.linalg.norm(r) ** 3
    return np.concatenate([(p / m[:, None]).ravel(), force.ravel()])


def henon_heiles(t, y, c):
    x, z, px, pz = y
    s = c["strength"]
    return np.array([px, pz, -x - 2 * s * x * z, -z - s * (x**2 - z**2)])


def charged(t, y, c):
    x, z, px, pz = y
    half = 0.5 * c["charge"] * c["field"]
    vx, vz = (px + half * z) / c["m"], (pz - half * x) / c["m"]
    return np.array([vx, vz, half * vz, -half * vx])


BY_HAND = {
    "single_pendulum": chain,
    "double_pendulum": chain,
    "triple_pendulum": chain,
    "elastic_pendulum": elastic,
    "mass_spring": spring,
    "coupled_oscillators": coupled,
    "kepler": gravity,
    "three_body": gravity,
    "henon_heiles": henon_heiles,
    "charged_particle": charged,
}
