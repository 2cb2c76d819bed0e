"""The Hénon-Heiles potential: two oscillators with a cubic coupling, from order to chaos."""

from dhn.systems.system import System


def hamiltonian(q, p, params):
    x, y = q
    harmonic = 0.5 * (p[0] ** 2 + p[1] ** 2 + x**2 + y**2)
    return harmonic + params["strength"] * (x**2 * y - y**3 / 3)


# Below energy 1 / (6 strength²) every orbit is bound; the starts keep below 0.146.
_START = (-0.25, 0.25)

SYSTEM = System(
    name="henon_heiles",
    title="Hénon–Heiles system",
    description="a star in a galaxy's plane; regular at low energy, chaotic at high",
    coordinates=("x", "y"),
    hamiltonian=hamiltonian,
    params={"strength": (0.5, 1.0)},
    initial={"x": _START, "y": _START, "p_x": _START, "p_y": _START},
    time_step=20 / 128,
)
