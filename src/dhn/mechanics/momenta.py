"""Momenta of trajectories whose positions alone were measured: `p = M(q) v`.

Each trajectory has a mass matrix and a potential of the features that mechanics begin with: `m_ij
cos(q_i - q_j)` between angles, constants otherwise; sines and cosines of angles, springs between
other coordinates. Their coefficients follow from Lagrange's equations, multiplied by smooth test
functions `φ` and integrated over time:

    Σ_t φ'(t) p_i + φ(t) ∂L/∂q_i = 0

Integration by parts has removed the accelerations, so that noise enters through positions and
velocities alone. Positions cannot tell a common factor of masses and potential; it is fixed by
`m_11 = 1`, the inertia of the first coordinate.
"""

import numpy as np
from jaxtyping import Float

from dhn.errors import UserError

SUPPORT = 2.0
"""Half the width of a test function, in units of the time in which velocities change."""
UNEXPLAINED, BY_NOISE = 0.005, 1.5
"""Share of the terms of Lagrange's equations that may be left over, and by how much more in units
of the noise's share of the motion. Double pendulums leave 0.0001 without noise and 0.46 of its
share; pendulums on springs, which the features do not describe, 0.007 to 0.04."""
INDEFINITE = 0.05
"""Smallest eigenvalue of a mass matrix with unit diagonal that counts as positive."""


def first_momenta(
    q: Float[np.ndarray, "n T d"],
    v: Float[np.ndarray, "n T d"],
    step: float,
    angles: tuple[bool, ...],
    noise: Float[np.ndarray, " d"],
) -> Float[np.ndarray, "n T d"]:
    """Momenta from smoothed positions and velocities.

    Arguments:
        q, v: On an even grid, without gaps.
        step: Of the grid.
        angles: Which coordinates are angles.
        noise: Standard deviation of the measured positions.

    Returns:
        Momenta in units of the first coordinate's inertia.
    """
    momenta, forces, pairs = _features(q, v, angles)
    half = _half_width(v)
    phi, slope = _test_function(half, step)
    # (F, n, d, places): the weak equations, linear in the coefficients; the first has coefficient 1
    rows = _correlated(momenta, slope) + _correlated(forces, phi)
    count, n = rows.shape[:2]
    table = np.moveaxis(rows, 1, 0).reshape(n, count, -1)
    found, left = np.zeros((n, count)), np.zeros(n)
    for i, one in enumerate(table):
        size = np.maximum(np.sqrt((one**2).sum(1)), 1e-300)
        other = (one[1:] / size[1:, None]).T
        found[i, 1:] = np.linalg.lstsq(other, -one[0], rcond=1e-9)[0] / size[1:]
        found[i, 0] = 1.0
        terms = found[i][:, None] * one
        left[i] = np.sqrt((terms.sum(0) ** 2).sum() / np.maximum((terms**2).sum(), 1e-300))
    masses = _matrices(found, pairs, q.shape[2])
    share = float(np.max(noise / np.maximum(np.std(q, axis=(0, 1)), 1e-300)))
    sound = _definite(masses) & (left < UNEXPLAINED + BY_NOISE * share)
    if 2 * sound.sum() < n:
        raise UserError(
            f"momenta cannot be found from these positions: a mass matrix of constants and cosines "
            f"of angles and a potential of sines, cosines and springs explain {sound.sum()} of "
            f"{n} trajectories. Give momenta p, or fit Mechanics to the positions."
        )
    # Too little motion to tell the masses of one trajectory: those of a typical one.
    found[~sound] = np.median(found[sound], axis=0)
    return np.einsum("nf,fntd->ntd", found, momenta)


def _features(q: np.ndarray, v: np.ndarray, angles: tuple[bool, ...]):
    """(F, n, T, d) momenta and forces of every feature, and the pair of those that are masses."""
    d, angle = q.shape[2], np.array(angles)
    turned = np.where(angle, q, 0.0)
    momenta, forces, pairs = [], [], []

    def add(p: dict[int, np.ndarray], f: dict[int, np.ndarray]) -> None:
        for found, parts in ((momenta, p), (forces, f)):
            whole = np.zeros_like(q)
            for i, part in parts.items():
                whole[..., i] = part
            found.append(whole)

    for i in range(d):
        add({i: v[..., i]}, {})
        pairs.append((i, i))
    for i in range(d):
        for j in range(i):
            if not (angle[i] or angle[j]):
                continue
            delta = turned[..., i] - turned[..., j]
            turn = np.sin(delta) * v[..., i] * v[..., j]
            add(
                {i: np.cos(delta) * v[..., j], j: np.cos(delta) * v[..., i]},
                {i: -turn * angle[i], j: turn * angle[j]},
            )
            pairs.append((i, j))
    for i in range(d):
        if angle[i]:
            add({}, {i: -np.sin(q[..., i])})
            add({}, {i: -np.cos(q[..., i])})
            continue
        add({}, {i: -np.ones_like(q[..., i])})
        for j in (j for j in range(i + 1) if not angle[j]):
            add({}, {i: -q[..., j], j: -q[..., i]})
    return np.array(momenta), np.array(forces), pairs


def _half_width(v: Float[np.ndarray, "n T d"]) -> int:
    """Steps from the middle of a test function to its end."""
    change = np.sqrt(np.mean(np.diff(v, axis=1) ** 2))
    time = np.sqrt(np.mean(v**2)) / max(float(change), 1e-300)
    return int(np.clip(round(SUPPORT * time), 3, max((v.shape[1] - 1) // 4, 3)))


def _test_function(half: int, step: float) -> tuple[np.ndarray, np.ndarray]:
    """`(1 - x²)²` over the support and its derivative in time."""
    x = np.arange(-half, half + 1) / (half + 1)
    return (1 - x**2) ** 2, -4 * x * (1 - x**2) / ((half + 1) * step)


def _correlated(x: Float[np.ndarray, "F n T d"], weights: np.ndarray) -> np.ndarray:
    """Sums over the support of the test function, at all places where it fits."""
    if x.shape[2] < len(weights):
        raise UserError(
            f"momenta from positions need at least {len(weights)} states in a trajectory; got "
            f"{x.shape[2]}."
        )
    windows = np.lib.stride_tricks.sliding_window_view(x, len(weights), axis=2)
    return np.moveaxis(windows @ weights, 2, 3)


def _matrices(found: np.ndarray, pairs: list[tuple[int, int]], d: int) -> np.ndarray:
    masses = np.zeros((len(found), d, d))
    for k, (i, j) in enumerate(pairs):
        masses[:, i, j] = masses[:, j, i] = found[:, k]
    return masses


def _definite(masses: Float[np.ndarray, "n d d"]) -> np.ndarray:
    """(n,): is `m`, and with it `m_ij cos(q_i - q_j)`, positive definite?"""
    diagonal = np.einsum("nii->ni", masses)
    root = np.sqrt(np.maximum(diagonal, 1e-300))
    unit = masses / root[:, :, None] / root[:, None, :]
    return (diagonal > 0).all(1) & (np.linalg.eigvalsh(unit)[:, 0] > INDEFINITE)
