"""Preset `paper` beside the authors' own numbers after 115 steps (single pendulum, b = 2).

    python benchmarks/paper_check.py --seeds 3 --steps 115
    python benchmarks/paper_check.py --momenta own

Losses are means over the last 30 steps, denoising before its weight of 0.1. The fit error is over
200 training trajectories from 8 states, the completion error over 200 new ones from 16, with the
paper's inference; both are mean squares of q / (pi/2) over predicted states. Codes of new
trajectories are fitted as theirs were: by 58 epochs of the training's own steps with the weights
held, from N(0, 1). `--momenta own` divides momenta by each trajectory's own maximum, future
included, as the authors do: only here, to compare.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np

import dhn
from dhn.evaluation.metrics import compare
from dhn.reproduction.rolling import codes_by_epochs, roll_forward
from dhn.trajectories import Trajectories

AUTHORS = {
    "loss": 0.0465, "equation": 3.2e-4, "denoising": 0.468, "fit": 0.213, "completion": 0.132,
}  # fmt: skip
"""Their code after 115 steps."""
LAST = 30
STATES, SHOWN, OBSERVED = 128, 200, 16
EPOCHS = 58.0
"""Of their fit of new codes."""


def simulated(count: int, seed: int, momenta: str) -> Trajectories:
    data = dhn.simulate("single_pendulum", count, seed=seed, steps=STATES)
    assert data.p is not None
    if momenta == "mean":
        return data
    return data.replace(p=data.p / np.abs(data.p).max((1, 2), keepdims=True))


def measure(seed: int, steps: int, momenta: str) -> dict[str, float]:
    train, test = (simulated(n, s, momenta) for n, s in ((1000, 2 * seed), (SHOWN, 2 * seed + 1)))
    with tempfile.TemporaryDirectory() as folder:
        found = dhn.DHN("paper", seed=seed).fit(train, steps=steps, directory=folder).trained
        lines = (Path(folder) / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    # A record is a mean over the steps since the one before.
    taken = np.diff([0, *(record["step"] for record in records)])
    late = np.array([record["step"] > steps - LAST for record in records]) * taken
    mean = {
        name: float(np.average([record[name] for record in records], weights=late))
        for name in ("loss", "equation", "denoising")
    }
    mean["denoising"] /= found.config.denoising_weight
    codes = codes_by_epochs(found, test[:, :OBSERVED], EPOCHS, seed)
    asked = {
        "fit": (train[:SHOWN], 8, found.codes[:SHOWN]),
        "completion": (test, OBSERVED, codes),
    }  # fmt: skip
    for name, (data, observe, codes) in asked.items():
        said = roll_forward(found, data[:, :observe], STATES - observe, codes, seed)
        mean[name] = compare(said, data).summary()["mse"]
    return mean


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=115)
    parser.add_argument("--momenta", choices=("mean", "own"), default="mean")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    args = parser.parse_args()
    rows = []
    for seed in range(args.first, args.first + args.seeds):
        rows.append(measure(seed, args.steps, args.momenta))
        print(f"seed {seed}: " + ", ".join(f"{k} {v:.3g}" for k, v in rows[-1].items()), flush=True)
    for name in rows[0]:
        ours, theirs = [row[name] for row in rows], AUTHORS[name]
        print(f"{name:10} {min(ours):.3g} to {max(ours):.3g}, authors' {theirs:.3g}")


if __name__ == "__main__":
    main()
