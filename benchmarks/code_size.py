"""What superfluous numbers of a code cost, and whether short trainings find how many are needed.

    python benchmarks/code_size.py forecast --systems single_pendulum --sizes 1,2,4,0
    python benchmarks/code_size.py short --steps 2000

`forecast` trains on 1000 clean trajectories with random starts, for the same processor time with
codes of each size (0: found by the training itself, which pays for the search), and completes 100
new ones from 16 states, clean or noisy. Errors are mean squares of q / (pi/2); the last columns are
medians over those of the true equations, fitted to the same noisy states of 40 trajectories.

`short` prints the residuals of trainings of a few seconds, for families of double pendulums in
which none to three parameters vary. Seeds are not those of reported test sets.
"""

import argparse
import warnings
from typing import Any

import numpy as np

import dhn
from dhn.checks import seconds
from dhn.reproduction.baselines.parametric import fit_system

SEED, STATES, SEEN = 7000, 128, 16
NOISES = (0.0, 0.01, 0.05)
FITTED = 40
"""Trajectories to which the true equations are fitted, one by one."""
FAMILIES: dict[str, dict[str, Any]] = {
    "none": {"l2": 1.0},
    "l2": {},
    "l2, m2 by 2 %": {"m2": (0.98, 1.02)},
    "l2, m2": {"m2": (0.5, 1.5)},
    "l2, m2, l1": {"m2": (0.8, 1.2), "l1": (0.9, 1.1)},
}
"""What varies -> parameters of the double pendulum beside its usual l2 from 0.5 to 1.5."""


def simulated(system: str, count: int, seed: int, noise: float = 0.0, **params: Any):
    initial = {}
    for angle in dhn.get_system(system).coordinates:
        initial |= {angle: (-np.pi / 2, np.pi / 2), f"v_{angle}": (-0.5, 0.5)}
    return dhn.simulate(
        system, count, seed=seed, steps=STATES, initial=initial, params=params, noise=noise
    )


def errors(found: dhn.Trajectories, truth: dhn.Trajectories) -> np.ndarray:
    error = ((found.q - truth.q[: len(found), :STATES]) / (np.pi / 2))[:, SEEN:]
    return (error**2).mean((1, 2))


def forecasts(system: str, size: int, seed: int, budget: float, params: dict[str, Any]) -> None:
    options = {"latent_size": size, "code_search": 0.0} if size else {}
    model = dhn.DHN(seed=seed, clock="processor", **options)
    model.fit(simulated(system, 1000, SEED + 2 * seed, **params), budget=budget)
    number = SEED + 2 * seed + 1
    truth = simulated(system, 100, number, **params)
    cells = [f"{model.trained.config.latent_size}{'' if size else ' (found)'}"]
    ratios = []
    for noise in NOISES:
        seen = simulated(system, 100, number, noise, **params)[:, :SEEN]
        each = errors(model.forecast(seen, STATES - SEEN), truth)
        cells.append(f"{np.median(each):.1e}, {each.mean():.1e}")
        if noise:
            best = fit_system(seen[:FITTED], system, shooting=True).states(truth.t)[:, :STATES]
            ratios.append(f"{np.median(each[:FITTED]) / np.median(errors(best, truth)):.2f}")
    row = [system.split("_")[0], str(seed), *cells, *ratios, str(model.record["steps"])]
    print(f"| {' | '.join(row)} |", flush=True)


def residuals(name: str, steps: int) -> None:
    train = simulated("double_pendulum", 1000, SEED, **FAMILIES[name])
    found = []
    for size in (1, 2, 3, 4):
        model = dhn.DHN(latent_size=size, code_search=0.0).fit(train, steps=steps)
        found.append(f"{model.record['residual']:.1e}")
    print(f"| {name} | {' | '.join(found)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("task", choices=("forecast", "short"))
    parser.add_argument("--systems", default="single_pendulum,double_pendulum")
    parser.add_argument("--sizes", default="1,2,4,0")
    parser.add_argument("--family", default="l2", choices=FAMILIES, help="of double pendulums")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.task == "short":
        print("| what varies | size 1 | 2 | 3 | 4 |\n|---|---|---|---|---|")
        for name in FAMILIES:
            residuals(name, args.steps)
        return
    print("| system | seed | size | clean: median, mean | 1 % noise | 5 % noise "
          "| 1 % over true equations | 5 % | steps |\n|" + "---|" * 9)  # fmt: skip
    for system in args.systems.split(","):
        for seed in range(args.seeds):
            for size in (int(x) for x in args.sizes.split(",")):
                params = FAMILIES[args.family] if system == "double_pendulum" else {}
                forecasts(system, size, seed, seconds("budget", args.budget), params)


if __name__ == "__main__":
    main()
