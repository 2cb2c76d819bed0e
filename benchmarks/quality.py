"""Ablation of the default: form of the Hamiltonian map, blocks and denoising, at equal time.

    python benchmarks/quality.py --seeds 3 --budget 1m
    python benchmarks/quality.py --budget 30s --system single_pendulum --variants linked-b1
    python benchmarks/quality.py --seeds 3 --known docs/lab/defaults.json --print

Every variant is trained five times a seed, each time for the same processor time of one core: on
1000 trajectories of 129 states with a fixed start or random ones, clean or with 1 % or 5 % noise,
and on 30 with random starts. Eight regimes are read off these models on 100 validation trajectories
(40 for the long horizon), whose seeds no other benchmark reports. Errors are mean squares of
q / (pi/2) over unknown states against the truth, the median over trajectories. A forecast of ten
times the horizon has blown up where its energy is off by more than the motion exchanges.

One parameter varies, so codes have one number and are not searched for. Training steps are compiled
before the clock starts. One file a cell goes into `--out`; cells found
there are not measured again, so that a run may be stopped and continued. `--known` adds cells of an
earlier run and `--collect` writes all of them into one file.
"""

import argparse
import json
import math
import warnings
from pathlib import Path
from typing import Any

import jax.random as jr
import numpy as np

import dhn
from dhn.blocks import StateBlock
from dhn.checks import seconds
from dhn.evaluation.metrics import energy, exchanged_energy
from dhn.reconstruct.forecast import forecast
from dhn.trajectories import Trajectories

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "linked-b1": ("default", {}),
    "blocks": ("blocks", {}),
    "linked-b2": ("default", {"block_size": 2}),
    "paired-b2": ("default", {"block_size": 2, "linked": False}),
    "blocks-b1": ("blocks", {"block_size": 1}),
    "blocks-b4": ("blocks", {"block_size": 4, "stride": 2}),
    "blocks-mixed": ("blocks", {"mask": "mixed"}),
    "blocks-random": ("blocks", {"mask": "random"}),
    "blocks-between": ("blocks", {"mask": "superresolution"}),
    "averaged": ("default", {"average": 0.9995, "final_learning_rate": 0.05}),
    "transformer": ("transformer", {}),
}
"""Name -> (preset, options). `blocks` is the candidate with every part: taking denoising away gives
paired-b2, the second network (and with it denoising) linked-b2, blocks of states blocks-b1. Three
specialists are beside blocks-mixed: forecasts are blocks, gaps blocks-random, interpolation
blocks-between."""
CODES = {"latent_size": 1, "code_search": 0.0}
SETS: dict[str, dict[str, Any]] = {
    "fixed": {},
    "random": {"random": True},
    "noise5": {"random": True, "noise": 0.05},
    "few": {"random": True, "count": 30},
    "noise1": {"random": True, "noise": 0.01},
}
REGIMES = {
    "fixed": "fixed start", "random": "random starts", "noise1": "1 % noise", "noise5": "5 % noise",
    "few": "30 traj.", "interpolation": "every 8th", "gaps": "random tenth",
}  # fmt: skip
OBSERVED, STEPS, LONG = 16, 128, 1280
TRAIN_SEED, CHECK_SEED = 7000, 8000
"""First seeds of training and validation trajectories, apart from those of reported test sets."""
CHECKED, CHECKED_LONG = 100, 40


def simulated(
    system: str, count: int, seed: int, *, random: bool = False, noise: float = 0.0,
    steps: int = STEPS,
) -> Trajectories:  # fmt: skip
    initial = {}
    for angle in dhn.get_system(system).coordinates if random else ():
        initial |= {angle: (-math.pi / 2, math.pi / 2), f"v_{angle}": (-0.5, 0.5)}
    return dhn.simulate(system, count, seed=seed, steps=steps, initial=initial, noise=noise)


def errors(found: Trajectories, truth: Trajectories) -> dict[str, float]:
    """Of the states that were not known, each trajectory by itself."""
    square = ((found.q - truth.q) / (np.pi / 2)) ** 2
    hidden = ~np.asarray(found.known)
    each = np.array([e[h].mean() for e, h in zip(square, hidden, strict=True)])
    each = np.where(np.isfinite(each), each, np.inf)
    return {
        "median": float(np.median(each)),
        "mean": float(min(each.mean(), 1e9)),
        "over_1e-2": int((each > 1e-2).sum()),
    }


def completion(model: dhn.DHN, seen: Trajectories, truth: Trajectories) -> dict[str, float]:
    return errors(model.forecast(seen[:, :OBSERVED], truth.states - OBSERVED), truth)


def gaps(model: dhn.DHN, truth: Trajectories) -> dict[str, float]:
    known = np.random.default_rng(0).random(truth.q.shape[:2]) < 0.1
    known[:, [0, -1]] = True

    def hidden(x):
        return np.where(known[..., None], x, np.nan)

    asked = truth.replace(q=hidden(truth.q), p=hidden(truth.p), known=known)
    found = model.reconstruct(asked).trajectories
    return errors(found.replace(known=known), truth)


