"""A charge in a uniform magnetic field, where momentum is not mass times velocity."""

from dhn.systems.system import System


def lagrangian(q, v, params):
    """`L = m|v|²/2 + charge A·v` in the symmetric gauge, `A = field (-y, x)/2`."""
    kinetic = 0.5 * params["m"] * (v[0] ** 2 + v[1] ** 2)
    return kinetic + 0.5 * params["charge"] * params["field"] * (q[0] * v[1] - q[1] * v[0])


def _half(params):
    return 0.5 * params["charge"] * params["field"]


SYSTEM = System(
    name="charged_particle",
    description="a charge circling in a uniform magnetic field",
    coordinates=("x", "y"),
    lagrangian=lagrangian,
    params={"field": (0.5, 2.0), "charge": 1.0, "m": 1.0},
    initial={"x": (-1.0, 1.0), "y": (-1.0, 1.0), "v_x": (-1.0, 1.0), "v_y": (-1.0, 1.0)},
    units={
        **{"x": "m", "y": "m", "p_x": "kg m/s", "p_y": "kg m/s", "t": "s"},
        **{"field": "T", "charge": "C", "m": "kg"},
    },
    invariants={
        "angular_momentum": lambda q, p, params: q[0] * p[1] - q[1] * p[0],
        # The circle's centre, times charge x field.
        "pseudomomentum_x": lambda q, p, params: p[0] - _half(params) * q[1],
        "pseudomomentum_y": lambda q, p, params: p[1] + _half(params) * q[0],
    },
)
