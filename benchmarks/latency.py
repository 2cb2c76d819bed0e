"""How long a person waits for a short command: from the shell, importing and all.

    python benchmarks/latency.py            every command, three runs, the median
    python benchmarks/latency.py simulate   only those named
    python benchmarks/latency.py --many 1000 10000 100000   resident memory of a forecast instead

Questions are about 40 double pendulums of 129 states, to the package's own model of them. The first
run starts with no compiled programs (cold), the others find those that it kept (warm).
Processor time is beside the clock's, for machines that are busy with other work.
"""

import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from timing import arguments, report

RUNS = 3
OBSERVED, AHEAD = 16, 8  # states, of the forecasts of many trajectories
AIMS = {"help": (0.2, 0.2), "simulate": (None, 1.5)}
"""Command -> seconds aimed at on two idle cores, cold and warm; 6 and 2.5 for the rest."""


def commands(folder: Path) -> dict[str, list[str]]:
    run, test, out = "pretrained:double_pendulum", str(folder / "test.npz"), str(folder / "out.npz")
    return {
        "help": ["--help"],
        "simulate": ["simulate", "double_pendulum", "--trajectories", "2", "-o", out],
        "forecast": ["forecast", run, test, "--observe", "16", "--steps", "112", "-o", out],
        "evaluate": ["evaluate", run, test],
        "infer": ["infer", run, test, "--target", "l2"],
        "interpolate": ["interpolate", run, test, "--factor", "4", "--thin", "-o", out],
    }


def call(argv: list[str], cache: Path) -> tuple[float, float, float]:
    """Wall-clock and processor seconds of one command, and the memory that --verbose tells, MB."""
    env = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(cache), "MPLBACKEND": "agg"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package keeps its bytecode
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "dhn", *argv], env=env, capture_output=True)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"dhn {' '.join(argv)} ended with {done.returncode}: {done.stderr.decode()}")
    told = re.search(r"at most (\d+) MB of memory", done.stderr.decode())
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, float(told.group(1)) if told else float("nan")


def measure(name: str, argv: list[str], folder: Path) -> dict[str, object]:
    cache = folder / f"cache-{name}"
    cold, cold_cpu, _ = call(argv, cache)
    warm = [call(argv, cache) for _ in range(RUNS)]
    aim = AIMS.get(name, (6.0, 2.5))
    return {
        "command": name,
        "cold s": cold,
        "warm s": statistics.median(wall for wall, _, _ in warm),
        "aim s": " / ".join("-" if x is None else f"{x:g}" for x in aim),
        "cold cpu s": cold_cpu,
        "warm cpu s": statistics.median(cpu for _, cpu, _ in warm),
    }


def many(counts: list[int], folder: Path) -> list[dict[str, object]]:
    """Peak of the resident memory while so many single pendulums are forecast.

    The model is the package's own. Compiled programs are kept from row to row.
    """
    cache, run, out = folder / "cache", "pretrained:single_pendulum", folder / "out.npz"
    simulate = ["simulate", "single_pendulum", "--steps", str(OBSERVED - 1)]
    rows = []
    for count in counts:
        data = folder / f"{count}.npz"
        call([*simulate, "--trajectories", str(count), "--seed", "1", "-o", str(data)], cache)
        words = ["forecast", run, str(data), "--observe", str(OBSERVED), "--steps", str(AHEAD)]
        wall, cpu, peak = call([*words, "-o", str(out), "--json", "--verbose"], cache)
        sizes = {"input MB": data.stat().st_size / 1e6, "output MB": out.stat().st_size / 1e6}
        rows.append({"trajectories": count, **sizes, "resident MB": peak, "cpu s": cpu, "s": wall})
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("names", nargs="*", help="commands to time; all by default")
    parser.add_argument("--many", nargs="+", type=int, help="numbers of trajectories to forecast")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if args.many:
            report("resident memory", many(args.many, folder), args.json)
            return
        chosen = {k: v for k, v in commands(folder).items() if not args.names or k in args.names}
        if chosen.keys() - {"help", "simulate"}:
            words = ["simulate", "double_pendulum", "--trajectories", "40", "--seed", "1"]
            call([*words, "-o", str(folder / "test.npz")], folder / "cache")
        rows = [measure(name, argv, folder) for name, argv in chosen.items()]
    report("latency", rows, args.json)


if __name__ == "__main__":
    main()
