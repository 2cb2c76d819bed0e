"""Simulating 1000 double pendulums: `dhn.simulate` against a loop over SciPy's `solve_ivp`.

    python benchmarks/simulate.py            a short table
    python benchmarks/simulate.py --json     the same for machines

Both solve the same trajectories (paper's settings, 129 states). SciPy's DOP853 gets hand-written
equations and the loosest tolerance whose error is not above ours, so that the ratio is at equal
accuracy; both errors are against a solution with much tighter tolerance. The loop is timed on
`--scipy-trajectories` of them and scaled up, since every trajectory costs about the same.
"""

import argparse
import json
import math
import platform
import time

import numpy as np
from scipy.integrate import solve_ivp


def equations(t, y, l2, g):
    """Hamilton's equations of the double pendulum with m1 = m2 = l1 = 1, by hand."""
    theta1, theta2, p1, p2 = y
    sine, cosine = math.sin(theta1 - theta2), math.cos(theta1 - theta2)
    determinant = l2 * l2 * (2.0 - cosine * cosine)
    v1 = (l2 * l2 * p1 - l2 * cosine * p2) / determinant
    v2 = (2.0 * p2 - l2 * cosine * p1) / determinant
    coupling = l2 * v1 * v2 * sine
    return (
        v1,
        v2,
        -coupling - 2.0 * g * math.sin(theta1),
        coupling - g * l2 * math.sin(theta2),
    )


def scipy_loop(data, count, rtol, atol):
    """The usual way: one trajectory after the other."""
    states = []
    for i in range(count):
        y0 = np.concatenate([data.q[i, 0], data.p[i, 0]])
        solution = solve_ivp(
            equations,
            (data.t[0], data.t[-1]),
            y0,
            method="DOP853",
            t_eval=data.t,
            rtol=rtol,
            atol=atol,
            args=(data.params["l2"][i], data.params["g"][i]),
        )
        states.append(solution.y.T)
    return np.stack(states)


def timed(function, repeats=1):
    """The best time of several, and the last result."""
    best, results = math.inf, []
    for _ in range(repeats):
        start = time.perf_counter()
        results = [function()]
        best = min(best, time.perf_counter() - start)
    return best, results[0]


def measure(trajectories: int, scipy_trajectories: int, repeats: int) -> dict:
    start = time.perf_counter()
    from dhn.systems import simulate

    data = simulate("double_pendulum", trajectories, seed=0)
    cold = time.perf_counter() - start
    warm, data = timed(lambda: simulate("double_pendulum", trajectories, seed=0), repeats)

    few = min(scipy_trajectories, trajectories)
    reference = scipy_loop(data, few, 1e-13, 1e-14)

    def error(states):
        return float(np.abs(states - reference).max())

    assert data.p is not None
    ours = error(np.concatenate([data.q, data.p], axis=-1)[:few])
    # From loose to tight: the first that is as accurate as we are.
    for tolerance in (1e-8, 3e-9, 1e-9, 3e-10, 1e-10, 3e-11, 1e-11, 3e-12, 1e-12):
        theirs = error(scipy_loop(data, few, tolerance, tolerance))
        if theirs <= ours:
            break
    seconds, _ = timed(lambda: scipy_loop(data, few, tolerance, tolerance), repeats)
    loop = seconds * trajectories / few
    return {
        "trajectories": trajectories,
        "states": len(data.t),
        "dhn_cold_seconds": cold,
        "dhn_warm_seconds": warm,
        "dhn_error": ours,
        "scipy_seconds": loop,
        "scipy_timed_trajectories": few,
        "scipy_tolerance": tolerance,
        "scipy_error": theirs,
        "ratio_warm": loop / warm,
        "ratio_cold": loop / cold,
        "python": platform.python_version(),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trajectories", type=int, default=1000)
    parser.add_argument("--scipy-trajectories", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = measure(options.trajectories, options.scipy_trajectories, options.repeats)
    if options.json:
        print(json.dumps(result))
        return
    print(f"{result['trajectories']} double pendulums, {result['states']} states each")
    print(f"{'':24}{'seconds':>10}{'error':>12}")
    print(f"{'dhn.simulate, warm':24}{result['dhn_warm_seconds']:10.3f}{result['dhn_error']:12.1e}")
    print(f"{'  first call, imports':24}{result['dhn_cold_seconds']:10.3f}")
    print(
        f"{'scipy solve_ivp loop':24}{result['scipy_seconds']:10.3f}{result['scipy_error']:12.1e}"
    )
    print(
        f"{result['ratio_warm']:.0f} times faster ({result['ratio_cold']:.1f} with the first call)"
    )


if __name__ == "__main__":
    main()
