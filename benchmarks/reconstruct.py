"""One engine, every task: errors, bands, strays and times of reconstruction.

    python benchmarks/reconstruct.py --seeds 1 --budget 1m

Models of one minute (1000 training trajectories, both pendulums) reconstruct 200 test trajectories
from different known numbers. Errors are mean squares of q / (pi/2) over unknown coordinates, per
trajectory; a stray is 100 times the median or worse. Coverage counts unknown coordinates inside the
bands of the bare posterior and of the calibrated one. Times are of the second call and the first.
"""

import argparse
import dataclasses
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import dhn
from dhn.cli.arguments import seconds
from dhn.estimator.asking import answer, ask, bands_for
from dhn.reconstruct.bands import Bands, horizons
from dhn.trajectories import Trajectories

SYSTEMS = ("single_pendulum", "double_pendulum")
TESTS = 200
STRAY = 100.0
"""Times the median."""


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


TASKS = (
    Task("first 16", first(16)),
    *(Task(f"every {k}", every(k)) for k in (4, 8, 16, 32)),
    Task("first 16, 1 % noise", first(16), noise=0.01),
    Task("first 16, 5 % noise", first(16), noise=0.05),
    Task("positions", every(1), momenta=False),
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


def measure(model: dhn.DHN, task: Task, test: Trajectories, noisy: Trajectories) -> dict:
    asked = question(task, test, noisy)
    begun = time.perf_counter()
    model.reconstruct(asked)
    cold = time.perf_counter() - begun
    begun = time.perf_counter()
    posterior = answer(model.trained, ask(model.trained, asked))
    warm = time.perf_counter() - begun
    scaler, d = model.trained.scaler, test.dim
    truth = scaler.transform_q(test.q)
    states, deviation = posterior.states[..., :d], posterior.deviation[..., :d]
    # With noise the known states are unknown, too; they are left out to compare with forecasts.
    hidden = ~np.asarray(asked.known_q)
    if not hidden.any():  # all positions known: the momenta are the answer
        truth = scaler.transform_p(test.p)
        states, deviation = posterior.states[..., d:], posterior.deviation[..., d:]
        hidden = np.ones(truth.shape, bool)
    error = (states - truth) * scaler.q_scale / (np.pi / 2)
    each = np.array([np.mean(e[h] ** 2) for e, h in zip(error, hidden, strict=True)])
    seen = np.concatenate([asked.known_q] * 2, axis=-1)
    share = {}
    chosen = bands_for(model.trained, ask(model.trained, asked))
    for name, bands in (("bare", Bands.gaussian()), ("calibrated", chosen)):
        levels = bands.quantiles(states, deviation, horizons(seen))
        inside = [(levels[a] <= truth) & (truth <= levels[1 - a]) for a in (0.25, 0.05)]
        share[name] = [float(x[hidden].mean()) for x in inside]
    return {
        "task": task.name,
        "median": float(np.median(each)),
        "mean": float(each.mean()),
        "worst": float(each.max()),
        "strays": int((each > STRAY * np.median(each)).sum()),
        **{name: value for name, value in share.items()},
        "not ok": int((posterior.result != 0).sum()),
        "seconds": warm,
        "first": cold,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--budget", default="1m")
    parser.add_argument("--keep", type=Path, help="folder for trained models")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for system in SYSTEMS:
        for seed in range(args.seeds):
            test = dhn.simulate(system, TESTS, seed=2 * seed + 1, steps=128)
            noisy = {x: dhn.simulate(system, TESTS, seed=2 * seed + 1, steps=128, noise=x)
                     for x in (0.01, 0.05)}  # fmt: skip
            folder = None if args.keep is None else args.keep / f"{system}-{seed}"
            if folder is not None and (folder / "model.safetensors").exists():
                model = dhn.load(folder)
            else:
                train = dhn.simulate(system, 1000, seed=2 * seed, steps=128)
                model = dhn.DHN(seed=seed, clock="processor")
                model.fit(train, budget=seconds(args.budget), calibrate=True)
                if folder is not None:
                    model.save(folder)
            for task in TASKS:
                if task.angles is not None and test.dim <= task.angles:
                    continue
                row = {"system": system, "seed": seed}
                row |= measure(model, task, test, noisy.get(task.noise, test))
                rows.append(row)
                if not args.json:
                    bare, fitted = row["bare"], row["calibrated"]
                    print(
                        f"{system:16s} {seed} {task.name:20s} median {row['median']:.1e} "
                        f"mean {row['mean']:.1e} worst {row['worst']:.1e} "
                        f"strays {row['strays']} bands {bare[0]:.0%}/{bare[1]:.0%} "
                        f"calibrated {fitted[0]:.0%}/{fitted[1]:.0%} not ok {row['not ok']} "
                        f"{row['seconds']:.1f} s, first {row['first']:.1f} s",
                        flush=True,
                    )
    if args.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
