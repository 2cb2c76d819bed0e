"""A run: one uninterrupted recording of a system, columns already understood."""

import dataclasses
from collections.abc import Callable
from typing import final

import numpy as np


def _nowhere(i: int) -> str:
    return f"row {i + 1}"


@final
@dataclasses.dataclass(frozen=True)
class Run:
    """`N` measured rows of one trial."""

    id: str
    t: np.ndarray
    """(N,) seconds."""
    q: np.ndarray
    """(N, d)."""
    v: np.ndarray | None = None
    """(N, d) measured velocities."""
    p: np.ndarray | None = None
    """(N, d) measured momenta."""
    lengths: np.ndarray | None = None
    """(links,) mean lengths of the links, where markers were measured."""
    where: Callable[[int], str] = _nowhere
    """What a person calls the row at position i of the file."""
    rows: np.ndarray = None  # type: ignore[assignment]  # always an array once constructed
    """(N,) position of each row in the file."""

    def __post_init__(self):
        if self.rows is None:
            object.__setattr__(self, "rows", np.arange(len(self.t)))

    def __len__(self) -> int:
        return len(self.t)

    def take(self, index: np.ndarray, id: str | None = None) -> "Run":
        """The rows at `index` (positions or a mask)."""
        fields = {k: getattr(self, k) for k in ("t", "q", "v", "p", "rows")}
        picked = {k: None if x is None else x[index] for k, x in fields.items()}
        return dataclasses.replace(self, id=id or self.id, **picked)

    def complete(self) -> "Run":
        """The rows in which nothing is missing."""
        arrays = [x for x in (self.q, self.v, self.p) if x is not None]
        finite = np.all([np.isfinite(x).all(-1) for x in arrays], axis=0)
        return self if finite.all() else self.take(finite)

    def place(self, i: int) -> str:
        """What a person calls row i of this run."""
        return self.where(int(self.rows[i]))
