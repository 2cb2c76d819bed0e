"""Settings of every test run; made before JAX is first imported."""

import gc
import os
import signal
import sys
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).parent.parent

# `pytest` alone then behaves as `make test` does: compiled programs are kept between runs, and
# each worker computes on one thread, since the workers already share the cores.
for name, value in {
    "JAX_PLATFORMS": "cpu",
    "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".cache" / "jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
    # Most of the time goes into compiling programs that run once. The older emitters took 60 s
    # instead of 97 s of processor time for 40 tests of the models. XLA_FLAGS= make test compiles
    # as users do.
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1",
    "NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MPLBACKEND": "agg",
}.items():
    os.environ.setdefault(name, value)


# No test depends on the speed of the machine.
hypothesis.settings.register_profile("dhn", deadline=None)
hypothesis.settings.load_profile("dhn")

# A shell that starts the tests in the background has them ignore Ctrl-C, and nohup a closed
# terminal; some tests send these signals.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

SIGNALS = [s for s in signal.valid_signals() if s not in (signal.SIGKILL, signal.SIGSTOP)]


@pytest.fixture(autouse=True)
def no_signal_leaks():
    """A test leaves every handler as it found it."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    assert {number: signal.getsignal(number) for number in SIGNALS} == before


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    """End quickly: execnet sends SIGINT to a worker that takes more than 5 s to end.

    Pytest collects garbage five times at the end, which takes longer than that after a few hundred
    compiled programs; the interruption then arose anywhere, in a callback of Hypothesis for one.
    What is left after the first collection is taken out of the others.
    """
    gc.collect()
    gc.freeze()
    if hasattr(session.config, "workerinput"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.fixture
def as_users_have_it():
    """Without the type checker that tests run under, which would refuse most mistakes first."""
    import jaxtyping

    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


MAPS = Path("/proc/self/maps")
MOST_MAPS = 25_000
"""Memory maps of a worker. Every compiled program takes a few, and beyond the kernel's limit
(65,530 by default) the compiler ends the process with a segmentation fault."""


@pytest.fixture(autouse=True, scope="module")
def room_for_programs():
    """After a file, compiled programs are dropped if there are many; the next ones reload them."""
    yield
    if "jax" in sys.modules and MAPS.exists() and MAPS.read_bytes().count(b"\n") > MOST_MAPS:
        sys.modules["jax"].clear_caches()
        gc.collect()
