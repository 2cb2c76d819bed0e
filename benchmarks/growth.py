"""How the time of a step grows: number of trajectories, block size, width; and peak memory.

    python benchmarks/growth.py --json

A batch has the same number of windows throughout, so trajectories should cost nothing and the rest
should grow as the arithmetic does. Trainings from disk (`--disk` alone) keep 4096 trajectories in
memory whatever their number, codes included, so neither step nor memory should grow. Memory is the
largest of the process so far, so rows of one table are in order of size, and the paper's size and
the trainings from disk come from processes of their own.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import dhn
from cases import Training, default_sized, paper_sized, recipe
from dhn.files.source import PIECE
from dhn.files.storing import writing
from dhn.training.pools import Pooling
from dhn.trajectories import Trajectories
from timing import arguments, interleaved, report

STEPS = 8192  # of a training from disk: eight pools


def peak_megabytes() -> float:
    """Largest resident memory. On Linux not from getrusage, which a child inherits."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(label: str, value: int, config, trajectories: int, seconds: float) -> dict:
    training = Training(config, recipe(config), trajectories)
    many = 10 if config.network.kind == "mlp" else 1
    best = interleaved({"step": lambda: training(many)}, seconds)["step"]
    return {
        "varied": label,
        "value": value,
        "step_ms": 1e3 * best.wall / many,
        "step_cpu_ms": 1e3 * best.cpu / many,
        "peak_mb": peak_megabytes(),
    }


def store(path: Path, trajectories: int) -> None:
    """Pairs of oscillators without friction, in pieces: quick to make, and learnable."""
    rng, states = np.random.default_rng(0), 129
    t = 0.1 * np.arange(states)
    with writing(path) as out:
        for first in range(0, trajectories, PIECE):
            n = min(PIECE, trajectories - first)
            w, phase = rng.uniform(0.8, 1.2, (n, 1, 2)), rng.uniform(0, 2 * np.pi, (n, 1, 2))
            angle = w * t[:, None] + phase
            params = {"w1": w[:, 0, 0], "w2": w[:, 0, 1]}
            out.append(Trajectories(q=np.cos(angle), p=-w * np.sin(angle), t=t, params=params))


def from_disk(trajectories: int, steps: int) -> dict:
    """One training of `trajectories` trajectories of 129 states from a Zarr folder."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.zarr"
        started = time.perf_counter()
        store(path, trajectories)
        written = time.perf_counter() - started
        size = sum(x.stat().st_size for x in path.rglob("*") if x.is_file())
        found = _trained(dhn.open(path), Path(folder) / "run", steps)
        return {
            "varied": "trajectories on disk", "value": trajectories, **found,
            "disk_mb": size / 1e6, "writing_s": written, "peak_mb": peak_megabytes(),
        }  # fmt: skip


def from_memory(steps: int) -> dict:
    """The same training of a pool's trajectories that are in memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.zarr"
        store(path, Pooling().trajectories)
        found = _trained(dhn.read(path), Path(folder) / "run", steps)
    size = Pooling().trajectories
    return {"varied": "in memory", "value": size, **found, "peak_mb": peak_megabytes()}


def _trained(data, run: Path, steps: int) -> dict:
    """Wall and processor time of a step, each from a training of its own, the first left out."""
    found = {}
    for name, clock in (("first", "wall"), ("step_ms", "wall"), ("step_cpu_ms", "processor")):
        dhn.DHN(clock=clock).fit(data, steps=steps, directory=run / name)
        records = [json.loads(x) for x in (run / name / "metrics.jsonl").read_text().splitlines()]
        early = next(x for x in records if x["step"] >= steps // 8)
        taken = records[-1]["step"] - early["step"]
        found[name] = 1e3 * (records[-1]["seconds"] - early["seconds"]) / taken
    del found["first"]
    return found


def children(*jobs: list[str]) -> list[dict]:
    """Rows from fresh processes, since a process never forgets its largest size."""
    rows = []
    for job in jobs:
        said = subprocess.run(
            [sys.executable, __file__, *job], capture_output=True, text=True, check=True
        )
        rows.append(json.loads(said.stdout.splitlines()[-1]))
    return rows


def main(argv: list[str]) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="measuring time per row")
    parser.add_argument("--paper", type=int, default=0, help="only this block at the paper's size")
    parser.add_argument("--disk", action="store_true", help="only trainings from disk")
    parser.add_argument("--sizes", default="1000,10000,100000", help="trajectories on disk")
    parser.add_argument("--stored", type=int, default=0, help="only this number on disk")
    parser.add_argument("--memory", action="store_true", help="only the training in memory")
    args = parser.parse_args(argv)
    if args.paper:
        label = "block size, paper's transformer"
        config = paper_sized(args.paper)
        print(json.dumps(measure(label, args.paper, config, 1000, args.seconds)))
        return
    if args.memory or args.stored:
        print(json.dumps(from_memory(STEPS) if args.memory else from_disk(args.stored, STEPS)))
        return
    sizes = [int(x) for x in args.sizes.split(",")]
    rows = children(["--memory"], *(["--stored", str(n)] for n in sizes))
    if args.disk:
        report("growth of a training from disk", rows, args.json)
        return
    rows += [
        measure("width", w, default_sized(width=w), 1000, args.seconds) for w in (32, 64, 128, 256)
    ]
    rows += [
        measure("block size", b, default_sized(b), 1000, args.seconds) for b in (1, 2, 4, 8, 16)
    ]
    rows += [
        measure("trajectories", n, default_sized(), n, args.seconds)
        for n in (1_000, 10_000, 100_000, 1_000_000)
    ]
    paper = [["--paper", str(b), "--seconds", str(args.seconds)] for b in (2, 4, 8)]
    report("growth of a step", rows + children(*paper), args.json)


if __name__ == "__main__":
    main(sys.argv[1:])
