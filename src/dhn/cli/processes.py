"""Several processes that train one model: joining them, and ending all when one is lost.

JAX ends a process whose peer has died from C++, with pages of text, and no exception can be caught.
So each process of a training is a child, and its parent reports in one line how it ended.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, final

from dhn.errors import UserError
from dhn.training.interrupt import TrainingInterrupted

LOST = 75
"""Exit code of the child whose exchange with the other processes failed."""
HEARTBEAT = 10  # seconds without a sign of life after which a process counts as lost
JOINING = 120  # seconds for which processes wait for each other at the start
LEAVING = 3600  # seconds for which they wait at the end, while the first one sets error bars
PORTS = (20_000, 40_000)
"""Ports from which a SLURM job takes one, by its number."""
FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP")


@final
class Peers(NamedTuple):
    """The processes of one training."""

    coordinator: str
    """host:port of the first process."""
    processes: int
    rank: int


def find_peers(coordinator: str | None, processes: int | None, rank: int | None) -> Peers | None:
    """What was given, else what `srun` sets; None if this process is alone.

    Arguments:
        coordinator: host:port of the first process.
        processes: How many there are.
        rank: Number of this one, from 0.

    Returns:
        The processes of this training; a `UserError` if only some of the three are given.
    """
    given = (coordinator, processes, rank)
    if any(x is not None for x in given):
        if coordinator is None or processes is None or rank is None:
            raise UserError("--coordinator, --processes and --rank are given together.")
        host, _, port = coordinator.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 2**16:
            raise UserError(
                f"--coordinator takes HOST:PORT, such as node1:12345; got {coordinator}."
            )
        if not 0 <= rank < processes:
            raise UserError(f"--rank is a number from 0 to {processes - 1}; got {rank}.")
        return Peers(coordinator, processes, rank) if processes > 1 else None
    tasks = os.environ.get("SLURM_STEP_NUM_TASKS", "1")
    nodes = os.environ.get("SLURM_STEP_NODELIST")
    if not tasks.isdigit() or int(tasks) < 2 or nodes is None:
        return None
    words = ["scontrol", "show", "hostnames", nodes]
    host = subprocess.run(words, capture_output=True, text=True).stdout.split()
    if not host:
        raise UserError("the nodes of this SLURM step cannot be listed; use --coordinator.")
    job = int(os.environ["SLURM_JOB_ID"]) + int(os.environ.get("SLURM_STEP_ID", "0"))
    port = PORTS[0] + job % (PORTS[1] - PORTS[0])
    return Peers(f"{host[0]}:{port}", int(tasks), int(os.environ["SLURM_PROCID"]))


def together(peers: Peers, work: Callable[[], Any], lost: Callable[[], str], as_json: bool) -> Any:
    """`work()` in a child that has joined the others; in the parent this does not return.

    Arguments:
        peers: The processes of this training.
        work: What all of them do.
        lost: Says what to do after a process was lost, for the user.
        as_json: Whether a mistake is shown as JSON, too.

    Returns:
        What `work` returns, in the child.
    """
    assert "jax" not in sys.modules  # nor are there threads: it is safe to fork
    alive, held = os.pipe()
    child = os.fork()
    if child:
        os.close(alive)
        _watch(child, lambda: f"process {peers.rank} of {peers.processes}: {lost()}")
    os.close(held)
    os.setsid()  # signals to the group reach the parent, which passes them on
    threading.Thread(target=_end_with_parent, args=(alive,), daemon=True).start()
    # What C++ writes when peers are found or lost goes nowhere; Python keeps the terminal.
    silent = os.open(os.devnull, os.O_WRONLY)
    sys.stdout, sys.stderr = (os.fdopen(os.dup(x), "w", buffering=1) for x in (1, 2))
    for descriptor in (1, 2):
        os.dup2(silent, descriptor)
    try:
        _join(peers)
        found = work()
        _leave()
        return found
    except TrainingInterrupted:  # in all processes
        raise
    except BaseException as error:
        from dhn.cli.result import explain

        debug = os.environ.get("DHN_DEBUG", "0") not in ("", "0")
        expected = isinstance(error, UserError | KeyboardInterrupt)
        code = explain(error, as_json=as_json) if expected or debug else LOST
        # At once: on a usual exit JAX would wait for the other processes.
        os._exit(code if expected else LOST)


def _join(peers: Peers) -> None:
    import jax

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        peers.coordinator, peers.processes, peers.rank,
        initialization_timeout=JOINING, heartbeat_timeout_seconds=HEARTBEAT,
        shutdown_timeout_seconds=LEAVING,
    )  # fmt: skip


def _leave() -> None:
    """Wait for the other processes: a lost one would end those that still work."""
    import jax

    jax.distributed.shutdown()


def _end_with_parent(pipe: int) -> None:
    os.read(pipe, 1)
    os._exit(1)


def _watch(child: int, lost: Callable[[], str]) -> None:
    """Pass signals on, wait for the child, and end as it did or with one line."""

    def forward(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    for name in FORWARDED:
        signal.signal(getattr(signal, name), forward)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0 or code == LOST:
        print(f"dhn: {lost()}", file=sys.stderr, flush=True)
        code = 1
    os._exit(code)
