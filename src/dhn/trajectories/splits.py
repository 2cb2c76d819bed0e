"""Dividing trajectories at random into parts, by fraction or by count."""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from dhn.checks import sequence, whole
from dhn.errors import UserError


def split_indices(
    n: int, parts: int | float | Sequence[int | float], seed: int
) -> list[np.ndarray]:
    """Disjoint, sorted positions that cover `0..n-1`; the same seed gives the same parts.

    One number is the first part and the rest makes the second. A sequence names every part.
    Ints are counts, floats are fractions.
    """
    counts = part_counts(n, parts)
    order = np.random.default_rng(whole("seed", seed, 0)).permutation(n)
    return [np.sort(x) for x in np.split(order, np.cumsum(counts)[:-1])]


def part_counts(n: int, parts: int | float | Sequence[int | float]) -> list[int]:
    """Sizes of the parts; each at least 1, together `n`."""
    single = isinstance(parts, int | float | np.number)
    sizes = [parts] if single else list(sequence("the parts of a split", parts))
    numeric = all(isinstance(x, int | float | np.number) for x in sizes)
    if not sizes or not numeric or not all(math.isfinite(x) and x > 0 for x in sizes):
        raise UserError(f"the parts of a split must be positive numbers; got {parts!r}.")
    counted = all(isinstance(x, int | np.integer) for x in sizes)
    if single:
        sizes.append((n if counted else 1.0) - sizes[0])
    if counted:
        counts = [int(x) for x in sizes]
        if sum(counts) != n:
            raise UserError(
                f"the counts of a split must add up to the {n} trajectories; "
                f"{counts} make {sum(counts)}."
            )
    else:
        if abs(math.fsum(sizes) - 1) > 1e-9:
            raise UserError(
                f"the fractions of a split must add up to 1; {sizes} make {math.fsum(sizes):.6g}."
            )
        edges = [round(n * math.fsum(sizes[:i])) for i in range(len(sizes) + 1)]
        counts = [int(b - a) for a, b in itertools.pairwise(edges)]
    if min(counts) < 1:
        raise UserError(
            f"a split of {n} trajectories into {parts!r} leaves a part with "
            f"{min(counts)} trajectories; every part needs at least 1."
        )
    return counts
