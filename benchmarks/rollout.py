"""Rollout of 200 trajectories over 112 steps, and fitting the codes of 200 new trajectories.

    python benchmarks/rollout.py --json

The authors' code needs 108 s for this rollout on one core (Python loops over denoising steps).
Times are after compilation; weights are untrained, which changes no shapes, though the implicit
solve of the default model takes as many iterations as it needs.
"""

import sys

import jax.random as jr
import numpy as np

from cases import CONTEXT, default_sized, paper_sized, states
from dhn.inference.forecast import forecast
from dhn.models.dhn import DHNModel
from dhn.training.autodecode import CodePrior, autodecode
from timing import arguments, interleaved, report

TRAJECTORIES, OBSERVED, STEPS = 200, 16, 112
AUTHORS_SECONDS = 108.0


def measure(name: str, config, seconds: float) -> dict:
    model = DHNModel.build(config, CONTEXT, jr.key(0))
    rng = np.random.default_rng(0)
    codes = 0.1 * rng.standard_normal((TRAJECTORIES, model.latent_size)).astype(np.float32)
    observed = states(TRAJECTORIES, OBSERVED)
    known = np.ones((TRAJECTORIES, OBSERVED), bool)
    prior = CodePrior.fit(codes, noise=0.1)
    best = interleaved(
        {
            "rollout": lambda: forecast(model, observed, codes, STEPS, jr.key(1)),
            "codes": lambda: autodecode(model, observed, known, prior),
        },
        seconds,
        repeats=2,
    )
    return {
        "model": name,
        "rollout_seconds": best["rollout"].wall,
        "rollout_cpu_seconds": best["rollout"].cpu,
        "ratio_to_authors": AUTHORS_SECONDS / best["rollout"].wall,
        "codes_seconds": best["codes"].wall,
        "codes_cpu_seconds": best["codes"].cpu,
    }


def main(argv: list[str]) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="measuring time per row")
    args = parser.parse_args(argv)
    rows = [
        measure("default", default_sized(), args.seconds),
        measure("transformer, paper's size, b=2", paper_sized(2), args.seconds),
    ]
    report("rollout of 200 trajectories, 112 steps; codes of 200 trajectories", rows, args.json)


if __name__ == "__main__":
    main(sys.argv[1:])
