"""The models in the package: train them, and measure them on fresh trajectories.

    python benchmarks/pretrained.py train --budget 4m      # all systems, or name some
    python benchmarks/pretrained.py measure                # their errors again
    python benchmarks/pretrained.py table                  # the recorded errors

Each system is simulated with random starts and parameters from the ranges below (the system's own
where none are given), 2000 trajectories of 129 states. Errors are of 200 fresh trajectories of
which 16 states are seen and 112 predicted. The budget is processor time of training alone.
"""

import argparse
import dataclasses
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import dhn
from dhn.checks import seconds
from dhn.estimator import TrainedModel
from dhn.estimator.answers import hidden
from dhn.estimator.pretrained import FOLDER, facts, names, pretrained
from dhn.estimator.storage import FILE, save
from dhn.evaluation.metrics import compare, normal_units
from dhn.reconstruct.guess import Examples
from dhn.reconstruct.posterior import Result

TESTS, OBSERVED, STATES = 200, 16, 128
MOST_BYTES = 118_000
"""Of one saved model; the package promises 120 kB."""
CODES = 256
"""Codes kept for the prior and the probe: 8 times what a local Gaussian is made of."""
SAYS = ("params", "initial")
"""Ranges that are left, one after the other, to count the answers that say so."""
STRAY = 100.0
"""Times the median error."""

QUARTER_TURN = (-1.5707963267948966, 1.5707963267948966)
SWING = {"theta": (-2.4, 2.4), "v_theta": (-0.5, 0.5)}
DOUBLE = {"theta1": QUARTER_TURN, "theta2": QUARTER_TURN, "v_theta1": (-0.5, 0.5),
          "v_theta2": (-0.5, 0.5)}  # fmt: skip
TRIPLE = {f"theta{i}": (-0.8, 0.8) for i in (1, 2, 3)}
NEAR = (-0.05, 0.05)
ELLIPSES = {"x1": (-0.55, -0.45), "y1": NEAR, "x2": (0.45, 0.55), "y2": NEAR, "v_x1": NEAR,
            "v_x2": NEAR, "v_y1": (-0.65, -0.5), "v_y2": (0.5, 0.65)}  # fmt: skip
INITIAL = {
    "single_pendulum": SWING,
    "double_pendulum": DOUBLE,
    "triple_pendulum": TRIPLE,
    "kepler": ELLIPSES,
}
"""Starts of systems whose own are all alike; the others start at random by themselves."""


def ranges(name: str) -> dict[str, dict[str, list[float]]]:
    """Parameter and start ranges that a system's model is trained on; what is fixed is left out."""
    system = dhn.get_system(name)
    initial = {**system.initial, **INITIAL.get(name, {})}
    parts = {"params": system.params, "initial": initial}
    return {
        part: {key: list(x) for key, x in values.items() if isinstance(x, tuple)}
        for part, values in parts.items()
    }


def simulated(name: str, count: int, seed: int, known: dict | None = None) -> dhn.Trajectories:
    stated = known or ranges(name)
    params, initial = ({k: tuple(x) for k, x in stated[part].items()} for part in SAYS)
    return dhn.simulate(name, count, seed=seed, steps=STATES, params=params, initial=initial)


def train(name: str, budget: float, seed: int, count: int) -> None:
    """Train one model, measure it, leave it in the package."""
    data = simulated(name, count, 2 * seed)
    model = dhn.DHN(seed=seed, clock="processor").fit(data, budget=budget, calibrate=True)
    record = {
        "command": f"python benchmarks/pretrained.py train {name} --budget {budget:g}s "
        f"--seed {seed} --trajectories {count}",
        "system": name,
        "seed": seed,
        "states": STATES + 1,
        **ranges(name),
    }
    found = dataclasses.replace(
        model.trained, ids=tuple(map(str, range(count))),
        summary={**model.trained.summary, "pretrained": record},
    )  # fmt: skip
    found = thinned(found)
    found.summary["pretrained"]["errors"] = measure(found, 2 * seed + 1)
    save(found, FOLDER / name)
    print(name, found.summary, flush=True)


def thinned(found: TrainedModel) -> TrainedModel:
    """The same model with fewer codes and examples, so that it is small on disk.

    Example trajectories are only first guesses and bounds of what training covered: half
    precision is enough, and those at the bounds are kept first.
    """
    varying = next(x for x in found.params.values() if np.ptp(x) > 0)
    rows = np.argsort(varying)[np.linspace(0, len(varying) - 1, CODES).astype(int)]
    prior = found.prior
    kept = np.linspace(0, len(prior.codes) - 1, min(CODES, len(prior.codes))).astype(int)
    small = dataclasses.replace(
        found,
        codes=found.codes[rows],
        ids=tuple(found.ids[i] for i in rows),
        params={name: x[rows] for name, x in found.params.items()},
        prior=dataclasses.replace(prior, codes=prior.codes[kept]),
    )
    states = found.examples.states
    flat = states.reshape(len(states), -1, states.shape[2])
    bounds = np.concatenate([np.nanmax(flat, 1).argmax(0), np.nanmin(flat, 1).argmin(0)])
    order = list(dict.fromkeys([*bounds.tolist(), *range(len(states))]))
    for count in range(len(order), 0, -1):
        some = Examples(
            found.examples.momentum.astype(np.float32),
            states[order[:count]].astype(np.float16),
            found.examples.codes[order[:count]],
            found.examples.sections,
        )
        smaller = dataclasses.replace(small, examples=some)
        if bytes_on_disk(smaller) <= MOST_BYTES:
            return smaller
    raise SystemExit(f"{found.system}: larger than {MOST_BYTES} bytes without any example")


