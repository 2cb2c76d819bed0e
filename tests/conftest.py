"""Settings of every test run; made before JAX is first imported."""

import os
from pathlib import Path

ROOT = Path(__file__).parent.parent

# `pytest` alone then behaves as `make test` does: compiled programs are kept between runs, and
# each worker computes on one thread, since the workers already share the cores.
for name, value in {
    "JAX_PLATFORMS": "cpu",
    "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".cache" / "jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
    # Most of the time goes into compiling programs that run once.
    "XLA_FLAGS": "--xla_backend_optimization_level=0",
    "NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MPLBACKEND": "agg",
}.items():
    os.environ.setdefault(name, value)
