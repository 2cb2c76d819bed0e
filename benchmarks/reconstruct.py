"""One engine, every task: errors, bands, strays and times of reconstruction.

    python benchmarks/reconstruct.py --seeds 3 --budget 1m --fresh --keep FOLDER

Models of one minute (1000 clean training trajectories) reconstruct 200 test trajectories from
different known numbers. Errors are mean squares of q / (pi/2) over unknown coordinates, per
trajectory; a stray is 100 times the median or worse. Coverage counts unknown coordinates inside the
bands of the bare posterior and of the calibrated one; a star marks calibrated coverage outside the
99 % binomial interval for the number of trajectories. "Parameters" is the share of trajectories
whose constants lie within two standard errors. "Ratio" is the error over that of a reference: under
noise the medians, against the true equations, whose constants and start are fitted to the same
noisy states; on the unseen stretch the means, against a cubic spline. Times are seconds of the
second call and of the first one, by the processor and (in brackets) by the clock; with `--fresh`
the first call is in a new process without compiled programs. The second table compares the smoother
with the paper's denoising, for a model of the preset `blocks`.

Models and one JSON file a cell are kept in FOLDER; a run that was interrupted goes on, and
`--so-far` prints the table of what is there.
"""

import argparse
import dataclasses
import json
import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

import dhn
from dhn.checks import seconds
from dhn.estimator.asking import answer, ask, bands_for
from dhn.reconstruct.bands import Bands, horizons
from dhn.reproduction.baselines.parametric import fit_system
from dhn.reproduction.baselines.splines import cubic_spline
from dhn.trajectories import Trajectories

SYSTEMS = ("single_pendulum", "double_pendulum")
TESTS = 200
STRAY = 100.0
"""Times the median."""
FITTED = 40
"""Trajectories to which the true equations are fitted, one by one."""
DENOISED = ("first 16", "every 4", "every 8", "a random tenth", "middle half lost")
"""Tasks that the paper's solver can answer: whole states."""


HALF = 64
"""Last state of the seen stretch and first of the unseen one."""


