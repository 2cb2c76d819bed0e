"""Accuracy after a given time of training: DHN and its baselines, same data, same clock.

    python benchmarks/accuracy.py --budget 1m --seeds 3
    python benchmarks/accuracy.py --budget 5m --models dhn --systems double_pendulum --json
    python benchmarks/accuracy.py --budget 5m --models dhn --half
    python benchmarks/accuracy.py --budget 5m --keep kept/

The paper's settings: 1000 trajectories to train on, 200 new ones to test. Errors of q are mean
squares in units of pi/2 over predicted states only; the energy's is in physical units. Training
time includes compilation (a persistent cache of earlier runs is not used unless JAX is told to).
`probe` is the paper's linear one, `inferred` what `infer` says.
`--half` trains on states 0 to 64 and interpolates the seen stretch and the unseen one after it, as
the paper does; otherwise models train on whole trajectories, and `neighbour` is the two-neighbour
network that interpolation has to beat. `--clock processor` counts processor time instead, for a
machine with other work. `--keep` writes trained models to a folder and takes those it finds there,
so that a run may be cut off, or inference measured again without training.
"""

import argparse
import dataclasses
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dhn
from dhn.checks import seconds
from dhn.errors import UserError
from dhn.estimator import AbstractEstimator
from dhn.evaluation.metrics import compare
from dhn.models.contract import AbstractForecaster
from dhn.reproduction.baselines.splines import cubic_spline, hermite_spline, system_slopes
from dhn.reproduction.estimators import make_estimator
from dhn.trajectories import Trajectories

HALF = 65
"""States of the paper's interpolation, of training and of each test stretch."""
TASKS = ("forecast", "interpolate")
TARGET = {"single_pendulum": "l", "double_pendulum": "l2"}

MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "dhn": ("dhn", "default", {}),
    "dhn-blocks": ("dhn", "blocks", {}),
    "dhn-transformer": ("dhn", "transformer", {}),
    "hnn-midpoint": ("hnn", "default", {}),
    "hnn-rk4": ("hnn", "default", {"training": "rk4", "rollout": "rk4"}),
    "vanilla": ("vanilla", "default", {}),
    # Gaps to fill, and as wide ones with a known state in the middle, to fit the code on.
    "neighbour": (
        "neighbour",
        "default",
        {"gaps": [[4, 1], [8, 1], [16, 1], [2, 4], [2, 8], [2, 16]]},
    ),
}
"""Label -> (kind, preset, options)."""


@dataclasses.dataclass(frozen=True)
class Data:
    train: Trajectories
    test: Trajectories


def trained(
    label: str, data: Data, seed: int, budget: float, clock: str, kept: Path | None
) -> AbstractEstimator:
    """The model, trained now or found where it was kept."""
    if kept is not None and kept.exists():
        found = dhn.load(kept)
        assert isinstance(found, AbstractEstimator)
        return found
    kind, preset, options = MODELS[label]
    model = make_estimator(kind, preset, {**options, "seed": seed, "clock": clock})
    model.fit(data.train, budget=budget)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        model.save(kept)
    return model


def measure(
    model: AbstractEstimator, system: str, data: Data, tasks: Sequence[str]
) -> dict[str, Any]:
    """Those of the tasks that the model can do."""
    row: dict[str, Any] = {
        "parameters": model.parameters,
        "steps": model.trained.summary["steps"],
        "seconds": model.trained.summary["seconds"],
    }
    if data.train.states == HALF:
        return row | refined(model, data.test[:, :HALF], (4,), "_seen") | refined(
            model, data.test[:, HALF - 1 : 2 * HALF - 1], (4,), "_unseen"
        )  # fmt: skip
    if "forecast" in tasks and isinstance(model.trained.model, AbstractForecaster):
        start = time.perf_counter()
        found = compare(model.complete(data.test, 16)[:, :128], data.test).summary()
        row["inference_seconds"] = time.perf_counter() - start
        row["completion"] = found["mse"]
        row["completion_median"] = found["median"]
        row["energy"] = found["energy_mse"]
        target = TARGET[system]
        codes = model.encode(data.test)
        for name, linear in (("probe", True), ("inferred", False)):
            error = model.probe(target, linear=linear)(codes) - data.test.params[target]
            row[name] = float(np.mean(error**2))
    return row | refined(model, data.test, (4, 8, 16) if "interpolate" in tasks else ())


def refined(
    model: AbstractEstimator, truth: Trajectories, factors: tuple[int, ...], name: str = ""
) -> dict[str, float]:
    """Errors between known states, beside the splines that need no training."""
    assert truth.system is not None
    slopes = system_slopes(dhn.get_system(truth.system))
    found = {}
    for factor in factors:
        sparse = truth.resample(factor)
        try:
            fine = model.interpolate(sparse, factor)
        except UserError:
            break
        rivals = {
            "spline": cubic_spline(sparse, factor),
            "hermite": hermite_spline(sparse, factor, slopes),
        }
        for kind, states in {"interpolation": fine, **rivals}.items():
            found[f"{kind}_{factor}{name}"] = compare(states, truth).summary()["mse"]
    return found


SHOWN = (
    "completion", "completion_median", "energy", "probe", "inferred",
    *(f"{kind}_{case}" for case in ("4", "8", "16", "4_seen", "4_unseen")
      for kind in ("interpolation", "spline", "hermite")),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--budget", default="1m", help="training time of each model: 1m, 5m, ...")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--systems", default=",".join(TARGET))
    parser.add_argument("--half", action="store_true", help="the paper's interpolation protocol")
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--keep", type=Path, help="folder of trained models")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = []
    for system in args.systems.split(","):
        data = Data(
            dhn.simulate(system, trajectories=1000, seed=0)[:, : HALF if args.half else None],
            dhn.simulate(system, trajectories=200, seed=1),
        )
        for label in args.models.split(","):
            for seed in range(args.seeds):
                name = f"{system}-{label}-{args.budget}{'-half' * args.half}-{seed}.dhn"
                kept = args.keep / name if args.keep else None
                model = trained(label, data, seed, seconds("budget", args.budget), args.clock, kept)
                row = {"model": label, "system": system, "seed": seed}
                row |= measure(model, system, data, args.tasks)
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
