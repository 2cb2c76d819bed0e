"""Made-up recordings as instruments write them, with the faults that measured ones have.

Each function returns rows of a table. A chain of links hangs from a fixed pivot: inertias
`½ v'M(q)v` with `M_ij = a_ij cos(q_i - q_j)`, weights `b_i sin q_i`, friction at the joints.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np


def chain(
    inertia: np.ndarray, weight: np.ndarray, viscous: np.ndarray, dry: np.ndarray,
    start: Sequence[float], times: np.ndarray, rates: Sequence[float] | None = None,
) -> np.ndarray:  # fmt: skip
    """Angles (T, d) of a chain by Runge-Kutta steps of five milliseconds or less."""
    d = len(weight)

    def slope(x: np.ndarray) -> np.ndarray:
        q, v = x[:d], x[d:]
        turn = q[:, None] - q[None, :]
        rate = np.diff(v, prepend=0.0)
        joint = viscous * rate + dry * np.tanh(rate / 0.01)
        force = np.append(joint[1:], 0.0) - joint
        force = force - weight * np.sin(q) - (inertia * np.sin(turn)) @ v**2
        return np.concatenate([v, np.linalg.solve(inertia * np.cos(turn), force)])

    x = np.concatenate([start, np.zeros(d) if rates is None else rates])
    found = [x[:d]]
    for before, after in itertools.pairwise(times):
        count = max(1, int(np.ceil((after - before) / 5e-3)))
        h = (after - before) / count
        for _ in range(count):
            a = slope(x)
            b = slope(x + h / 2 * a)
            c = slope(x + h / 2 * b)
            x = x + h / 6 * (a + 2 * b + 2 * c + slope(x + h * c))
        found.append(x[:d])
    return np.array(found)


def links(masses: Sequence[float], lengths: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Inertias and weights of point masses on massless rods."""
    m, length = np.array(masses), np.array(lengths)
    below = m[::-1].cumsum()[::-1]
    order = np.maximum(np.arange(len(m))[:, None], np.arange(len(m))[None, :])
    return below[order] * np.outer(length, length), below * 9.81 * length


def one(x: float) -> np.ndarray:
    return np.array([x])


def rotary_arm(seed: int, seconds: float = 14.0) -> np.ndarray:
    """Time and angle [rad] at 100 Hz of an arm with dry friction, recorded to 0.01 rad; 0.73 s."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(100 * seconds)) / 100
    gravity = (2 * np.pi / 0.73) ** 2
    q = chain(np.eye(1), one(gravity), one(0.12), one(0.25), [rng.uniform(0.7, 1.1)], t)
    q += 0.003 * np.cos(q) + 0.002 * np.sin(2 * q)  # the encoder is not quite centred
    return np.column_stack([t, np.round(q, 2)])


def three_arms(seed: int, runs: int = 6, seconds: float = 6.0) -> np.ndarray:
    """Run, time and three angles at 50 Hz; bearings with dry friction, little noise."""
    rng = np.random.default_rng(seed)
    inertia, weight = links((0.3, 0.25, 0.2), (0.2, 0.18, 0.15))
    t, rows = np.arange(round(50 * seconds)) / 50, []
    for run in range(runs):
        q = chain(
            inertia, weight, np.array([8e-4, 5e-4, 3e-4]), np.array([1e-3, 1e-3, 5e-4]),
            rng.uniform(-1.2, 1.2, 3), t,
        )  # fmt: skip
        q += rng.normal(0, 2e-4, q.shape)
        rows.append(np.column_stack([np.full(len(t), run), t, q]))
    return np.concatenate(rows)


def filmed_double(seed: int, seconds: float = 30.0, lost: float = 0.2) -> np.ndarray:
    """Time and pixels of pivot, joint and tip at 60 Hz; a turned camera, frames lost, 0.5 pixel."""
    rng = np.random.default_rng(seed)
    inertia, weight = links((0.1, 0.08), (0.09, 0.07))
    t = np.arange(round(60 * seconds)) / 60
    q = chain(
        inertia, weight, np.array([2e-5, 1e-5]), np.array([3e-5, 1e-5]), rng.uniform(1.5, 2.5, 2), t
    )
    turned = q + 0.4
    pivot = np.array([640.0, 350.0])
    joint = pivot + 250 * np.stack([np.sin(turned[:, 0]), np.cos(turned[:, 0])], -1)
    tip = joint + 195 * np.stack([np.sin(turned[:, 1]), np.cos(turned[:, 1])], -1)
    pixels = np.concatenate([np.tile(pivot, (len(t), 1)), joint, tip], 1)
    away = (pixels.reshape(len(t), 3, 2) - [640, 360]) / 640
    bent = 1 - 0.01 * (away**2).sum(-1, keepdims=True)  # the lens
    pixels = ([640, 360] + 640 * away * bent).reshape(len(t), 6) + rng.normal(0, 0.5, (len(t), 6))
    kept = rng.random(len(t)) >= lost
    return np.column_stack([t, pixels])[kept]


def five_lengths(seed: int, seconds: float = 30.0) -> np.ndarray:
    """Pendulum, time and angle [rad] at 30 Hz of five pendulums of different length."""
    rng, rows = np.random.default_rng(seed), []
    t = np.arange(round(30 * seconds)) / 30
    for k, length in enumerate((0.5, 0.7, 0.9, 1.1, 1.4)):
        q = chain(np.eye(1), one(9.81 / length), one(0.01), one(0.003), [rng.uniform(0.2, 0.3)], t)
        q += rng.normal(0, 0.001, q.shape) + 0.002 * np.cos(40 * q)  # pixels of the marker
        rows.append(np.column_stack([np.full(len(t), k), t, q]))
    return np.concatenate(rows)


def slow_pendulum(seed: int, seconds: float = 95.0) -> np.ndarray:
    """Time and angle [rad] at 6 Hz of a heavily damped swing; a lens that scales with the angle."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(6 * seconds)) / 6
    q = chain(np.eye(1), one(1.3), one(0.006), one(0.002), [rng.uniform(1.3, 1.6)], t)
    q += 0.01 * np.sin(q) ** 3 + rng.normal(0, 0.005, q.shape)
    return np.column_stack([t, q])


def write(path: Path, names: str, rows: np.ndarray) -> Path:
    """A table with a header."""
    np.savetxt(path, rows, delimiter=",", header=names, comments="", fmt="%.6g")
    return path
