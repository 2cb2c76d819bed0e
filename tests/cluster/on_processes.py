"""One of several processes that train a small problem together; `test_processes.py` runs it.

    python on_processes.py FOLDER ADDRESS PROCESSES RANK memory|disk|budget

Prints the losses and, for every pool, the spans of rows that this process has read for them.
"""

import json
import sys
from pathlib import Path

import jax

sys.path.insert(0, str(Path(__file__).parent.parent / "training"))
from small import oscillators, problem, recipe

from dhn.files.source import AbstractSource, InMemory
from dhn.files.stored import StoredTrajectories, open
from dhn.training.fit import fit
from dhn.training.pools import Pooling

POOLING = Pooling(trajectories=1024, steps=15)
TRAJECTORIES, STATES = 1536, 10


class Watched(AbstractSource):
    """Trajectories in memory that remember which of them were read."""

    def __init__(self, data):
        self._data, self.read = InMemory(data), []
        self.count, self.states, self.dim = len(data), data.states, data.dim

    def rows(self, first, stop):
        self.read.append([(first, stop)])
        return self._data.rows(first, stop)


def main(folder: str, address: str, processes: int, rank: int, kind: str) -> None:
    if processes > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(address, processes, rank)
    model, data, scaler = problem(oscillators(TRAJECTORIES, STATES))
    options, read = {}, []
    if kind == "disk":
        stored, spans = open(Path(folder) / "data.zarr"), StoredTrajectories.spans
        StoredTrajectories.spans = lambda self, parts: read.append(parts) or spans(self, parts)
        options = {"stored": stored, "pooling": POOLING}
    else:
        source = Watched(data)
        read, options = source.read, {"source": source}
    if kind == "budget":
        options["budget"] = 4.0
    found = fit(
        model,
        data if rank == 0 else data[:1],
        scaler,
        recipe(steps=40, batch_size=64, validation=0.1),
        directory=Path(folder) / f"{kind}{processes}",
        progress=False,
        chunk_seconds=1e-6,
        **options,
    )
    print(
        json.dumps(
            {
                "losses": [x["loss"] for x in found.history],
                "validation": found.validation,
                "codes": found.codes.tolist(),
                "steps": found.steps,
                "read": read,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
