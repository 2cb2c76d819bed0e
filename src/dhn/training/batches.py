"""Any number of trajectories through functions compiled for one batch size."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

MIN_BATCH = 16


def in_batches(function: Callable, arrays, batch_size: int):
    """Call `function` on batches of rows of `arrays` (a pytree) and join what it returns.

    The last batch is padded by repeating a row, so the number of trajectories bounds neither
    memory nor the number of compilations.
    """
    n = jax.tree.leaves(arrays)[0].shape[0]
    batch = min(batch_size, max(MIN_BATCH, 1 << (n - 1).bit_length()))

    def one_batch(first: int):
        rows = np.minimum(np.arange(first, first + batch), n - 1)
        result = function(jax.tree.map(lambda x: jnp.asarray(x[rows]), arrays))
        return jax.tree.map(lambda x: np.asarray(x)[: n - first], result)

    parts = [one_batch(first) for first in range(0, n, batch)]
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)
