"""Preset `paper` beside the authors' own numbers after 115 steps (single pendulum, b = 2).

    python benchmarks/paper_check.py --seed 0 --steps 115

Coordinates are scaled as theirs, q / (pi/2). Momenta are divided by the mean over trajectories of
their largest value, where theirs are divided by each trajectory's own.
"""

import argparse

import jax
import numpy as np

import dhn
from dhn.models.dhn import DHNModel
from dhn.models.presets import get_preset
from dhn.training.config import TrainingConfig
from dhn.training.fit import fit
from dhn.training.prepare import make_context
from dhn.trajectories.scaling import Scaler

AUTHORS = {"loss": 0.0465, "equation": 3.2e-4, "denoising": 0.468}
"""Their code, mean of the last 30 of 115 steps; denoising before its weight of 0.1."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=115)
    args = parser.parse_args()
    data = dhn.simulate("single_pendulum", trajectories=1000, seed=args.seed)
    assert data.p is not None
    largest = np.abs(data.p).max((1, 2)).mean()
    scaler = Scaler(np.zeros(1), np.full(1, np.pi / 2), np.full(1, largest))
    config, recipe = get_preset("paper")
    training = TrainingConfig.model_validate({**recipe, "steps": args.steps, "seed": args.seed})
    model = DHNModel.build(config, make_context(data, scaler), jax.random.key(args.seed))
    # One record a step.
    found = fit(model, data, scaler, training, progress=False, chunk_seconds=0.0).history[-30:]
    mean = {name: float(np.mean([record[name] for record in found])) for name in AUTHORS}
    mean["denoising"] /= config.denoising_weight
    for name, value in mean.items():
        print(f"{name:10} {value:.3g}, authors' {AUTHORS[name]:.3g}")


if __name__ == "__main__":
    main()
