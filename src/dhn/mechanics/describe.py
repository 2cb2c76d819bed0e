"""The identified physics in the data's units, as plain values."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dhn.mechanics.classical import Classical
from dhn.mechanics.layout import PARAMETER_WIDTH, Layout
from dhn.mechanics.motion import constant_masses, energy
from dhn.mechanics.predicting import Mechanics
from dhn.mechanics.rest import rest_force

DETERMINED = 0.3
"""A parameter whose error stays above this share of its prior one is not determined by the data."""
TYPICAL = 256  # states over which the force of the learned rest is averaged


def describe(mechanics: Mechanics, errors: np.ndarray, systems: tuple[str, ...]) -> dict[str, Any]:
    """Mass matrix, potential, friction, frequencies, sensor and noise of every system.

    Forces are per unit of the first coordinate's inertia, since positions alone cannot tell a
    common factor of all masses: `M_11 = 1`.

    Arguments: mechanics; errors: (R, P) standard errors; systems: names of the systems.
    Returns: {"convention": ..., "systems": [...]}.
    """
    names = systems or ("all runs",)
    own = mechanics.layout.classical
    convention = (
        "M_11 = 1: positions cannot tell a common factor of all masses"
        if own is None
        else f"equations of {own.system.name}: forces in the units of its parameters"
    )
    return {
        "convention": convention,
        "angles": "against the link before" if mechanics.scale.relative else "as measured",
        "friction_spread": mechanics.wander,
        "systems": [
            {"name": name, **_one(mechanics, mechanics.theta[k], errors[k])}
            for k, name in enumerate(names)
        ],
    }


def _one(mechanics: Mechanics, theta: np.ndarray, errors: np.ndarray) -> dict[str, Any]:
    layout, scale = mechanics.layout, mechanics.scale
    d, size, time = layout.dim, scale.size, scale.time

    def entry(block: str, k: int, unit: float) -> dict[str, float]:
        at = layout.slices[block].start + k
        return {"value": float(theta[at] * unit), "error": float(errors[at] * unit)}

    with jax.enable_x64(True):
        parts = jax.tree.map(np.asarray, _linearised(layout, jnp.asarray(theta)))
    rest, stiff, inertia = parts
    squares = np.linalg.eigvals(np.linalg.solve(inertia, stiff))
    own = layout.classical
    force = size[0] ** 2 / size / time**2 if own is None else own.force
    blocks: dict[str, tuple[str, np.ndarray]] = {
        "sine": ("potential", force), "cosine": ("potential", force),
        "sine2": ("potential", force), "cosine2": ("potential", force),
        "force": ("potential", force), "square": ("potential", force / size**2),
        "cube": ("potential", force / size**3),
        "link_square": ("potential", force / size**2), "link_cube": ("potential", force / size**3),
        "viscous": ("friction", force * time / size), "dry": ("friction", force),
        "stribeck": ("friction", force), "slant": ("friction", force),
        "drag": ("friction", force * time**2 / size**2),
        "zero": ("sensor", size), "phase": ("sensor", np.ones(d)),
        "even": ("sensor", size), "odd": ("sensor", size),
        "even2": ("sensor", size), "odd2": ("sensor", size),
        "even3": ("sensor", size), "odd3": ("sensor", size),
        "even4": ("sensor", size), "odd4": ("sensor", size),
        "marker_even": ("sensor", size), "marker_odd": ("sensor", size),
    }  # fmt: skip
    found: dict[str, Any] = {
        "mass": _masses(mechanics, theta, errors) if own is None else [],
        "parameters": [] if own is None else _parameters(own, layout, theta, errors),
        "potential": [], "friction": [], "sensor": [],
    }  # fmt: skip
    for name, (where, unit) in blocks.items():
        for k in range(d):
            at = layout.slices[name].start + k
            if theta[at] != 0 or errors[at] != 0:
                found[where].append({"term": name, "coordinate": k, **entry(name, k, unit[k])})
    for k, (i, j) in enumerate(layout.pairs):
        at = layout.slices["stiffness"].start + k
        if theta[at] != 0:
            unit = size[0] ** 2 / size[i] / size[j] / time**2
            found["potential"].append(
                {"term": "stiffness", "i": i, "j": j, **entry("stiffness", k, unit)}
            )
    found["origin"] = [float(x) for x in scale.offset]
    found["rest"] = [float(x) for x in scale.unscaled(rest)]
    found["turning"] = list(layout.angles)
    found["frequencies"] = sorted(
        float(np.sqrt(x.real)) / (2 * np.pi * time) for x in squares if x.real > 0
    )
    if layout.rest:
        with jax.enable_x64(True):
            typical = np.asarray(_typical_rest(layout, jnp.asarray(theta), rest))
        found["learned_rest"] = {
            "weights": layout.rest * d, "force": [float(x) for x in typical * force],
        }  # fmt: skip
    noise = {
        "white": ("log_white", size), "acceleration": ("log_kick", size / time**1.5),
        "slow": ("log_slow", size), "slow_time": ("log_slow_time", np.full(d, time)),
    }  # fmt: skip
    found["noise"] = []
    for k in range(d):
        row: dict[str, float] = {"coordinate": k}
        # A slow error at a bound has no standard error, but is there all the same.
        slow = any(errors[layout.slices[x].start + k] for x in ("log_slow", "log_slow_time"))
        for name, (block, unit) in noise.items():
            at = layout.slices[block].start + k
            if slow or not block.startswith("log_slow"):
                row[name] = float(np.exp(theta[at]) * unit[k])
                row[f"{name}_error"] = float(errors[at] * row[name])  # of a logarithm
        # White acceleration moves the velocity by its root mean square times √t.
        kick = float(np.exp(theta[layout.slices["log_kick"].start + k]))
        row["push"] = kick * float(np.sqrt(2 * np.pi) / scale.rate[k])
        found["noise"].append(row)
    return found


def _masses(mechanics: Mechanics, theta: np.ndarray, errors: np.ndarray) -> list[dict[str, Any]]:
    layout, size, angle = mechanics.layout, mechanics.scale.size, mechanics.layout.angles
    with jax.enable_x64(True):
        at = jnp.asarray(theta)
        masses = np.asarray(constant_masses(layout, at))
        slope = np.asarray(jax.jacfwd(lambda x: constant_masses(layout, x))(at))
    spread = np.sqrt(np.einsum("ijp,p->ij", slope**2, errors**2))
    units = size[0] ** 2 / np.outer(size, size)
    return [
        {"i": i, "j": j, "value": float(masses[i, j] * units[i, j]),
         "error": float(spread[i, j] * units[i, j]),
         "depends": "cos(q_i - q_j)" if i != j and angle[i] and angle[j] else "constant"}
        for i, j in layout.pairs if masses[i, j] != 0
    ]  # fmt: skip


def _parameters(
    own: Classical, layout: Layout, theta: np.ndarray, errors: np.ndarray
) -> list[dict[str, Any]]:
    """Every parameter of a system; whether it was held, is at a bound, or is not determined."""
    found = [
        {"name": name, "value": value, "error": 0.0, "note": "held"}
        for name, value in own.held.items()
    ]
    place, (low, high) = layout.slices["params"], layout.bounds()
    for p, x, e, least, most in zip(
        own.free, theta[place], errors[place], low[place], high[place], strict=True
    ):
        with jax.enable_x64(True):
            value, note = float(p.value(x)), ""
        if x <= least or x >= most:
            note = f"at its bound {value:.4g}"
        elif e > DETERMINED * PARAMETER_WIDTH:
            note = "the data cannot tell it alone"
        slope = value if p.logarithmic else p.unit
        found.append({"name": p.name, "value": value, "error": float(e * slope), "note": note})
    return found


@functools.partial(jax.jit, static_argnames="layout")
def _typical_rest(layout: Layout, theta, rest):
    """Root mean square force of the learned rest, about the state of rest at the usual rates."""
    key = jax.random.key(0)  # any states of this size tell the size of the force
    away, rates = jax.random.normal(key, (2, TYPICAL, layout.dim))
    weights = theta[layout.slices["rest"]]
    force = jax.vmap(lambda q, v: rest_force(layout.angles, weights, q, v))(rest + away, rates)
    return jnp.sqrt((force**2).mean(0))


@functools.partial(jax.jit, static_argnames="layout")
def _linearised(layout: Layout, theta):
    """The state of rest, stiffness and inertia there."""
    still = jnp.zeros(layout.dim)

    def potential(q):
        return energy(layout, theta, q, still)

    def newton(_, q):
        step = jnp.linalg.solve(curve(q) + 1e-9 * jnp.eye(layout.dim), slope(q))
        return q - jnp.clip(step, -0.3, 0.3)

    slope, curve = jax.grad(potential), jax.hessian(potential)
    sine, cosine, zero = (theta[layout.slices[x]] for x in ("sine", "cosine", "zero"))
    rest = zero + jnp.where(np.array(layout.angles), jnp.arctan2(-cosine, sine), 0.0)
    rest = jax.lax.fori_loop(0, 20, newton, rest)
    return rest, curve(rest), jax.hessian(lambda v: energy(layout, theta, rest, v))(still)
