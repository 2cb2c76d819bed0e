"""One engine, every task: errors, bands, strays and times of reconstruction.

    python benchmarks/reconstruct.py --seeds 3 --budget 1m --keep FOLDER

Models of one minute (1000 training trajectories, both pendulums) reconstruct 200 test trajectories
from different known numbers. Errors are mean squares of q / (pi/2) over unknown coordinates, per
trajectory; a stray is 100 times the median or worse. Coverage counts unknown coordinates inside the
bands of the bare posterior and of the calibrated one. Times are processor time: of the second call,
and of the first one, with `--fresh` in a new process without compiled programs. "Truth" is the
error over that of the true equations, whose constants and start are fitted to the same noisy
states. The rows with two solvers compare the smoother with the paper's denoising, for a model of
the preset `blocks`.

Models and one JSON file a cell are kept in FOLDER; a run that was interrupted goes on.
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import dhn
from dhn.checks import seconds
from dhn.estimator.asking import answer, ask, bands_for
from dhn.reconstruct.bands import Bands, horizons
from dhn.reproduction.baselines.parametric import fit_system
from dhn.trajectories import Trajectories

SYSTEMS = ("single_pendulum", "double_pendulum")
TESTS = 200
STRAY = 100.0
"""Times the median."""
FITTED = 40
"""Trajectories to which the true equations are fitted, one by one."""
DENOISED = ("first 16", "every 4", "every 8", "a random tenth", "middle half lost")
"""Tasks that the paper's solver can answer: whole states."""


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


TASKS = (
    Task("first 16", first(16), parameters=True),
    *(Task(f"every {k}", every(k)) for k in (4, 8, 16, 32)),
    Task("first 16, 1 % noise", first(16), noise=0.01, parameters=True),
    Task("first 16, 5 % noise", first(16), noise=0.05),
    Task("positions", every(1), momenta=False, parameters=True),
    Task("positions, every 8", every(8), momenta=False),
    Task("a random tenth", random_tenth),
    Task("middle half lost", middle_lost),
    Task("one angle of two", every(1), momenta=False, angles=1),
)


def question(task: Task, test: Trajectories, noisy: Trajectories) -> Trajectories:
    """The test trajectories with everything hidden that the task does not show."""
    source = noisy if task.noise else test
    known = np.array(task.known(test.q.shape))
    if task.angles is not None:
        known[..., task.angles :] = False
    momenta = known if task.momenta else np.zeros_like(known)
    return source.replace(
        q=np.where(known, source.q, np.nan),
        p=np.where(momenta, source.p, np.nan) if task.momenta else None,
        known=known.any(-1),
        noise=source.noise if task.noise else None,
    )


def errors(found: Trajectories, test: Trajectories, hidden: np.ndarray) -> np.ndarray:
    """(n,) mean square of q / (pi/2) over the hidden coordinates; of p if all q are known."""
    error = (found.q - test.q) / (np.pi / 2)
    if not hidden.any():
        error, hidden = (found.p - test.p) / (np.pi / 2), np.ones(hidden.shape, bool)
    return np.array([np.mean(e[h] ** 2) for e, h in zip(error, hidden, strict=True)])


def coverage(model: dhn.DHN, asked: Trajectories, posterior, test: Trajectories) -> dict:
    """Shares of hidden numbers inside the bare and the calibrated bands."""
    scaler, d = model.trained.scaler, test.dim
    hidden, truth, part = ~asked.known_q, scaler.transform_q(test.q), slice(0, d)
    if not hidden.any():
        truth, part = scaler.transform_p(test.p), slice(d, 2 * d)
        hidden = np.ones(truth.shape, bool)
    states, deviation = posterior.states[..., part], posterior.deviation[..., part]
    seen = np.concatenate([asked.known_q] * 2, axis=-1)
    chosen = bands_for(model.trained, ask(model.trained, asked))
    share = {}
    for name, bands in (("bare", Bands.gaussian()), ("calibrated", chosen)):
        levels = bands.quantiles(states, deviation, horizons(seen))
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


def measure(model: dhn.DHN, task: Task, test: Trajectories, noisy: Trajectories, system) -> dict:
    asked = question(task, test, noisy)
    begun = time.process_time()
    model.reconstruct(asked)
    first_call = time.process_time() - begun
    begun = time.process_time()
    found = model.reconstruct(asked)
    warm = time.process_time() - begun
    posterior = answer(model.trained, ask(model.trained, asked))
    # Known noisy states are left out, to compare with forecasts.
    each = errors(found.trajectories, test, ~asked.known_q)
    row = summary(each) | coverage(model, asked, posterior, test)
    row |= {"not ok": int(posterior.poor.sum()), "seconds": warm, "first": first_call}
    if task.parameters:
        row["parameters"] = {
            name: float(np.mean(np.abs(value - test.params[name]) <= 2 * error))
            for name, (value, error) in found.parameters.items()
        }
    if task.noise:
        seen = noisy[:FITTED, : int(asked.known[0].sum())]
        fitted = fit_system(seen, system, shooting=True).states(test.t)
        best = errors(fitted, test[:FITTED], ~asked.known_q[:FITTED])
        row["truth"] = float(np.median(each[:FITTED]) / np.median(best))
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
    return keep / f"{system}-{seed}-{preset}-{name.replace(' ', '_').replace(',', '')}.json"