def long_horizon(model: dhn.DHN, truth: Trajectories) -> dict[str, float]:
    """Rolled out by the bare model from the code and states of the first 16."""
    trained, d = model.trained, truth.dim
    posterior = model.posterior(truth[:, :OBSERVED])
    context = StateBlock(posterior.states[..., :d], posterior.states[..., d:])
    ahead = forecast(trained.forecaster, context, posterior.codes, LONG, jr.key(0))
    q, p = trained.scaler.inverse(np.asarray(ahead.q), np.asarray(ahead.p))
    true = truth[:, OBSERVED : OBSERVED + LONG]
    got, want = energy(true.replace(q=q, p=p)), energy(true)
    assert got is not None and want is not None
    off = np.abs(got - want) / exchanged_energy(true)[:, None]
    off = np.where(np.isfinite(off), off, np.inf)
    return {"blow_ups": int((off > 1).any(1).sum()), "median": float(np.median(off.mean(1)))}


def measure(system: str, variant: str, data: str, seed: int, budget: float) -> dict[str, Any]:
    """Train one variant on one set and answer the questions that belong to it."""
    settings = dict(SETS[data])
    count = settings.pop("count", 1000)
    train = simulated(system, count, TRAIN_SEED + seed, **settings)
    preset, options = VARIANTS[variant]
    options = {**CODES, **options, "seed": seed, "clock": "processor"}
    # Compiles the steps: clean data of the same shape.
    clean = simulated(system, count, TRAIN_SEED, random=True) if "noise" in settings else train
    dhn.DHN(preset, **options).fit(clean, steps=1)
    model = dhn.DHN(preset, **options)
    model.fit(train, budget=budget)
    truth = simulated(system, CHECKED, CHECK_SEED + seed, random=settings.get("random", False))
    seen = simulated(system, CHECKED, CHECK_SEED + seed, **settings)
    found: dict[str, Any] = {data: completion(model, seen, truth)}
    if data == "fixed":
        found["interpolation"] = errors(model.interpolate(truth.resample(8), 8), truth)
        found["gaps"] = gaps(model, truth)
    if data == "random":
        far = simulated(system, CHECKED_LONG, CHECK_SEED + seed, random=True, steps=OBSERVED + LONG)
        found["long"] = long_horizon(model, far)
    row = {"system": system, "variant": variant, "set": data, "seed": seed, "budget": budget}
    record = {"steps": model.record["steps"], "seconds": round(model.record["seconds"], 1)}
    return {**row, **record, "parameters": model.parameters, "found": found}


def name_of(row: dict[str, Any]) -> str:
    return f"{row['system']}-{row['budget']:g}s-{row['variant']}-{row['set']}-{row['seed']}"


def show(rows: list[dict[str, Any]], system: str, budget: float) -> None:
    """Geometric mean over seeds, with the smallest and largest, and blow-ups of all seeds."""
    mine = [row for row in rows if row["system"] == system and row["budget"] == budget]
    header = [f"{'variant':<13}", *(f"{title:<26}" for title in REGIMES.values())]
    print(f"\n{system}, {budget:g} s of processor time a training; medians: mean (least .. most)")
    print("".join(header) + f"{'ten horizons':<16}energy off  steps")
    for variant in VARIANTS:
        cells = [row for row in mine if row["variant"] == variant]
        if not cells:
            continue
        line = f"{variant:<13}"
        for regime in REGIMES:
            values = [row["found"][regime]["median"] for row in cells if regime in row["found"]]
            text = "-"
            if values:
                text = f"{np.exp(np.mean(np.log(values))):.1e}"
                text += f" ({min(values):.1e}..{max(values):.1e})" if len(values) > 1 else ""
            line += f"{text:<26}"
        far = [row["found"]["long"] for row in cells if "long" in row["found"]]
        blown = f"{sum(x['blow_ups'] for x in far)} of {CHECKED_LONG * len(far)}" if far else "-"
        off = f"{np.exp(np.mean(np.log([x['median'] for x in far]))):.1e}" if far else "-"
        steps = [row["steps"] for row in cells if row["set"] == "fixed"]
        print(f"{line}{blown:<16}{off:<12}{int(np.mean(steps)) if steps else '-'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--budget", default="1m", help="processor time of each training")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--system", default="double_pendulum")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--out", type=Path, default=Path("ablation"), help="folder of the cells")
    parser.add_argument("--known", type=Path, help="cells of an earlier run")
    parser.add_argument("--collect", type=Path, help="write all cells into this file")
    parser.add_argument("--print", action="store_true", help="measure nothing more")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    budget = seconds("budget", args.budget)
    done = json.loads(args.known.read_text()) if args.known else []
    done += [json.loads(path.read_text()) for path in sorted(args.out.glob("*.json"))]
    rows = {name_of(row): row for row in done}
    for seed in range(0 if args.print else args.seeds):
        for data in args.sets.split(","):
            for variant in args.variants.split(","):
                row = {"system": args.system, "variant": variant, "set": data, "seed": seed}
                name = name_of({**row, "budget": budget})
                # Also cells that another process has finished meanwhile.
                if (args.out / f"{name}.json").exists():
                    rows[name] = json.loads((args.out / f"{name}.json").read_text())
                if name in rows:
                    continue
                rows[name] = measure(**{k: row[k] for k in ("system", "variant", "seed")},
                                     data=data, budget=budget)  # fmt: skip
                args.out.mkdir(parents=True, exist_ok=True)
                (args.out / f"{name}.json").write_text(json.dumps(rows[name]))
                print(f"{name}: {rows[name]['steps']} steps, {json.dumps(rows[name]['found'])}",
                      flush=True)  # fmt: skip
    for system, spent in sorted({(row["system"], row["budget"]) for row in rows.values()}):
        show(list(rows.values()), system, spent)
    if args.collect:
        text = ",\n".join(json.dumps(rows[name]) for name in sorted(rows))
        args.collect.write_text(f"[\n{text}\n]\n")


if __name__ == "__main__":
    main()
