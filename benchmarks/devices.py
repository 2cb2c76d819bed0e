"""One training over 1, 2 and 4 processes on this machine: a SIMULATION of scale, not scale.

    python benchmarks/devices.py --json

All processes share the cores of one machine and talk over loopback, so the step time here only
shows that the program works and what an exchange costs in software. What carries over to other
machines is counted, not timed: the bytes that the collectives of one step move (read from the
compiled program) and the memory of each process. `--hosts` and `--trajectories` then compute what
a larger run would need; docs/cluster.md has the formula and its weakest assumption.
"""

import json
import math
import re
import socket
import subprocess
import sys
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from cases import CONTEXT, default_sized, recipe, states
from dhn.models.dhn import DHNModel
from dhn.models.registry import draw_weights
from dhn.training.devices import Devices, replicated
from dhn.training.pools import Pooling
from dhn.training.step import Run, TrainingData, initial_state, run_steps
from growth import peak_megabytes
from timing import arguments, report

STEPS = 50  # of one call
TRAJECTORIES = 16_384  # their codes are divided among the processes
BYTES = {"f32": 4, "s32": 4, "u32": 4, "pred": 1, "f64": 8, "s64": 8, "u64": 8}
COLLECTIVE = re.compile(r"= (.+?) (all-reduce|all-gather|all-to-all|collective-permute)\(")
NETWORK, LATENCY = 10e9 / 8, 50e-6
"""Assumed of the larger machine: bytes/s and seconds a message between two hosts."""


def collective_bytes(text: str) -> dict[str, int]:
    """Kind of collective -> bytes of its results in one step (the body of the loop)."""
    found: dict[str, int] = {"count": 0}
    for result, kind in COLLECTIVE.findall(text):
        sizes = re.findall(r"(\w+)\[([\d,]*)\]", result)
        total = sum(BYTES[t] * math.prod(int(x) for x in s.split(",") if x) for t, s in sizes)
        found[kind] = found.get(kind, 0) + total
        found["count"] += 1
    return found


def one_process(rank: int, processes: int, port: int, seconds: float) -> dict:
    """Steps of the default model, in one of several processes."""
    if processes > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"127.0.0.1:{port}", processes, rank)
    devices = Devices()
    config = default_sized()
    model, training = (
        draw_weights(DHNModel, config, CONTEXT, jr.key(1)),
        recipe(config, chunk_size=4096),
    )
    data = states(TRAJECTORIES)
    steps = data.q.shape[1] - model.window_shapes[0].reach
    place = jnp.arange(TRAJECTORIES * steps)
    windows = jnp.stack([place // steps, place % steps], axis=1).astype(jnp.int32)
    numbers = (jnp.zeros((), jnp.int32), jnp.asarray(1_000_000, jnp.int32))
    mine = slice(*devices.rows(TRAJECTORIES))
    data = jax.tree.map(lambda x: devices.by_rows(np.asarray(x)[mine], TRAJECTORIES), data)
    static = eqx.partition(model, eqx.is_inexact_array)[1]
    count = jnp.asarray(len(windows), jnp.int32)
    static, windows, count, numbers = replicated(devices.mesh, (static, windows, count, numbers))
    arrays = TrainingData(data, (windows,), (count,))
    run = Run(static, arrays, training, numbers[0], numbers[1], devices.mesh)
    state = devices.placed(initial_state(model, TRAJECTORIES, training))

    def many():
        return replicated(devices.mesh, jnp.asarray(STEPS, jnp.int32))

    compiled = run_steps.lower(run, state, many()).compile().compiled  # type: ignore[attr-defined]
    state, _ = run_steps(run, state, many())
    best, cpu = math.inf, math.inf
    for _ in range(max(3, round(seconds))):  # as often in every process
        jax.block_until_ready(state)
        started, used = time.perf_counter(), time.process_time()
        state, _ = run_steps(run, state, many())
        jax.block_until_ready(state)
        best = min(best, (time.perf_counter() - started) / STEPS)
        cpu = min(cpu, (time.process_time() - used) / STEPS)
    book, held = (
        sum(x.addressable_data(0).nbytes for x in jax.tree.leaves(tree))
        for tree in (state.codebook, data)
    )
    moved = collective_bytes(compiled.as_text())
    weights = sum(x.nbytes for x in jax.tree.leaves(state.weights))
    return {
        "processes": processes, "step_ms": 1e3 * best, "step_cpu_ms": 1e3 * cpu,
        "collectives": moved.pop("count"), "moved_kb": sum(moved.values()) / 1e3,
        "weights_kb": weights / 1e3, "codebook_mb": book / 1e6,
        "data_mb": held / 1e6, "peak_mb": peak_megabytes(),
    }  # fmt: skip


def measure(processes: int, seconds: float) -> dict:
    """The row of the first of `processes` processes."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    words = [sys.executable, __file__, "--seconds", str(seconds), "--of", str(processes)]
    children = [
        subprocess.Popen(
            [*words, "--rank", str(rank), "--port", str(port)], stdout=subprocess.PIPE, text=True
        )
        for rank in range(processes)
    ]
    said = [child.communicate()[0] for child in children]
    assert all(child.returncode == 0 for child in children)
    return json.loads(said[0].splitlines()[-1])


def larger(row: dict, one: dict, hosts: int, trajectories: float) -> dict:
    """What `hosts` hosts and so many trajectories would need, by the formula of docs/cluster.md."""
    exchange = 2 * (hosts - 1) / hosts * 1e3 * row["moved_kb"] / NETWORK
    exchange += row["collectives"] * 2 * math.log2(max(hosts, 2)) * LATENCY
    step = 1e-3 * one["step_cpu_ms"] / hosts + exchange
    code = one["codebook_mb"] * 1e6 / TRAJECTORIES
    number = 2 * CONTEXT.dim * 129 * 8 + 129
    # Every host holds a pool of its own size, so that a pool of all hosts is `hosts` times larger.
    pools = trajectories / (Pooling().trajectories * hosts)
    steps = pools * Pooling().steps
    return {
        "hosts": hosts, "trajectories": trajectories,
        "compute_ms": one["step_cpu_ms"] / hosts, "exchange_ms": 1e3 * exchange,
        "codes_gb": trajectories * code / 1e9, "disk_tb": trajectories * number / 1e12,
        "read_mb_s_a_host": Pooling().trajectories * number / (Pooling().steps * step) / 1e6,
        "steps_of_one_pass": steps, "hours_of_one_pass": steps * step / 3600,
    }  # fmt: skip


def main(argv: list[str]) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="repeats of 50 steps")
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--trajectories", type=float, default=1e9)
    parser.add_argument("--of", type=int, default=0, help="only one of so many processes")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--port", type=int, default=0)
    args = parser.parse_args(argv)
    if args.of:
        print(json.dumps(one_process(args.rank, args.of, args.port, args.seconds)))
        return
    rows = [measure(n, args.seconds) for n in (1, 2, 4)]
    report("processes of one training, simulated on one machine", rows, args.json)
    scaled = [larger(rows[-1], rows[0], args.hosts, args.trajectories)]
    report("computed from these counts, not measured", scaled, args.json)


if __name__ == "__main__":
    main(sys.argv[1:])