def cell(keep: Path, budget: str, system: str, seed: int, name: str, preset: str) -> dict:
    """One row, read from its file or measured."""
    if (file := cell_file(keep, system, seed, name, preset)).exists():
        return json.loads(file.read_text())
    task = next(task for task in TASKS if task.name == name)
    model = trained(keep, budget, system, seed, preset)
    test = dhn.simulate(system, TESTS, seed=2 * seed + 1, steps=128)
    row = {"system": system, "seed": seed, "task": name, "preset": preset}
    if preset == "default":
        noisy = dhn.simulate(system, TESTS, seed=2 * seed + 1, steps=128, noise=task.noise)
        row |= measure(model, task, test, noisy, system)
    else:
        row |= compare(model, task, test)
    file.write_text(json.dumps(row))
    return row


def trained(keep: Path, budget: str, system: str, seed: int, preset: str) -> dhn.DHN:
    folder = (
        keep / f"{system}-{seed}" if preset == "default" else keep / f"{system}-{seed}-{preset}"
    )
    if (folder / "model.safetensors").exists():
        return dhn.load(folder)
    train = dhn.simulate(system, 1000, seed=2 * seed, steps=128)
    model = dhn.DHN(preset, seed=seed, clock="processor")
    model.fit(train, budget=seconds("budget", budget), calibrate=True)
    model.save(folder)
    return model


def in_new_process(keep: Path, budget: str, system: str, seed: int, name: str, preset: str) -> None:
    """The same cell where nothing has been compiled, for the time of a first call."""
    settings = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"}
    given = ["--keep", str(keep), "--budget", budget, "--cell", system, str(seed), name, preset]
    subprocess.run([sys.executable, __file__, *given], env=settings, check=True)


def show(row: dict) -> None:
    line = f"{row['system']:16s} {row['seed']} {row['task']:20s} "
    if "smooth" in row:
        for solver in ("smooth", "denoise"):
            part = row[solver]
            line += f"{solver} median {part['median']:.1e} mean {part['mean']:.1e} "
            line += f"not ok {part['not ok']} "
        return print(line, flush=True)
    bare, fitted = row["bare"], row["calibrated"]
    line += f"median {row['median']:.1e} mean {row['mean']:.1e} worst {row['worst']:.1e} "
    line += f"strays {row['strays']} bands {bare[0]:.0%}/{bare[1]:.0%} "
    line += f"calibrated {fitted[0]:.0%}/{fitted[1]:.0%} not ok {row['not ok']} "
    line += f"{row['seconds']:.1f} s, first {row['first']:.1f} s"
    line += "".join(f" {k} {v:.1%}" for k, v in row.get("parameters", {}).items())
    print(line + (f" truth {row['truth']:.2f}" if "truth" in row else ""), flush=True)
    return None


def table(rows: list[dict]) -> None:
    """Markdown: medians and worst cases over the seeds, strays and coverage pooled."""
    print("\n| known | median | mean | worst | strays | bare | calibrated | parameters | truth "
          "| seconds, first |\n|---|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    pooled = np.mean([row["calibrated"] for row in rows], axis=0)
    for system in SYSTEMS:
        for task in TASKS:
            some = [r for r in rows if (r["system"], r["task"]) == (system, task.name)]
            if not some:
                continue
            bare, fitted = (np.mean([r[k] for r in some], axis=0) for k in ("bare", "calibrated"))
            inside = [x for r in some for x in r.get("parameters", {}).values()]
            truth = [r["truth"] for r in some if "truth" in r]
            columns = (
                f"{system.split('_')[0]}, {task.name}",
                f"{np.median([r['median'] for r in some]):.1e}",
                f"{np.median([r['mean'] for r in some]):.1e}",
                f"{max(r['worst'] for r in some):.1e}",
                f"{sum(r['strays'] for r in some)} of {TESTS * len(some)}",
                f"{bare[0]:.0%}/{bare[1]:.0%}",
                f"{fitted[0]:.0%}/{fitted[1]:.0%}",
                f"{np.mean(inside):.1%}" if inside else "",
                f"{np.median(truth):.2f}" if truth else "",
                f"{max(r['seconds'] for r in some):.1f}, {some[0]['first']:.1f}",
            )
            print(f"| {' | '.join(columns)} |")
    print(f"\nCalibrated bands, all cells: {pooled[0]:.1%} and {pooled[1]:.1%} inside.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--budget", default="1m")
    parser.add_argument("--keep", type=Path, required=True, help="folder for models and results")
    parser.add_argument("--fresh", action="store_true", help="each cell in a new process")
    parser.add_argument("--cell", nargs=4, help="one cell: system, seed, task, preset")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    args.keep.mkdir(parents=True, exist_ok=True)
    if args.cell is not None:
        system, seed, name, preset = args.cell
        cell(args.keep, args.budget, system, int(seed), name, preset)
        return
    rows = []
    for seed in range(args.seeds):
        for system in SYSTEMS:
            trained(args.keep, args.budget, system, seed, "default")
            for task in TASKS:
                if task.angles is not None and system == "single_pendulum":
                    continue
                where = (args.keep, args.budget, system, seed, task.name, "default")
                if args.fresh and not cell_file(args.keep, *where[2:]).exists():
                    in_new_process(*where)
                rows.append(cell(*where))
                show(rows[-1])
    for system in SYSTEMS:
        for name in DENOISED:
            show(cell(args.keep, args.budget, system, 0, name, "blocks"))
    table(rows)


if __name__ == "__main__":
    main()
