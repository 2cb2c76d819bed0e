"""Simulated trajectories in pieces, for more of them than fit into memory."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dhn.checks import whole
from dhn.systems.simulation import simulate
from dhn.systems.system import System
from dhn.trajectories.container import Trajectories

PIECE = 4096
"""Trajectories of a piece. It decides which random numbers are drawn, so it is not an option."""


def simulate_pieces(
    system: str | System,
    trajectories: int,
    seed: int = 0,
    *,
    noise: Any = 0.0,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Iterator[Trajectories]:
    """`simulate`, piece by piece: the first is its result for as many trajectories, bit for bit.

    Every later piece has a seed of its own that follows from `seed`. Noise that is given as a
    fraction is taken of the standard deviations of the first piece.

    Arguments:
        system: A `System`, or its name.
        trajectories: How many in all.
        seed: Of every random choice.
        noise: As for `simulate`.
        progress: Called with the trajectories done and all of them.
        options: As for `simulate`, numbers and ranges only.

    Returns:
        Pieces of up to 4096 trajectories, each computed when it is asked for.
    """
    count = whole("trajectories", trajectories)
    for number, first in enumerate(range(0, count, PIECE)):
        own = seed if number == 0 else int(_seed(seed, number))

        def shown(done: int, _: int, first: int = first) -> None:
            if progress is not None:
                progress(first + done, count)

        size = min(PIECE, count - first)
        piece = simulate(
            system, trajectories=size, seed=own, noise=noise, progress=shown, **options
        )
        noise = noise if piece.noise is None else piece.noise
        yield piece.replace(meta={**piece.meta, "seed": seed})


def _seed(seed: int, number: int) -> np.uint64:
    """63 bits, so that pieces do not repeat each other or the simulations of nearby seeds."""
    return np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0] >> np.uint64(1)
