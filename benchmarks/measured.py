"""Forecasts of measured data: DHN beside HNN, a vanilla network, a linear model and persistence.

    dhn import track.txt ... --split 0.6,0.2,0.2 -o track.npz
    python benchmarks/measured.py track-train.npz --budget 1m --observe 32

Every DATA is the training file of `dhn import --split`; the validation and test files lie beside
it. All networks train for the same time on the same states. Errors are root mean squares of q in
the data's units, on the test part (`--part validation` to choose settings by), from as many
starting points as it has, at fractions of the period of the training data; everyone sees the same
`--observe` states before. Coverage is that of DHN's bands, which are set on the validation part.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from dhn.cli.arguments import seconds
from dhn.cli.sources import sibling
from dhn.cli.train import named_values
from dhn.estimator import AbstractEstimator
from dhn.evaluation.trial import MARKS, Trial, try_out
from dhn.evaluation.uncertainty import coverage, crps
from dhn.files import read
from dhn.reproduction.estimators import make_estimator
from dhn.trajectories import Trajectories
from dhn.trajectories.period import characteristic_period

MODELS = ("hnn", "vanilla", "dhn")
OF_DHN: dict[str, Any] = {}


def trained(
    kind: str, parts: dict[str, Trajectories], args: argparse.Namespace
) -> AbstractEstimator:
    """A model, or as many as an ensemble has, after the given time on the training part."""
    train = parts["train"]
    options = named_values(tuple(args.set), "--set") | {"seed": args.seed}
    if kind == "dhn":
        options = {**OF_DHN, **options, **named_values(tuple(args.dhn), "--dhn")}
    elif any(train.angles):
        options = {"angles": "periodic", **options}
    models = []
    for number in range(args.ensemble):
        model = make_estimator(kind, "default", {**options, "seed": args.seed + number})
        models.append(model.fit(train, budget=seconds(args.budget) / args.ensemble))
    whole = models[0].joined_by(models[1:])
    whole.calibrate(parts.get("validation"), observe=args.observe)
    return whole


def measure(path: Path, args: argparse.Namespace) -> dict[str, Any]:
    """All rows of one data set."""
    parts = {"train": read(path)}
    for part in ("validation", "test"):
        other = sibling(path, part)
        if other is not None:
            parts[part] = read(other)
    train, held = parts["train"], parts[args.part]
    period = characteristic_period(train)
    found: dict[str, Any] = {
        "data": path.stem.removesuffix("-train"),
        "period": period,
        "time_step": train.time_step,
        "observed": args.observe,
        "rms": {},
    }
    if period is None:
        raise SystemExit(f"{path}: no period can be told from the training data")
    ahead = round(max(MARKS.values()) * period / train.time_step)
    for kind in args.models.split(","):
        model = trained(kind, parts, args)
        trial = try_out(
            model, held, train=train, validation=parts.get("validation"),
            observe=args.observe, ahead=ahead, samples=args.samples, seed=args.seed,
        )  # fmt: skip
        found["forecasts"] = len(trial.truth)
        found["rms"] |= {rival.name: errors(trial, rival.metrics) for rival in trial.others}
        found["rms"][kind] = errors(trial, trial.metrics)
        found[f"{kind} steps"] = model.trained.summary["steps"]
        if kind == "dhn":
            found["coverage"] = coverage(trial.prediction, trial.truth)
            found["crps"] = crps(trial.prediction, trial.truth)
    return found


def errors(trial: Trial, metrics: Any) -> dict[str, float]:
    assert trial.period is not None
    step = trial.truth.time_step
    return {
        name: trial.error(metrics, max(1, round(share * trial.period / step)))
        for name, share in MARKS.items()
    }


def show(found: dict[str, Any]) -> None:
    states = found["period"] / found["time_step"]
    print(
        f"\n{found['data']}: period {found['period']:.3g} ({states:.0f} states), "
        f"{found['observed']} states seen, {found['forecasts']} forecasts"
    )
    print(f"{'RMS error of q':<16}" + "".join(f"{name:>13}" for name in MARKS))
    for name, row in found["rms"].items():
        print(f"{name:<16}" + "".join(f"{row[mark]:>13.4g}" for mark in MARKS))
    if "coverage" in found:
        shares = ", ".join(f"{name} band holds {x:.0%}" for name, x in found["coverage"].items())
        print(f"DHN's {shares}; CRPS {found['crps']:.3g}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", type=Path, metavar="DATA-train.npz")
    parser.add_argument("--budget", default="1m", help="training time of each model: 1m, 5m, ...")
    parser.add_argument("--observe", type=int, default=32)
    parser.add_argument("--part", default="test", choices=("validation", "test"))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--ensemble", type=int, default=1, help="models that share the budget")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--dhn", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = []
    for path in args.data:
        rows.append(measure(path, args))
        if not args.json:
            show(rows[-1])
    if args.json:
        print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
