"""A run: one recording of a system, first as measured, then on the grid."""

import dataclasses
from collections.abc import Callable
from typing import Any, final

import numpy as np

MISSING, INTERPOLATED, RESAMPLED, COPIED = range(4)
"""How a state came about (`Run.kind`)."""
KINDS = ("missing", "interpolated", "resampled", "copied")


@final
@dataclasses.dataclass(frozen=True)
class Run:
    """`N` rows or states of one trial."""

    id: str
    t: np.ndarray
    """(N,) seconds."""
    q: np.ndarray
    """(N, d)."""
    v: np.ndarray | None = None
    """(N, d) velocities, measured or computed."""
    p: np.ndarray | None = None
    """(N, d) momenta, measured or computed."""
    lengths: np.ndarray | None = None
    """(links,) mean lengths of the links, where markers were measured."""
    where: Callable[[int], str] = lambda i: f"row {i + 1}"
    """What a person calls the row at position i of the file."""
    rows: np.ndarray = None  # type: ignore[assignment]  # always an array once constructed
    """(N,) position of each row in the file."""
    kind: np.ndarray = None  # type: ignore[assignment]  # always an array once constructed
    """(N,) of MISSING, INTERPOLATED, RESAMPLED, COPIED; rows of a file are copied."""
    uncertain: np.ndarray = None  # type: ignore[assignment]  # always an array once constructed
    """(N,) bool: computed velocities near an end of a stretch."""

    def __post_init__(self):
        n = len(self.t)
        defaults = {
            "rows": np.arange(n), "kind": np.full(n, COPIED), "uncertain": np.zeros(n, bool)
        }  # fmt: skip
        for name, default in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, default)

    def __len__(self) -> int:
        return len(self.t)

    @property
    def known(self) -> np.ndarray:
        """(N,) bool: measured here, with a velocity that can be relied on."""
        return (self.kind >= RESAMPLED) & ~self.uncertain

    def take(self, index: Any, id: str | None = None) -> "Run":
        """The rows at `index` (positions, a mask or a slice)."""
        names = ("t", "q", "v", "p", "rows", "kind", "uncertain")
        fields = {k: getattr(self, k) for k in names}
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
