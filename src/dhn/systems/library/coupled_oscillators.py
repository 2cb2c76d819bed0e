"""Two equal masses between walls, tied to each other by a third spring."""

from dhn.systems.system import System


def hamiltonian(q, p, params):
    walls = 0.5 * params["k"] * (q[0] ** 2 + q[1] ** 2)
    between = 0.5 * params["coupling"] * (q[1] - q[0]) ** 2
    return 0.5 * (p[0] ** 2 + p[1] ** 2) / params["m"] + walls + between


def symmetric_mode_energy(q, p, params):
    """The masses moving together do not feel the coupling."""
    return 0.25 * ((p[0] + p[1]) ** 2 / params["m"] + params["k"] * (q[0] + q[1]) ** 2)


SYSTEM = System(
    name="coupled_oscillators",
    description="two equal masses on springs, tied by a third; energy beats between them",
    coordinates=("x1", "x2"),
    hamiltonian=hamiltonian,
    params={"k": 1.0, "coupling": (0.1, 1.0), "m": 1.0},
    initial={"x1": (-1.0, 1.0), "x2": (-1.0, 1.0)},
    units={
        **{"x1": "m", "x2": "m", "p_x1": "kg m/s", "p_x2": "kg m/s", "t": "s"},
        **{"k": "N/m", "coupling": "N/m", "m": "kg"},
    },
    invariants={"symmetric_mode_energy": symmetric_mode_energy},
    time_step=20 / 128,
)
