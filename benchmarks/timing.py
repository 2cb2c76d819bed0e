"""Clocks that stay honest on a machine that others use too: interleaved repeats, minima, ratios."""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp


class Timing(NamedTuple):
    """Least seconds over the repeats, by the wall clock and of all cores together."""

    wall: float
    cpu: float


def interleaved(
    functions: dict[str, Callable], seconds: float = 10.0, repeats: int = 4
) -> dict[str, Timing]:
    """Call them in turn, so that a busy moment hits all alike, and keep each one's least time.

    At least `repeats` rounds, then until `seconds` are over. The first call compiles.
    """
    for function in functions.values():
        jax.block_until_ready(function())
    best = dict.fromkeys(functions, Timing(float("inf"), float("inf")))
    end, done = time.perf_counter() + seconds, 0
    while done < repeats or time.perf_counter() < end:
        for name, function in functions.items():
            cpu, wall = time.process_time(), time.perf_counter()
            jax.block_until_ready(function())
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            best[name] = Timing(min(best[name].wall, wall), min(best[name].cpu, cpu))
        done += 1
    return best


def matmul(size: int = 1024) -> tuple[Callable, float]:
    """A large product and its floating-point operations: what the machine can do."""
    x = jnp.ones((size, size), jnp.float32)
    multiply = jax.jit(jnp.matmul)
    return lambda: multiply(x, x), 2.0 * size**3


def machine() -> dict[str, object]:
    model = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as lines:
            model = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "")
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "backend": jax.default_backend(),
        "jax": jax.__version__,
        "load": round(os.getloadavg()[0], 1),
    }


def arguments(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def report(title: str, rows: list[dict], as_json: bool) -> None:
    """A table for people, or the same for machines."""
    if as_json:
        print(json.dumps({"benchmark": title, "machine": machine(), "rows": rows}, indent=1))
        return
    print(title, "·", ", ".join(f"{k} {v}" for k, v in machine().items()))
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns] + [[_show(row.get(key, "")) for key in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def _show(value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
