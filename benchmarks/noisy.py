"""Learning from noisy trajectories: completion of new ones from 16 noisy states.

    python benchmarks/noisy.py --noise 0.01,0.05 --starts random --budget 60s --seeds 1
    python benchmarks/noisy.py --noise 0.002 --positions --budget 60s

1000 noisy double pendulums train each model; 100 new ones, as noisy, are completed. Errors are
mean squares of q / (pi/2) against the truth over the predicted ones of 128 states. The budget is
processor time of the whole fit, reconstruction of the training set included. HNN and vanilla
network learn in the same turns, from smoothed and then reconstructed data. With `--positions` no
momenta are measured, neither in training nor of the new ones, and 32 positions are seen. The model
`true` is the ceiling: the true equations, with parameters and start fitted to what is seen. It
strays too, because a rotating double pendulum multiplies the error of its first states.
"""

import argparse
import math
import warnings

import numpy as np

import dhn
from dhn.checks import seconds
from dhn.reproduction.baselines.parametric import fit_system
from dhn.reproduction.estimators import make_estimator

OBSERVED, POSITIONS, STATES = 16, 32, 128


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--noise", default="0.01,0.05", help="shares of each standard deviation")
    parser.add_argument("--starts", default="random", choices=("fixed", "random"))
    parser.add_argument(
        "--models", nargs="+", default=["dhn"], choices=("dhn", "hnn", "vanilla", "true")
    )
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--unannounced", action="store_true", help="the data do not state noise")
    parser.add_argument("--positions", action="store_true", help="no momenta are measured")
    args = parser.parse_args()
    observed = POSITIONS if args.positions else OBSERVED
    warnings.simplefilter("ignore")
    initial = {}
    if args.starts == "random":
        for name in ("theta1", "theta2"):
            initial |= {name: (-math.pi / 2, math.pi / 2), f"v_{name}": (-0.5, 0.5)}

    def simulated(count: int, seed: int, noise: float):
        return dhn.simulate(
            "double_pendulum", count, seed=seed, steps=STATES, initial=initial, noise=noise
        )

    for noise in (float(x) for x in args.noise.split(",")):
        for seed in range(args.seeds):
            train = simulated(1000, 2 * seed, noise)
            seen, truth = (simulated(100, 2 * seed + 1, x) for x in (noise, 0.0))
            if args.unannounced:
                train, seen = train.replace(noise=None), seen.replace(noise=None)
            if args.positions:
                train, seen = train.replace(p=None), seen.replace(p=None)
            for kind in args.models:
                if kind == "true":
                    fitted = fit_system(seen[:, :observed], "double_pendulum", shooting=True)
                    found, took = fitted.states(truth.t)[:, :STATES], 0.0
                else:
                    model = make_estimator(kind, "default", {"seed": seed, "clock": "processor"})
                    model.fit(train, budget=seconds("budget", args.budget))
                    found = model.forecast(seen[:, :observed], STATES - observed)
                    took = model.record["seconds"]
                error = ((found.q - truth.q[:, :STATES]) / (np.pi / 2))[:, observed:] ** 2
                each = error.mean((1, 2))
                print(
                    f"{kind}, noise {noise:.1%}, {args.starts} starts, "
                    f"{'positions, ' if args.positions else ''}seed {seed}: median "
                    f"{np.median(each):.2e}, mean {each.mean():.2e}, over 1e-2: "
                    f"{(each > 1e-2).sum()} of {len(each)}; {took:.0f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
