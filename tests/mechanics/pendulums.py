"""Pendulums with friction that tests of mechanics are fitted to."""

import numpy as np
from scipy.integrate import solve_ivp

STEP = 0.05


def swing(gravity, viscous, dry, start, count, step=STEP):
    """Positions of a pendulum with friction, by SciPy."""

    def slope(_, x):
        return [x[1], -gravity * np.sin(x[0]) - viscous * x[1] - dry * np.tanh(x[1] / 0.02)]

    t = np.arange(count) * step
    return t, solve_ivp(slope, (0, t[-1]), [start, 0.0], t_eval=t, rtol=1e-9, atol=1e-10).y[:1].T
