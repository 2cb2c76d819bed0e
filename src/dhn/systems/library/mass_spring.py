"""The harmonic oscillator."""

from dhn.systems.system import System


def hamiltonian(q, p, params):
    return 0.5 * p[0] ** 2 / params["m"] + 0.5 * params["k"] * q[0] ** 2


SYSTEM = System(
    name="mass_spring",
    title="Mass on a spring",
    description="a mass on a linear spring",
    coordinates=("x",),
    hamiltonian=hamiltonian,
    params={"k": (0.5, 2.0), "m": 1.0},
    initial={"x": (-1.0, 1.0), "v_x": (-1.0, 1.0)},
    units={"x": "m", "p_x": "kg m/s", "t": "s", "k": "N/m", "m": "kg"},
)
