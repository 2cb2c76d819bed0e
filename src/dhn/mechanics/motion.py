"""The equations of motion: a mass matrix of cosines, a potential, friction at the joints.

With `δ_ij = q_i - q_j - φ_i + φ_j` (angles; a coordinate that is no angle drops out of it) the
kinetic energy is `½ Σ m_ij cos δ_ij v_i v_j`. Since `cos δ_ij` is itself a positive semidefinite
matrix and `m = L Lᵀ` is positive definite, so is their elementwise product, for every q.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dhn.mechanics.layout import NEVER_NEGATIVE, Layout, Numbers
from dhn.mechanics.rest import RATE, rest_force
from dhn.systems.legendre import solve_definite

STRIBECK = RATE
"""Rate at which dry friction has fallen from its value near rest, over the width of its smoothing:
the spread of the rate. A law that rises within half of it is refuted by slower swings."""


def constant_masses(layout: Layout, theta: Float[Numbers, " P"]) -> Float[Numbers, "d d"]:
    """`m = L Lᵀ` from the entries of L, its diagonal as logarithms.

    Arguments: layout; theta: (P,) coefficients.
    Returns: (d, d) positive definite, `m_11 = 1` where its logarithm is 0.
    """
    lower = triangle(layout, theta[layout.slices["inertia"]])
    diagonal = jnp.exp(jnp.diagonal(lower))
    lower = jnp.where(np.eye(layout.dim, dtype=bool), jnp.diag(diagonal), lower)
    return (lower[:, None, :] * lower[None, :, :]).sum(-1)


def triangle(layout: Layout, entries: Float[Numbers, " pairs"]) -> Float[Numbers, "d d"]:
    """A lower triangular matrix from its entries row by row.

    Arguments: layout; entries: (d (d + 1) / 2,).
    Returns: (d, d).
    """
    place = np.zeros((layout.dim, layout.dim), int)
    for k, (i, j) in enumerate(layout.pairs):
        place[i, j] = k
    return jnp.where(np.tri(layout.dim, dtype=bool), entries[place], 0.0)


def stiffness(layout: Layout, theta: Float[Numbers, " P"]) -> Float[Numbers, "d d"]:
    """The symmetric matrix of springs.

    Arguments: layout; theta: (P,).
    Returns: (d, d).
    """
    lower = triangle(layout, theta[layout.slices["stiffness"]])
    return lower + lower.T - jnp.diag(jnp.diagonal(lower))


def differences(
    layout: Layout, theta: Float[Numbers, " P"], q: Float[Numbers, " d"]
) -> Float[Numbers, "d d"]:
    """`δ_ij` of the module's docstring.

    Arguments: layout; theta: (P,); q: (d,).
    Returns: (d, d).
    """
    turned = jnp.where(np.array(layout.angles), q - theta[layout.slices["phase"]], 0.0)
    return turned[:, None] - turned[None, :]


def mass_matrix(
    layout: Layout, theta: Float[Numbers, " P"], q: Float[Numbers, " d"]
) -> Float[Numbers, "d d"]:
    """`M(q)`; momenta are `p = M(q) v`.

    Arguments: layout; theta: (P,); q: (d,).
    Returns: (d, d) positive definite.
    """
    return constant_masses(layout, theta) * jnp.cos(differences(layout, theta, q))


def potential(
    layout: Layout, theta: Float[Numbers, " P"], q: Float[Numbers, " d"]
) -> Float[Numbers, ""]:
    """`V(q)`: harmonics of angles, polynomials of other coordinates, springs between all.

    Arguments: layout; theta: (P,); q: (d,).
    Returns: a scalar, zero at q = 0 up to a constant.
    """
    part = {name: theta[place] for name, place in layout.slices.items()}
    round_ = -part["sine"] * jnp.cos(q) + part["cosine"] * jnp.sin(q)
    round_ += -part["sine2"] * jnp.cos(2 * q) / 2 + part["cosine2"] * jnp.sin(2 * q) / 2
    along = part["force"] * q + part["square"] * q**3 / 3 + part["cube"] * q**4 / 4
    springs = 0.5 * (q[:, None] * stiffness(layout, theta) * q[None, :]).sum()
    stretch = q - jnp.concatenate([jnp.zeros(1), q[:-1]])
    along += part["link_square"] * stretch**3 / 3 + part["link_cube"] * stretch**4 / 4
    return (round_ + along).sum() + springs


def joint_rates(layout: Layout, v: Float[Numbers, " d"]) -> Float[Numbers, " d"]:
    """Rates at which friction acts: between neighbouring links of a chain, else of a coordinate.

    Arguments: layout; v: (d,).
    Returns: (d,).
    """
    return v - jnp.where(_chained(layout), jnp.concatenate([jnp.zeros(1), v[:-1]]), 0.0)


def friction(
    layout: Layout,
    theta: Float[Numbers, " P"],
    q: Float[Numbers, " d"],
    v: Float[Numbers, " d"],
    width: Float[Numbers, " d"],
) -> Float[Numbers, " d"]:
    """Generalised force of friction; its power `v · force` is never positive.

    Dry friction may vary with an angle as `sin² q`, as the load of a bearing does.

    Arguments: layout; theta: (P,); q, v: (d,); width: (d,) rate at which dry friction is smoothed.
    Returns: (d,).
    """
    part = {name: theta[layout.slices[name]] for name in NEVER_NEGATIVE}
    rate = joint_rates(layout, v)
    at_joint = (part["viscous"] + part["drag"] * jnp.abs(rate)) * rate
    slow = part["stribeck"] * jnp.exp(-((rate / (STRIBECK * width)) ** 2))
    slant = part["slant"] * jnp.sin(q) ** 2
    at_joint += (part["dry"] + slow + slant) * jnp.tanh(rate / width)
    next_joint = jnp.where(_chained(layout), at_joint, 0.0)
    return jnp.concatenate([next_joint[1:], jnp.zeros(1)]) - at_joint


def acceleration(
    layout: Layout,
    theta: Float[Numbers, " P"],
    q: Float[Numbers, " d"],
    v: Float[Numbers, " d"],
    width: Float[Numbers, " d"],
) -> Float[Numbers, " d"]:
    """Solve the Euler-Lagrange equations for the accelerations.

    Arguments: layout; theta: (P,); q, v: (d,); width: (d,) as in `friction`.
    Returns: (d,).
    """
    part = {name: theta[place] for name, place in layout.slices.items()}
    outer = friction(layout, theta, q, v, width)
    if layout.rest:
        outer += rest_force(layout.angles, part["rest"], q, v / (RATE * width))
    if layout.classical is not None:
        return layout.classical.acceleration(part["params"], q - part["zero"], v, outer)
    masses, turn = constant_masses(layout, theta), differences(layout, theta, q)
    slope = part["sine"] * jnp.sin(q) + part["cosine"] * jnp.cos(q)
    slope += part["sine2"] * jnp.sin(2 * q) + part["cosine2"] * jnp.cos(2 * q)
    slope += part["force"] + part["square"] * q**2 + part["cube"] * q**3
    slope += (stiffness(layout, theta) * q[None, :]).sum(-1)
    stretch = q - jnp.concatenate([jnp.zeros(1), q[:-1]])
    pull = part["link_square"] * stretch**2 + part["link_cube"] * stretch**3
    slope += pull - jnp.concatenate([pull[1:], jnp.zeros(1)])
    spin = jnp.where(np.array(layout.angles), v**2, 0.0)
    centrifugal = (masses * jnp.sin(turn) * spin[None, :]).sum(-1)
    return solve_definite(
        jnp.asarray(masses * jnp.cos(turn)), jnp.asarray(outer - slope - centrifugal)
    )


def energy(
    layout: Layout, theta: Float[Numbers, " P"], q: Float[Numbers, " d"], v: Float[Numbers, " d"]
) -> Float[Numbers, ""]:
    """Kinetic and potential energy.

    Arguments: layout; theta: (P,); q, v: (d,).
    Returns: a scalar, in units of the first coordinate's inertia.
    """
    if layout.classical is not None:
        params, zero = (theta[layout.slices[x]] for x in ("params", "zero"))
        return layout.classical.energy(params, q - zero, v)
    kinetic = 0.5 * (v[:, None] * mass_matrix(layout, theta, q) * v[None, :]).sum()
    return kinetic + potential(layout, theta, q)


_STAGE = np.array([0.0, 0.5, 0.5, 1.0])
_WEIGHT = np.array([1.0, 2.0, 2.0, 1.0]) / 6
"""Classical Runge-Kutta method of order four."""


def advance(
    layout: Layout,
    theta: Float[Numbers, " P"],
    state: Float[Numbers, " m"],
    step: Float[Numbers, ""],
    width: Float[Numbers, " d"],
    substeps: int,
) -> Float[Numbers, " m"]:
    """The state a time `step` later, by Runge-Kutta steps of order four.

    Stages are scanned, so that the equations of motion are compiled once.

    Arguments: layout; theta: (P,); state: (m,) q and v, m = 2d; step; width: (d,); substeps.
    Returns: (m,).
    """
    d, h = layout.dim, step / substeps

    def stage(carry, row):
        start, slope, total = carry
        fraction, weight, last = row
        here = start + fraction * h * slope
        slope = jnp.concatenate([here[d:], acceleration(layout, theta, here[:d], here[d:], width)])
        total = total + weight * h * slope
        return (jnp.where(last, total, start), slope, total), None

    table = [np.tile(x, substeps) for x in (_STAGE, _WEIGHT, np.arange(4) == 3)]
    return jax.lax.scan(stage, (state, jnp.zeros_like(state), state), tuple(table))[0][2]


def _chained(layout: Layout) -> np.ndarray:
    """(d,) whether a coordinate is an angle that follows an angle: a further link of a chain."""
    angle = np.array(layout.angles)
    return angle & np.concatenate([[False], angle[:-1]])