def bytes_on_disk(found: TrainedModel) -> int:
    with tempfile.TemporaryDirectory() as folder:
        save(found, folder)
        # Measured errors are added to the header afterwards.
        return (Path(folder) / FILE).stat().st_size + 1500


def measure(model: TrainedModel, seed: int) -> dict[str, float]:
    """Errors of completing fresh trajectories, and how often answers outside the ranges say so."""
    stated = model.summary["pretrained"]
    name, known = str(model.system), {part: stated[part] for part in SAYS}
    data = simulated(name, TESTS, seed, known)
    begun = time.process_time()
    answer = model.reconstruct(hidden(data, OBSERVED))
    took = time.process_time() - begun
    found = answer.trajectories
    errors = compare(found, data)
    summary, each = errors.summary(), errors.per_trajectory
    values: dict[str, float] = {
        "median": summary["median"],
        "mean": summary["mse"],
        "strays": int((each > STRAY * np.median(each)).sum()),
        "energy_drift": summary["energy_drift"],
        "flagged": int(sum(x != Result.OK for x in answer.result)),
        "cpu_seconds": took,
    }
    unit = normal_units(data)
    values["rms_last"] = float(
        np.sqrt(np.median((((found.q - data.q) / unit)[:, -1] ** 2).mean(-1)))
    )
    for level, low, high in ((50, 0.25, 0.75), (90, 0.05, 0.95)):
        inside = (data.q >= found.q_quantiles[low]) & (data.q <= found.q_quantiles[high])
        values[f"bands_{level}"] = float(inside[:, OBSERVED:].mean())
    for target, (estimate, error) in answer.parameters.items():
        off = estimate - data.params[target]
        width = np.ptp(np.array(known["params"][target]))
        values[f"parameter/{target}"] = float(np.median(np.abs(off)))
        values[f"share/{target}"] = float(np.median(np.abs(off)) / width)
        values[f"two_errors/{target}"] = float((np.abs(off) <= 2 * error).mean())
    for part in SAYS:
        outside = {**known, part: {k: beyond(x) for k, x in known[part].items()}}
        try:
            beyond_range = simulated(name, 50, seed, outside)
        except dhn.UserError:  # beyond its range the system has no bounded motion
            continue
        results = model.reconstruct(hidden(beyond_range, OBSERVED)).result
        values[f"says/{part}"] = float(np.mean([x != Result.OK for x in results]))
    return values


def beyond(known: list[float]) -> list[float]:
    """Values above a range, 1.5 to 1.65 times its half-width from the middle."""
    middle, half = np.mean(known), np.ptp(known) / 2
    return [float(middle + 1.5 * half), float(middle + 1.65 * half)]


def measured_again(name: str) -> None:
    """Replace the recorded errors of a model, after a change of the engine."""
    model = pretrained(name).trained
    model.summary["pretrained"]["errors"] = measure(model, 2 * facts(name)["seed"] + 1)
    save(model, FOLDER / name)


def table() -> str:
    """The recorded errors as docs/pretrained.md shows them."""
    heads = ("model", "median", "mean", "strays", "bands hold", "parameter", "doubted",
             "outside: parameter", "outside: start", "kB")  # fmt: skip
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in names():
        known = facts(name)
        row = known["errors"]
        cells = (
            f"`{name}`", f"{row['median']:.1e}", f"{row['mean']:.1e}", row["strays"],
            f"{row['bands_50']:.0%} / {row['bands_90']:.0%}",
            ", ".join(
                f"{x} {row[f'parameter/{x}']:.1e} ({row[f'share/{x}']:.2%})"
                for x in known["params"]
            ),
            row["flagged"],
            *(f"{row[x]:.0%}" if x in row else "unbound" for x in ("says/params", "says/initial")),
            f"{known['bytes'] / 1000:.0f}",
        )  # fmt: skip
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("task", choices=("train", "measure", "table"))
    parser.add_argument("systems", nargs="*", help="all by default")
    parser.add_argument("--budget", default="4m", help="processor time of each training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trajectories", type=int, default=2000, help="simulated for training")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in args.systems or dhn.SYSTEMS:
        if args.task == "train":
            shutil.rmtree(FOLDER / name, ignore_errors=True)
            train(name, seconds("budget", args.budget), args.seed, args.trajectories)
        elif args.task == "measure":
            measured_again(name)
    print(table())


if __name__ == "__main__":
    sys.exit(main())
