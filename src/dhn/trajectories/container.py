"""`Trajectories`: the container of data that all parts of the package exchange."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final, no_type_check

import numpy as np

from dhn.errors import NEAR, UserError, did_you_mean
from dhn.trajectories.contents import fingerprint
from dhn.trajectories.frames import to_dataframe, to_xarray
from dhn.trajectories.joining import concatenate, pad
from dhn.trajectories.selection import each_state, of_rows, state_indices, trajectory_indices
from dhn.trajectories.splits import split_indices
from dhn.trajectories.summary import headline, summarise
from dhn.trajectories.validation import validated

if TYPE_CHECKING:
    import pandas
    import xarray


@no_type_check  # at run time: the annotations describe the fields once constructed, while the
# constructor takes whatever `np.asarray` does and checks it itself, with messages for people.
@final
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Trajectories:
    """`n` trajectories of up to `T` states with `d` coordinates, on the host in float64.

    A state has a *value* if its `q` is finite, and it is *known* if at least one of its numbers was
    measured rather than predicted. A number is known if its state is and the number is finite:
    positions without momenta, or one of two angles, are known numbers of known states. A gap has
    neither; a forecast has a value but is not known. Trajectories of unequal length are padded by
    states without a value.

    The arrays are read-only; `replace` makes a changed copy. `data[trajectories, states]` selects
    by int, slice, list, boolean mask or (trajectories only) id and always keeps all three axes.
    """

    q: np.ndarray
    """(n, T, d) generalised coordinates; NaN where there is no value."""
    t: np.ndarray
    """(T,) shared or (n, T) per trajectory; strictly increasing. Padding may be NaN in (n, T)."""
    p: np.ndarray | None = None
    """(n, T, d) conjugate momenta."""
    v: np.ndarray | None = None
    """(n, T, d) velocities, where momenta are not measured."""
    known: np.ndarray = None  # type: ignore[assignment]  # always an array once constructed
    """(n, T) bool: measured, at least in part. `None` becomes: wherever a number is finite."""
    params: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    """Name -> (n,): the system's constants for each trajectory."""
    names: tuple[str, ...] = ()
    """Coordinate names; default q1..qd (q for d = 1)."""
    angles: tuple[bool, ...] = ()
    """Which coordinates are angles in radians; default none."""
    units: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Name of a coordinate, momentum (`p_<name>`), parameter or `t` -> unit, as text."""
    ids: tuple[str, ...] = ()
    """One label a trajectory; default "0".."n-1"."""
    code_group: tuple[str, ...] = ()
    """One label a trajectory: those of one group are the same system and share a latent code.
    Empty: every trajectory has a code of its own."""
    system: str | None = None
    """Name of the system that made them, if known."""
    noise: np.ndarray | None = None
    """Standard deviations of the measurement noise of q and of p (or v), if known: (2, d), or
    (n, T, 2, d) where they differ from one measurement to the next. NaN: not known."""
    q_quantiles: Mapping[float, np.ndarray] = dataclasses.field(default_factory=dict)
    """Level in (0, 1) -> (n, T, d): predictive quantiles of q, where a forecast has them."""
    p_quantiles: Mapping[float, np.ndarray] = dataclasses.field(default_factory=dict)
    """Level in (0, 1) -> (n, T, d): predictive quantiles of p (or v)."""
    meta: Mapping[str, str | int | float | bool] = dataclasses.field(default_factory=dict)
    """Where the data came from (seed, command, version, ...): plain JSON values."""

    def __post_init__(self):
        for name, value in validated(self).items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_list(
        cls,
        q: Sequence[Any],
        t: Any,
        p: Sequence[Any] | None = None,
        v: Sequence[Any] | None = None,
        known: Sequence[Any] | None = None,
        **fields: Any,
    ) -> "Trajectories":
        """From one array a trajectory, of any lengths.

        Arguments:
            q: `(T_i, d)` or `(T_i,)` arrays.
            t: A list likewise, or one array from which shorter trajectories take the beginning.
            p: As `q`.
            v: As `q`.
            known: `(T_i,)` arrays of true and false.
            fields: Other fields.

        Returns:
            The trajectories, padded to the longest.
        """
        return cls(**pad(q, t, p, v, known), **fields)

    @staticmethod
    def concatenate(parts: "Sequence[Trajectories]") -> "Trajectories":
        """All trajectories one after the other; repeated ids are made different.

        Arguments:
            parts: Trajectories of the same coordinates and parameters.

        Returns:
            One set.
        """
        return Trajectories(**concatenate(parts))

    @property
    def dim(self) -> int:
        """Number of coordinates `d`."""
        return self.q.shape[-1]

    @property
    def states(self) -> int:
        """Number of states `T`, padding included."""
        return self.q.shape[1]

    @property
    def momenta(self) -> np.ndarray | None:
        """What stands for `p` in a model: the momenta, else velocities as momenta up to scale."""
        return self.p if self.p is not None else self.v

    @property
    def known_q(self) -> np.ndarray:
        """(n, T, d) bool: coordinates that were measured."""
        return np.asarray(self.known[..., None] & np.isfinite(self.q))

    @property
    def has_known_q(self) -> np.ndarray:
        """(n, T) bool: states of which every coordinate was measured."""
        return np.logical_and.reduce(self.known_q, axis=-1)

    @property
    def complete(self) -> np.ndarray:
        """(n, T) bool: states of which every coordinate and momentum (or velocity) is known."""
        found = self.has_known_q
        if self.momenta is None:
            return found
        return np.asarray(found & np.isfinite(self.momenta).all(-1))

    @property
    def has_value(self) -> np.ndarray:
        """(n, T) bool: every coordinate is finite, measured or predicted."""
        return np.asarray(np.isfinite(self.q).all(-1))

    @property
    def lengths(self) -> np.ndarray:
        """(n,) number of states up to the last one with a value; what follows is padding."""
        value = np.asarray(np.isfinite(self.q).any(-1))
        return np.where(np.any(value, axis=1), self.states - np.argmax(value[:, ::-1], axis=1), 0)

    @property
    def typical_noise(self) -> np.ndarray | None:
        """(2, d): `noise`, or its root mean square over the known states if it varies."""
        if self.noise is None or self.noise.ndim == 2:
            return self.noise
        kept = np.where(np.asarray(self.known)[..., None, None], self.noise, np.nan)
        count = np.isfinite(kept).sum((0, 1))
        return np.sqrt(np.nansum(kept**2, axis=(0, 1)) / np.where(count, count, np.nan))

    @property
    def times(self) -> np.ndarray:
        """(n, T): `t` as if every trajectory had its own."""
        return np.broadcast_to(self.t, self.q.shape[:2])

    @property
    def is_uniform(self) -> bool:
        """Whether all trajectories have one time step, constant to 1e-6 of itself."""
        return self._step() is not None

    @property
    def time_step(self) -> float:
        """The one spacing of all times; a `UserError` if there is none (see `is_uniform`)."""
        step = self._step()
        if step is None and self.states < 2:
            raise UserError("a single state has no time step; give at least two states.")
        if step is None:
            steps = np.diff(self.t, axis=-1)
            raise UserError(
                f"the times are not evenly spaced: steps range from {np.nanmin(steps):.6g} to "
                f"{np.nanmax(steps):.6g}; bring the data onto one uniform grid first."
            )
        return step

    @property
    def usual_step(self) -> float:
        """The time step; where times are uneven, the median of the steps."""
        if self.is_uniform or self.states < 2:
            return self.time_step
        return float(np.nanmedian(np.diff(self.t, axis=-1)))

    def _step(self) -> float | None:
        t = np.atleast_2d(self.t)
        steps = np.diff(t, axis=1)
        if not np.isfinite(steps).any():
            return None
        count = np.isfinite(steps).sum(1)
        span = np.nansum(steps, axis=1)[count > 0]
        step = float(span.sum() / count.sum())
        # Times far from zero cannot be spaced more evenly than their own rounding.
        rounding = 4 * np.finfo(np.float64).eps * np.nanmax(np.abs(t))
        return step if np.nanmax(np.abs(steps - step)) <= 1e-6 * step + rounding else None

    def __len__(self) -> int:
        return len(self.q)

    def __iter__(self) -> Iterator["Trajectories"]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> "Trajectories":
        first, second = key if isinstance(key, tuple) and len(key) == 2 else (key, slice(None))
        if isinstance(first, tuple):
            raise UserError("index with data[trajectories] or data[trajectories, states].")
        rows = trajectory_indices(first, self.ids)
        columns = state_indices(second, self.states)

        def pick(array: np.ndarray) -> np.ndarray:
            return array[rows][:, columns]

        return self.replace(
            t=self.t[columns] if self.t.ndim == 1 else pick(self.t),
            known=pick(self.known),
            **each_state(self, pick),
            **of_rows(self, rows, [self.ids[i] for i in rows]),
        )

    def replace(self, **changes: Any) -> "Trajectories":
        """A copy with other fields. `known` stays unless it is among the changes.

        Arguments:
            changes: Fields by name.

        Returns:
            The copy.
        """
        known = [field.name for field in dataclasses.fields(self)]
        for name in changes:
            if name not in known:
                raise UserError(
                    f"Trajectories have no field {name!r}{did_you_mean(name, known, NEAR)}; they "
                    f"have {', '.join(known)}."
                )
        return dataclasses.replace(self, **changes)

    def split(
        self, parts: int | float | Sequence[int | float], seed: int
    ) -> "tuple[Trajectories, ...]":
        """Random parts: `split(0.8, seed=0)`, `split((0.7, 0.2, 0.1), seed=0)` or counts (ints).

        Arguments:
            parts: One number for two parts, or one for each part.
            seed: Of the choice.

        Returns:
            The parts; every trajectory is in exactly one, in its old order.
        """
        return tuple(self[rows] for rows in split_indices(len(self), parts, seed))

    def resample(self, every: int) -> "Trajectories":
        """Every `every`-th state, beginning with the first: a coarser grid, nothing averaged.

        Arguments:
            every: At least 1, such that two states remain.

        Returns:
            The selected states.
        """
        if not isinstance(every, int | np.integer) or not 1 <= every < max(self.states, 2):
            raise UserError(
                f"every must be a whole number from 1 to {max(self.states - 1, 1)}, "
                f"so that two states remain; got {every!r}."
            )
        return self[:, ::every]

    def equals(self, other: "Trajectories") -> bool:
        """Whether every field is the same, bit for bit (NaN equals NaN).

        Arguments:
            other: What to compare with.

        Returns:
            True or False.
        """
        return all(
            _same(getattr(self, f.name), getattr(other, f.name)) for f in dataclasses.fields(self)
        )

    def fingerprint(self) -> str:
        """SHA-256 of everything but `meta`: the same data, whichever file it came from."""
        return fingerprint(self)

    def to_dataframe(self) -> "pandas.DataFrame":
        """A pandas DataFrame with one row a state; `dhn.from_dataframe` reads it back.

        Columns: trajectory, t, the coordinates, `p_<name>`, `v_<name>`, known, the parameters,
        quantiles such as `theta_q05`, and `noise_<column>` where the noise varies. Names, angles,
        units and other noise are in `attrs["dhn"]`.
        """
        return to_dataframe(self)

    def to_xarray(self) -> "xarray.Dataset":
        """An xarray Dataset; `dhn.from_xarray` reads it back.

        States have the dimensions trajectory, time and coordinate, parameters trajectory and
        parameter; units are the attribute `units` of each variable.
        """
        return to_xarray(self)

    def summary(self) -> str:
        """A few lines for a person."""
        return summarise(self)

    def __repr__(self) -> str:
        return f"Trajectories({headline(self)})"

    def __str__(self) -> str:
        return summarise(self)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return (
            a.shape == b.shape
            and a.dtype == b.dtype
            and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        )
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    return type(a) is type(b) and (a == b or (a != a and b != b))
