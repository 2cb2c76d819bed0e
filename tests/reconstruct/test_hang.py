"""The engine's largest batch on two threads, in a child process that a watchdog ends.

jaxlib deadlocks when two programs with QR decompositions run at once, and its concurrency-optimised
scheduler when a large batch is solved implicitly. A hang would show as a child that never ends.
"""

import pytest
from tests.watchdog import assert_ends

SNIPPET = """
import threading
import jax
import numpy as np
from tests.reconstruct.test_engine import PHASES, STATES, knowledge, truth
from dhn.reconstruct.engine import reconstruct
from dhn.reconstruct.job import BATCH

count = 2 * BATCH
states = truth(np.linspace(0.7, 1.3, count), 129, np.linspace(0, 6, count))
known = np.zeros(states.shape, bool)
known[:, :8] = True
noise = np.zeros(states.shape)
found = []

def ask():
    found.append(reconstruct(knowledge(), states, known, noise))

threads = [threading.Thread(target=ask) for _ in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len(found) == 2 and np.array_equal(found[0].states, found[1].states)
"""


@pytest.mark.slow
def test_two_threads_of_the_largest_batch_end():
    assert_ends(SNIPPET, seconds=240, times=10, threads=2)


LARGE_MATRICES = """
import dhn
data = dhn.simulate("three_body", 200, seed=1, steps=40)
answer = dhn.pretrained("three_body").reconstruct(data[:, :16])
assert len(answer.result) == 200
"""


@pytest.mark.slow
def test_matrices_that_jaxlib_divides_among_threads_end():
    """Twelve numbers a state: batches of these side by side waited for each other for ever."""
    assert_ends(LARGE_MATRICES, seconds=240, times=2, threads=2)
