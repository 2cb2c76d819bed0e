"""What a pretrained model is worth as a start: ten trajectories of systems outside its ranges.

    python benchmarks/warm_start.py --budget 20s --seeds 2

Double pendulums with l1 = 1.1 and m2 = 1.3, where the pretrained model has 1 and 1 throughout. Ten
train, 100 others are completed from 16 states. Errors are mean squares of q / (pi/2) over 112
predicted states, per trajectory. The budget is processor time of training.
"""

import argparse
import warnings

import numpy as np

import dhn
from dhn.checks import seconds
from dhn.estimator.pretrained import facts
from dhn.evaluation.metrics import compare

NAME, TRAIN, TESTS, OBSERVED, STATES = "double_pendulum", 10, 100, 16, 128
OTHER = {"l1": 1.1, "m2": 1.3}


def simulated(count: int, seed: int) -> dhn.Trajectories:
    known = facts(NAME)
    params, initial = (
        {key: tuple(x) for key, x in known[part].items()} for part in ("params", "initial")
    )
    return dhn.simulate(
        NAME, count, seed=seed, steps=STATES, params={**params, **OTHER}, initial=initial
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--budget", default="20s")
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    start, test = dhn.pretrained(NAME), simulated(TESTS, 1000)
    print("| model | seed | median | mean | over 1e-2, of 100 |\n|---|---|---|---|---|")
    report("pretrained, not trained further", "", start, test)
    for seed in range(args.seeds):
        train, budget = simulated(TRAIN, seed), seconds("budget", args.budget)
        for name, begin in (("fresh", None), ("from the pretrained model", start)):
            model = dhn.DHN(start.config, clock="processor", seed=seed)
            report(name, str(seed), model.fit(train, budget=budget, start=begin), test)


def report(name: str, seed: str, model, test: dhn.Trajectories) -> None:
    each = compare(model.complete(test, OBSERVED), test).per_trajectory
    print(
        f"| {name} | {seed} | {np.median(each):.1e} | {each.mean():.1e} | {(each > 1e-2).sum()} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
