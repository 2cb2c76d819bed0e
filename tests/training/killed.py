"""Trains the small problem into the folder named on the command line; the kill test runs it."""

import sys

from small import oscillators, problem, recipe

from dhn.training.fit import fit

if __name__ == "__main__":
    data = oscillators(24, 40)
    fit(
        *problem(data),
        recipe(steps=200, batch_size=256, average=0.9, validation=0.1),
        directory=sys.argv[1],
        resume=True,
        progress=len(sys.argv) > 2,
        checkpoint_seconds=0.0,
        chunk_seconds=0.05,
    )
