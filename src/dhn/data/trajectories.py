"""`Trajectories`: the one container that every room of the house passes along."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from dhn.errors import UserError


@dataclasses.dataclass(frozen=True, eq=False)
class Trajectories:
    """`n` trajectories of up to `T` states with `d` coordinates, on the host in float64.

    Two different things can be said of a state: it has a *value* (its `q` is finite), and it is
    *known*, i.e. it was measured rather than predicted. A gap has neither; a forecast has a value
    but is not known. Trajectories of unequal length are padded by states without a value.
    """

    q: np.ndarray
    """(n, T, d) generalised coordinates; NaN where there is no value."""
    t: np.ndarray
    """(T,) shared or (n, T) per trajectory; strictly increasing. Padding may be NaN in (n, T)."""
    p: np.ndarray | None = None
    """(n, T, d) conjugate momenta."""
    v: np.ndarray | None = None
    """(n, T, d) velocities, where momenta are not measured."""
    known: np.ndarray | None = None
    """(n, T) bool: measured. `None` becomes: wherever q (and p or v, if given) is finite."""
    params: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    """Name -> (n,): the system's constants for each trajectory."""
    names: tuple[str, ...] = ()
    """Coordinate names; default q1..qd (q for d = 1)."""
    angles: tuple[bool, ...] = ()
    """Which coordinates are angles in radians; default none."""
    units: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Name of a coordinate, momentum, parameter or `t` -> unit, as text."""
    ids: tuple[str, ...] = ()
    """One label a trajectory; default "0".."n-1"."""
    system: str | None = None
    """Name of the system that made them, if known."""
    noise: np.ndarray | None = None
    """(2, d) standard deviation of the measurement noise of q and of p (or v), if known."""
    q_quantiles: Mapping[float, np.ndarray] = dataclasses.field(default_factory=dict)
    """Level in (0, 1) -> (n, T, d): predictive quantiles of q, where a forecast has them."""
    p_quantiles: Mapping[float, np.ndarray] = dataclasses.field(default_factory=dict)
    meta: Mapping[str, str | int | float | bool] = dataclasses.field(default_factory=dict)
    """Where the data came from (seed, command, version, ...): plain JSON values."""

    def __post_init__(self):
        q = np.asarray(self.q, dtype=np.float64)
        if q.ndim != 3 or 0 in q.shape:
            raise UserError(
                f"q must have shape (trajectories, states, coordinates), all at least 1; "
                f"got {q.shape}. One trajectory: q[None]; one coordinate: q[..., None]."
            )
        set_ = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        set_("q", q)
        n, _, d = q.shape
        set_("t", np.asarray(self.t, dtype=np.float64))
        measured = np.isfinite(q).all(-1)
        for name in ("p", "v"):
            value = getattr(self, name)
            if value is not None:
                set_(name, np.asarray(value, dtype=np.float64))
                measured = measured & np.isfinite(getattr(self, name)).all(-1)
        set_("known", measured if self.known is None else np.asarray(self.known, dtype=bool))
        set_("names", tuple(self.names) or (("q",) if d == 1 else tuple(f"q{i + 1}" for i in range(d))))
        set_("angles", tuple(self.angles) or (False,) * d)
        set_("ids", tuple(str(i) for i in self.ids) or tuple(str(i) for i in range(n)))
        set_("params", {k: np.asarray(x, dtype=np.float64) for k, x in self.params.items()})

    @property
    def dim(self) -> int:
        """Number of coordinates `d`."""
        return self.q.shape[-1]

    @property
    def momenta(self) -> np.ndarray | None:
        """What stands for `p` in a model: the momenta, else velocities as momenta up to scale."""
        return self.p if self.p is not None else self.v
