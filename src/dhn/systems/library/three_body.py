"""Three bodies under gravity, started near the figure-eight orbit of Chenciner and Montgomery."""

from dhn.systems.library import gravity
from dhn.systems.system import System

# On the exact orbit all masses are 1 and the period is 6.3259; the ranges keep to orbits that
# stay clear of collisions, where no fixed accuracy could be promised.
_X, _Y, _VX, _VY = 0.97000436, 0.24308753, 0.46620369, 0.43236573


def _near(value: float) -> tuple[float, float]:
    return value - 0.01, value + 0.01


SYSTEM = System(
    name="three_body",
    title="Three-body problem",
    description="three bodies under gravity in a plane, near the figure-eight orbit",
    coordinates=("x1", "y1", "x2", "y2", "x3", "y3"),
    hamiltonian=gravity.hamiltonian,
    params={"m1": 1.0, "m2": 1.0, "m3": (0.97, 1.03), "G": 1.0},
    initial={
        **{"x1": _near(_X), "y1": _near(-_Y), "v_x1": _VX, "v_y1": _VY},
        **{"x2": _near(-_X), "y2": _near(_Y), "v_x2": _VX, "v_y2": _VY},
        **{"x3": 0.0, "y3": 0.0, "v_x3": -2 * _VX, "v_y3": -2 * _VY},
    },
    invariants=gravity.INVARIANTS,
)
