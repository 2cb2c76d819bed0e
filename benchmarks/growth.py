"""How the time of a step grows: number of trajectories, block size, width; and peak memory.

    python benchmarks/growth.py --json

A batch has the same number of windows throughout, so trajectories should cost nothing and the rest
should grow as the arithmetic does. Memory is the largest of the process so far, so rows of one
table are in order of size, and the paper's size comes from a process of its own.
"""

import json
import resource
import subprocess
import sys
from pathlib import Path

from cases import Training, default_sized, paper_sized, recipe
from timing import arguments, interleaved, report


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


def paper_memory(seconds: float) -> list[dict]:
    """In fresh processes, since a process never forgets its largest size."""
    rows = []
    for block_size in (2, 4, 8):
        child = [sys.executable, __file__, "--paper", str(block_size), "--seconds", str(seconds)]
        said = subprocess.run(child, capture_output=True, text=True, check=True)
        rows.append(json.loads(said.stdout.splitlines()[-1]))
    return rows


def main(argv: list[str]) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="measuring time per row")
    parser.add_argument("--paper", type=int, default=0, help="only this block at the paper's size")
    args = parser.parse_args(argv)
    if args.paper:
        label = "block size, paper's transformer"
        config = paper_sized(args.paper)
        print(json.dumps(measure(label, args.paper, config, 1000, args.seconds)))
        return
    rows = [
        measure("width", w, default_sized(width=w), 1000, args.seconds) for w in (32, 64, 128, 256)
    ]
    rows += [
        measure("block size", b, default_sized(b), 1000, args.seconds) for b in (1, 2, 4, 8, 16)
    ]
    rows += [
        measure("trajectories", n, default_sized(), n, args.seconds)
        for n in (1_000, 10_000, 100_000, 1_000_000)
    ]
    report("growth of a step", rows + paper_memory(args.seconds), args.json)


if __name__ == "__main__":
    main(sys.argv[1:])
