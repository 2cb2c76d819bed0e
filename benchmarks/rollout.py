"""Rollout of 200 trajectories over 112 steps, and fitting the codes of 200 new trajectories.

    python benchmarks/rollout.py --json

The authors' code needs 108 s for this rollout on one core (Python loops over denoising steps).
Times are after compilation. The default model is trained briefly first, on the double pendulum, so
that its solves and its code fits stop where they would in use; the transformer's rollout takes
the same operations whatever its weights are, and is left untrained.
"""

import sys

import jax.random as jr
import numpy as np

import dhn
from cases import CONTEXT, paper_sized, states
from dhn.models.dhn import DHNModel
from dhn.models.registry import draw_weights
from dhn.reconstruct.forecast import forecast
from dhn.reproduction.rolling import roll_forward
from timing import arguments, interleaved, report

TRAJECTORIES, OBSERVED, STEPS = 200, 16, 112
AUTHORS_SECONDS = 108.0


def measure_default(train_steps: int, seconds: float) -> dict:
    model = dhn.DHN().fit(
        dhn.simulate("double_pendulum", trajectories=200, seed=0), steps=train_steps
    )
    truth = dhn.simulate("double_pendulum", trajectories=TRAJECTORIES, seed=1)
    observed = truth[:, :OBSERVED]
    codes = model.encode(observed)
    best = interleaved(
        {
            "rollout": lambda: roll_forward(model.trained, observed, STEPS, codes, 0).q,
            "codes": lambda: model.encode(observed),
        },
        seconds,
        repeats=2,
    )
    found = roll_forward(model.trained, observed, STEPS, codes, 0)
    ahead = slice(OBSERVED, OBSERVED + STEPS)
    error = np.mean((found.q - truth.q[:, : OBSERVED + STEPS])[:, ahead] ** 2) / (np.pi / 2) ** 2
    return {
        "model": f"default, {train_steps} steps",
        **rollout_row(best["rollout"]),
        "codes_seconds": best["codes"].wall,
        "codes_cpu_seconds": best["codes"].cpu,
        "mse": float(error),
    }


def measure_transformer(seconds: float) -> dict:
    model = draw_weights(DHNModel, paper_sized(2), CONTEXT, jr.key(0))
    codes = np.zeros((TRAJECTORIES, model.latent_size), np.float32)
    observed = states(TRAJECTORIES, OBSERVED)
    best = interleaved(
        {"rollout": lambda: forecast(model, observed, codes, STEPS, jr.key(1))}, seconds, repeats=1
    )
    return {"model": "transformer, paper's size, b=2", **rollout_row(best["rollout"])}


def rollout_row(timing) -> dict:
    return {
        "rollout_seconds": timing.wall,
        "rollout_cpu_seconds": timing.cpu,
        "ratio_to_authors": AUTHORS_SECONDS / timing.wall,
        "ratio_to_authors_cpu": AUTHORS_SECONDS / timing.cpu,
    }


def main(argv: list[str]) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="measuring time per row")
    parser.add_argument("--train-steps", type=int, default=2000)
    args = parser.parse_args(argv)
    rows = [measure_default(args.train_steps, args.seconds), measure_transformer(args.seconds)]
    report("rollout of 200 trajectories, 112 steps; codes of 200 trajectories", rows, args.json)


if __name__ == "__main__":
    main(sys.argv[1:])
