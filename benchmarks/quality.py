"""Accuracy after a given time of training: DHN and its baselines, same data, same clock.

    python benchmarks/quality.py --budget 1m --seeds 3
    python benchmarks/quality.py --budget 5m --models dhn --systems double_pendulum --json

The paper's settings: 1000 trajectories to train on, 200 new ones to test. Errors of q are mean
squares in units of pi/2 over predicted states only; the energy's is in physical units. Training
time includes compilation (a persistent cache of earlier runs is not used unless JAX is told to).
"""

import argparse
import dataclasses
import json
import time
from typing import Any

import numpy as np

import dhn
from dhn.baselines.splines import cubic_spline
from dhn.cli.arguments import seconds
from dhn.data import Trajectories
from dhn.errors import UserError
from dhn.evaluation.metrics import compare
from dhn.inference import make_estimator

TARGET = {"single_pendulum": "l", "double_pendulum": "l2"}

MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "dhn": ("dhn", "default", {}),
    "dhn-paired": ("dhn", "paired", {}),
    "dhn-transformer": ("dhn", "transformer", {}),
    "hnn-midpoint": ("hnn", "default", {}),
    "hnn-rk4": ("hnn", "default", {"training": "rk4", "rollout": "rk4"}),
    "vanilla": ("vanilla", "default", {}),
}
"""Label -> (kind, preset, options)."""


@dataclasses.dataclass(frozen=True)
class Data:
    train: Trajectories
    test: Trajectories


def measure(label: str, system: str, data: Data, seed: int, budget: float) -> dict[str, Any]:
    """Train once, then every task that the model can do."""
    kind, preset, options = MODELS[label]
    start = time.perf_counter()
    model = make_estimator(kind, preset, {**options, "seed": seed})
    model.fit(data.train, budget=budget)
    row: dict[str, Any] = {
        "model": label,
        "system": system,
        "seed": seed,
        "parameters": model.parameters,
        "steps": model.trained.summary["steps"],
        "seconds": time.perf_counter() - start,
    }
    start = time.perf_counter()
    found = compare(model.complete(data.test, 16)[:, :128], data.test).summary()
    row["inference_seconds"] = time.perf_counter() - start
    row["completion"] = found["mse"]
    row["completion_median"] = found["median"]
    row["energy"] = found["energy_mse"]
    target = TARGET[system]
    row["probe"] = float(np.mean((model.infer(data.test, target) - data.test.params[target]) ** 2))
    for factor in (4, 8, 16):
        sparse = data.test.resample(factor)
        try:
            fine = model.interpolate(sparse, factor)
        except UserError:
            break
        row[f"interpolation_{factor}"] = compare(fine, data.test).summary()["mse"]
        row[f"spline_{factor}"] = compare(cubic_spline(sparse, factor), data.test).summary()["mse"]
    return row


SHOWN = (
    "completion", "completion_median", "energy", "probe",
    "interpolation_4", "interpolation_8", "interpolation_16",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", default="1m", help="training time of each model: 1m, 5m, ...")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--systems", default=",".join(TARGET))
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = []
    for system in args.systems.split(","):
        data = Data(
            dhn.simulate(system, trajectories=1000, seed=0),
            dhn.simulate(system, trajectories=200, seed=1),
        )
        for label in args.models.split(","):
            for seed in range(args.seeds):
                row = measure(label, system, data, seed, seconds(args.budget))
                rows.append(row)
                if not args.json:
                    numbers = "  ".join(f"{k} {row[k]:.2e}" for k in SHOWN if k in row)
                    print(
                        f"{system} {label} seed {seed}: {row['seconds']:.0f} s, {row['steps']} "
                        f"steps, {row['parameters']} parameters:  {numbers}",
                        flush=True,
                    )
    if args.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"\nmean (worst) of {args.seeds} seeds after {args.budget}")
    for system in args.systems.split(","):
        for label in args.models.split(","):
            mine = [r for r in rows if r["system"] == system and r["model"] == label]
            cells = [
                f"{k} {np.mean([r[k] for r in mine]):.1e} ({max(r[k] for r in mine):.1e})"
                for k in SHOWN
                if k in mine[0]
            ]
            print(f"{system:>16} {label:<16} " + "  ".join(cells))


if __name__ == "__main__":
    main()
