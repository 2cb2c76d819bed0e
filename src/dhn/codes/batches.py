"""Any number of trajectories through functions compiled for one batch size, on all cores."""

import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np

MIN_BATCH = 16  # rows, so that few sizes compile
WORTH_SPLITTING = 64
"""Rows below which a second core is not worth a second batch."""


ALONE = threading.Lock()
"""Held by programs with QR decompositions."""


def in_batches(function: Callable, arrays, batch_size: int, *, side_by_side: bool = True):
    """Call `function` on batches of rows of `arrays` (a pytree) and join what it returns.

    Programs with QR decompositions, or Cholesky decompositions of more than a few rows, must not
    run `side_by_side`: jaxlib shares one pool of threads among them and deadlocks
    (tests/reconstruct/test_hang.py). They wait for each other, also when several threads of the
    caller ask at once.

    The last batch is padded by repeating a row, so the number of trajectories bounds neither
    memory nor the number of compilations. `jnp.asarray` would compile a program for every shape;
    `device_put` does not. On a CPU there are at least as many batches as cores,
    side by side: the small products of one batch cannot be shared among cores.
    """
    n = jax.tree.leaves(arrays)[0].shape[0]
    shared = side_by_side and n >= WORTH_SPLITTING and jax.default_backend() == "cpu"
    threads = _cores() if shared else 1
    batch = min(batch_size, max(MIN_BATCH, 1 << (-(-n // threads) - 1).bit_length()))
    # The setting belongs to the thread that made it.
    wide = jax.dtypes.canonicalize_dtype(np.float64) == np.float64

    def one_batch(first: int):
        rows = np.minimum(np.arange(first, first + batch), n - 1)
        with jax.enable_x64(wide), contextlib.nullcontext() if side_by_side else ALONE:
            result = function(jax.tree.map(lambda x: jax.device_put(x[rows]), arrays))
            return jax.tree.map(lambda x: np.asarray(x)[: n - first], result)

    firsts = range(0, n, batch)
    if threads > 1 and len(firsts) > 1:
        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(one_batch, firsts))
    else:
        parts = [one_batch(first) for first in firsts]
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)


def _cores() -> int:
    """Cores for this process; NPROC overrides them, as in XLA."""
    limit = os.environ.get("NPROC", "")
    if limit.isdigit() and int(limit):
        return int(limit)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows
        return os.cpu_count() or 1