def every(step: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda shape: np.broadcast_to((np.arange(shape[1]) % step == 0)[:, None], shape)


def first(count: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda shape: np.broadcast_to((np.arange(shape[1]) < count)[:, None], shape)


def random_tenth(shape):
    found = np.random.default_rng(0).random(shape[:2]) < 0.1
    found[:, [0, -1]] = True
    return np.broadcast_to(found[..., None], shape)


def middle_lost(shape):
    time = np.arange(shape[1])
    kept = (time < shape[1] // 4) | (time >= 3 * shape[1] // 4)
    return np.broadcast_to(kept[:, None], shape)


@dataclasses.dataclass(frozen=True)
class Task:
    name: str
    known: Callable
    """Shape (n, T, d) -> which coordinates are known."""
    momenta: bool = True
    noise: float = 0.0
    angles: int | None = None
    """How many coordinates are ever known; all by default."""
    parameters: bool = False
    """Whether the standard errors of parameters are judged."""
    data: str = "fixed"
    """Starts of training and test trajectories: "fixed" (the paper's), "random", or "half": trained
    on the first half of trajectories with the fixed start, tested on the second."""


TASKS = (
    Task("first 16", first(16), parameters=True),
    *(Task(f"every {k}", every(k)) for k in (4, 8, 16, 32)),
    Task("first 16, 1 % noise", first(16), noise=0.01, parameters=True),
    Task("first 16, 5 % noise", first(16), noise=0.05),
    Task("first 16, 1 % noise, random", first(16), noise=0.01, parameters=True, data="random"),
    Task("first 16, 5 % noise, random", first(16), noise=0.05, data="random"),
    Task("unseen stretch, every 4", every(4), data="half"),
    Task("positions", every(1), momenta=False, parameters=True),
    Task("positions, every 8", every(8), momenta=False),
    Task("a random tenth", random_tenth),
    Task("middle half lost", middle_lost),
    Task("one angle of two", every(1), momenta=False, angles=1),
)


def trajectories(system: str, count: int, seed: int, starts: str, noise: float = 0.0):
    """Simulated with the paper's start, or with random angles and velocities."""
    initial = {}
    if starts == "random":
        for name in dhn.get_system(system).coordinates:
            initial |= {name: (-math.pi / 2, math.pi / 2), f"v_{name}": (-0.5, 0.5)}
    return dhn.simulate(system, count, seed=seed, steps=128, initial=initial, noise=noise)


def question(task: Task, test: Trajectories, noisy: Trajectories) -> Trajectories:
    """The test trajectories with everything hidden that the task does not show."""
    source = noisy if task.noise else test
    known = np.array(task.known(test.q.shape))
    if task.angles is not None:
        known[..., task.angles :] = False
    assert source.p is not None
    return source.replace(
        q=np.where(known, source.q, np.nan),
        p=np.where(known, source.p, np.nan) if task.momenta else None,
        known=known.any(-1),
        noise=source.noise if task.noise else None,
    )


def errors(found: Trajectories, test: Trajectories, hidden: np.ndarray) -> np.ndarray:
    """(n,) mean square of q / (pi/2) over the hidden coordinates; of p if all q are known."""
    error = (found.q - test.q) / (np.pi / 2)
    if not hidden.any():
        assert found.p is not None and test.p is not None
        error, hidden = (found.p - test.p) / (np.pi / 2), np.ones(hidden.shape, bool)
    return np.array([np.mean(e[h] ** 2) for e, h in zip(error, hidden, strict=True)])


def coverage(model: dhn.DHN, asked: Trajectories, posterior, test: Trajectories) -> dict:
    """Shares of hidden numbers inside the bare and the calibrated bands."""
    scaler, d = model.trained.scaler, test.dim
    hidden, truth, part = ~asked.known_q, scaler.transform_q(test.q), slice(0, d)
    if not hidden.any():
        truth, part = scaler.transform_p(test.p), slice(d, 2 * d)
        hidden = np.ones(truth.shape, bool)
    scaled = ask(model.trained, asked)
    chosen, place = bands_for(model.trained, scaled), horizons(scaled.known)
    share = {}
    for name, bands in (("bare", Bands.gaussian()), ("calibrated", chosen)):
        levels = bands.quantiles(posterior.states, posterior.deviation, place)
        levels = {level: x[..., part] for level, x in levels.items()}
        inside = [(levels[a] <= truth) & (truth <= levels[1 - a]) for a in (0.25, 0.05)]
        share[name] = [float(x[hidden].mean()) for x in inside]
    return share


def summary(each: np.ndarray) -> dict:
    return {
        "median": float(np.median(each)),
        "mean": float(each.mean()),
        "worst": float(each.max()),
        "strays": int((each > STRAY * np.median(each)).sum()),
    }


def timed(call: Callable[[], Any]) -> tuple[Any, list[float]]:
    """What a call returns, and its seconds by the processor and by the clock."""
    begun = time.process_time(), time.perf_counter()
    found = call()
    return found, [time.process_time() - begun[0], time.perf_counter() - begun[1]]


def measure(model: dhn.DHN, task: Task, test: Trajectories, noisy: Trajectories, system) -> dict:
    asked = question(task, test, noisy)
    _, first_call = timed(lambda: model.reconstruct(asked))
    found, warm = timed(lambda: model.reconstruct(asked))
    posterior = answer(model.trained, ask(model.trained, asked))
    # Known noisy states are left out, to compare with forecasts.
    each = errors(found.trajectories, test, ~asked.known_q)
    row = summary(each) | coverage(model, asked, posterior, test)
    row |= {"not ok": int(posterior.poor.sum()), "warm": warm, "first": first_call}
    if task.parameters:
        row["parameters"] = {
            name: float(np.mean(np.abs(value - test.params[name]) <= 2 * error))
            for name, (value, error) in found.parameters.items()
        }
    if task.noise:
        seen = noisy[:FITTED, : int(asked.known[0].sum())]
        fitted = fit_system(seen, system, shooting=True).states(test.t)
        best = errors(fitted, test[:FITTED], ~asked.known_q[:FITTED])
        row["ratio"] = float(np.median(each[:FITTED]) / np.median(best))
    if task.data == "half":
        best = errors(cubic_spline(test[:, ::4], 4), test, ~asked.known_q)
        row["ratio"] = float(each.mean() / best.mean())
    return row


def compare(model: dhn.DHN, task: Task, test: Trajectories) -> dict:
    """Both solvers with one model."""
    asked = question(task, test, test)
    found = {}
    for solver in ("smooth", "denoise"):
        answered = model.reconstruct(asked, solver=solver)
        each = errors(answered.trajectories, test, ~asked.known_q)
        stuck = sum(result != 0 for result in answered.result)
        found[solver] = summary(np.nan_to_num(each, nan=np.inf)) | {"not ok": stuck}
    return found


def cell_file(keep: Path, system: str, seed: int, name: str, preset: str) -> Path:
    label = name.replace(" ", "_").replace(",", "").replace("%", "percent")
    return keep / f"{system}-{seed}-{preset}-{label}.json"


def cell(keep: Path, budget: str, system: str, seed: int, name: str, preset: str) -> dict:
    """One row, read from its file or measured."""
    if (file := cell_file(keep, system, seed, name, preset)).exists():
        return json.loads(file.read_text())
    task = next(task for task in TASKS if task.name == name)
    model = trained(keep, budget, system, seed, preset, task.data)
    stretch = slice(HALF if task.data == "half" else 0, None)
    test = trajectories(system, TESTS, 2 * seed + 1, task.data)[:, stretch]
    row = {"system": system, "seed": seed, "task": name, "preset": preset}
    if preset == "default":
        noisy = trajectories(system, TESTS, 2 * seed + 1, task.data, task.noise)[:, stretch]
        row |= measure(model, task, test, noisy, system)
    else:
        row |= compare(model, task, test)
    file.write_text(json.dumps(row))
    return row


def trained(keep: Path, budget: str, system: str, seed: int, preset: str, data: str) -> dhn.DHN:
    folder = keep / f"{system}-{seed}-{preset}-{data}"
    if (folder / "model.safetensors").exists():
        found = dhn.load(folder)
        assert isinstance(found, dhn.DHN)
        return found
    train = trajectories(system, 1000, 2 * seed, data)
    model = dhn.DHN(preset, seed=seed, clock="processor")
    model.fit(
        train[:, : HALF + 1] if data == "half" else train,
        budget=seconds("budget", budget),
        calibrate=True,
    )
    model.save(folder)
    return model


def in_new_process(keep: Path, budget: str, system: str, seed: int, name: str, preset: str) -> None:
    """The same cell where nothing has been compiled, for the time of a first call."""
    settings = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"}
    given = ["--keep", str(keep), "--budget", budget, "--cell", system, str(seed), name, preset]
    subprocess.run([sys.executable, __file__, *given], env=settings, check=True)


def show(row: dict) -> None:
    """One line while the benchmark runs."""
    line = f"{row['system']:16s} {row['seed']} {row['task']:28s} "
    if "smooth" in row:
        print(line + " ".join(f"{k} median {row[k]['median']:.1e}" for k in ("smooth", "denoise")),
              flush=True)  # fmt: skip
        return
    line += f"median {row['median']:.1e} strays {row['strays']} "
    line += f"bare {percent(row['bare'])} calibrated {percent(row['calibrated'])} "
    print(line + f"not ok {row['not ok']} {times(row)}", flush=True)


def percent(shares) -> str:
    return "/".join(f"{x:.0%}" for x in shares)


def times(row: dict) -> str:
    (warm, warm_wall), (first, first_wall) = row["warm"], row["first"]
    return f"{warm:.1f}, {first:.1f} ({warm_wall:.1f}, {first_wall:.1f})"


def unusual(shares, count: int) -> bool:
    """Whether coverage lies outside the 99 % binomial interval of so many trajectories."""
    for share, level in zip(shares, (0.5, 0.9), strict=True):
        low, high = binom.interval(0.99, count, level)
        if not low <= share * count <= high:
            return True
    return False


def table(rows: list[dict]) -> None:
    """Markdown: medians and worst cases over the seeds, strays and coverage pooled."""
    print("\n| known | median | mean | worst | strays | not ok | bare | calibrated | parameters "
          "| ratio | s warm, first |\n|---|---|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for system in SYSTEMS:
        for task in TASKS:
            some = [r for r in rows if (r["system"], r["task"]) == (system, task.name)]
            if not some:
                continue
            bare, fitted = (np.mean([r[k] for r in some], axis=0) for k in ("bare", "calibrated"))
            inside = [x for r in some for x in r.get("parameters", {}).values()]
            ratio = [r["ratio"] for r in some if "ratio" in r]
            columns = (
                f"{system.split('_')[0]}, {task.name}",
                f"{np.median([r['median'] for r in some]):.1e}",
                f"{np.median([r['mean'] for r in some]):.1e}",
                f"{max(r['worst'] for r in some):.1e}",
                f"{sum(r['strays'] for r in some)} of {TESTS * len(some)}",
                f"{sum(r['not ok'] for r in some)}",
                percent(bare),
                percent(fitted) + "*" * unusual(fitted, TESTS * len(some)),
                f"{np.mean(inside):.1%}" if inside else "",
                f"{np.median(ratio):.2f}" if ratio else "",
                times(max(some, key=lambda r: r["warm"][0])),
            )
            print(f"| {' | '.join(columns)} |")
    pooled = np.mean([row["calibrated"] for row in rows], axis=0)
    count = sum(unusual(row["calibrated"], TESTS) for row in rows)
    print(f"\nCalibrated bands, all cells: {pooled[0]:.1%} and {pooled[1]:.1%} inside; "
          f"{count} of {len(rows)} cells outside their binomial interval.")  # fmt: skip


def table_of_solvers(rows: list[dict]) -> None:
    """Markdown: the smoother beside the paper's denoising, the same model and question."""
    parts = ("median", "mean", "worst", "strays", "not ok")
    heads = [f"{solver}: {part}" for part in parts for solver in ("smooth", "denoise")]
    print(f"\n| known | {' | '.join(heads)} |\n|{'---|' * (1 + len(heads))}")
    for row in rows:
        cells = [row[solver][part] for part in parts for solver in ("smooth", "denoise")]
        text = [f"{x:.1e}" if isinstance(x, float) else str(x) for x in cells]
        print(f"| {row['system'].split('_')[0]}, {row['task']} | {' | '.join(text)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--systems", nargs="+", default=SYSTEMS, choices=SYSTEMS)
    parser.add_argument("--budget", default="1m")
    parser.add_argument("--keep", type=Path, required=True, help="folder for models and results")
    parser.add_argument("--fresh", action="store_true", help="each cell in a new process")
    parser.add_argument("--so-far", action="store_true", help="only print what FOLDER has")
    parser.add_argument("--cell", nargs=4, help="one cell: system, seed, task, preset")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    args.keep.mkdir(parents=True, exist_ok=True)
    if args.cell is not None:
        system, seed, name, preset = args.cell
        cell(args.keep, args.budget, system, int(seed), name, preset)
        return
    if args.so_far:
        table([json.loads(file.read_text()) for file in args.keep.glob("*-default-*.json")])
        return
    rows, compared = [], []
    for seed in range(args.seeds):
        for system in args.systems:
            for task in TASKS:
                if task.angles is not None and system == "single_pendulum":
                    continue
                where = (args.keep, args.budget, system, seed, task.name, "default")
                trained(args.keep, args.budget, system, seed, "default", task.data)
                if args.fresh and not cell_file(args.keep, *where[2:]).exists():
                    in_new_process(*where)
                rows.append(cell(*where))
                show(rows[-1])
    for system in args.systems:
        for name in DENOISED:
            compared.append(cell(args.keep, args.budget, system, 0, name, "blocks"))
            show(compared[-1])
    table(rows)
    table_of_solvers(compared)


if __name__ == "__main__":
    main()
