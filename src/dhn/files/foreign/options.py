"""The options of an import as one frozen object with checks."""

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, final

from dhn.errors import UserError

if TYPE_CHECKING:
    from dhn.systems import System

TIME_UNITS: Mapping[str, float] = {
    **{"s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0},
    **{"ms": 1e-3, "msec": 1e-3, "millisecond": 1e-3, "milliseconds": 1e-3},
    **{"us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0},
}
"""Unit of a time column -> seconds."""

_WORDS = ("q", "v", "p", "markers", "angles")
_POSITIVE = ("rate", "dt", "gap")
_NUMBERS = ("missing", "mass", "split", "zero", "pivot")


@final
@dataclasses.dataclass(frozen=True)
class ImportOptions:
    """What stands in which column, and what to make of it.

    A column is named, or given by its position from 1; in .mat, .npz and HDF5 files a column is a
    variable (`theta`), a field (`log.theta`) or one row or column of it (`Y:2`). `name=column`
    gives a coordinate another name. A star (`Y_*:1`) stands for several variables, all trials.
    """

    time: str | None = None
    """Column of the times. Without one: t, time, ... if there is, else `rate`."""
    q: tuple[str, ...] = ()
    """Columns of the coordinates."""
    v: tuple[str, ...] = ()
    """Columns of the velocities, in the order of the coordinates."""
    p: tuple[str, ...] = ()
    """Columns of the momenta, where they are measured."""
    trial: str | None = None
    """Column that labels the trials; `restart`: a new trial begins where time goes back."""
    markers: tuple[str, ...] = ()
    """x and y columns of the markers on a chain of links, from the pivot to the tip."""
    pivot: tuple[float, ...] = ()
    """x and y of a fixed pivot that is not among the markers."""
    fit_pivot: bool = False
    """Fit the pivot as the centre of the circle on which the first marker moves."""
    y_down: bool = False
    """The markers' y axis points down, as pixels do."""
    rate: float | None = None
    """Samples a second, for files without times."""
    time_unit: str | None = None
    """Unit of the times (s, ms, us, ns, min, h); else what the header states, else seconds."""
    from_: float | None = None
    """Earlier rows are left out; seconds, on the clock of the file."""
    to: float | None = None
    """Later rows are left out."""
    missing: tuple[float, ...] = ()
    """Numbers that mean "no measurement", such as -9999."""
    angles: tuple[str, ...] = ()
    """Names of the coordinates that are angles."""
    degrees: bool = False
    """Angles (all coordinates, if `angles` names none) and their velocities are in degrees."""
    zero: tuple[float, ...] = ()
    """Reading of each coordinate, in the file's unit, where it should be zero; subtracted."""
    unwrap: bool = True
    """Make angles continuous: add full turns where they jump by more than half of one; every
    trajectory begins between -π and π."""
    mass: tuple[float, ...] = ()
    """Masses, one a coordinate, or a mass matrix row by row: p = M v."""
    fit_mass: bool = False
    """Read the ratios of the masses off the motion (see `inertia`)."""
    system: "System | str | None" = None
    """System whose Lagrangian turns velocities into momenta."""
    params: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Constants of that system, the same for all trials."""
    positions_only: bool = False
    """No velocities and no momenta, neither computed nor measured: enough for a mechanical model,
    which fits the positions themselves."""
    dt: float | None = None
    """Spacing of the uniform grid; by default the sampling step of the data."""
    keep_times: bool = False
    """Keep every row at its own time instead of resampling to a uniform grid; rows with missing
    numbers stay as states to be filled in."""
    gap: float | None = None
    """A hole in the times longer than this many seconds begins a new trial."""
    smooth: bool = False
    """Take q, too, from the local fit that gives velocities."""
    edges: str = "mark"
    """States at the ends of a stretch whose computed velocity is uncertain: `mark` them unknown,
    `drop` them, or `keep` them known like all others."""
    segment: int | None = None
    """Cut every run into trajectories of this many states."""
    hop: int | None = None
    """States from the start of one segment to the next; by default the segment's length."""
    codes: str = "run"
    """Which trajectories share a latent code: none (`own`), the segments of a `run`, or `all`."""
    split: tuple[float, ...] = ()
    """Fractions of every run, in time, for train(, validation) and test."""
    test_trials: str | None = None
    """Trials (a pattern such as `vad*`) that go to the test part as a whole."""
    validation_trials: str | None = None
    """Trials that go to the validation part as a whole."""

    def __post_init__(self):
        self._check()

    def _check(self) -> None:
        for name in _POSITIVE:
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise UserError(f"{name} must be a positive number; got {value!r}.")
        for name in ("from_", "to"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise UserError(f"{name.strip('_')} must be a time in seconds; got {value!r}.")
        if self.from_ is not None and self.to is not None and self.from_ >= self.to:
            raise UserError(f"the time range is empty: from {self.from_:g} to {self.to:g} s.")
        self._check_sources()
        for name in ("segment", "hop"):
            value = getattr(self, name)
            least = 2 if name == "segment" else 1
            if value is not None and (not isinstance(value, int) or value < least):
                raise UserError(f"{name} must be a whole number from {least}; got {value!r}.")
        if self.hop is not None and self.segment is None:
            raise UserError(
                "hop is the distance between segments; give segment, their length, too."
            )
        if self.time_unit is not None and self.time_unit not in TIME_UNITS:
            raise UserError(
                f"time_unit must be one of s, ms, us, ns, min, h; got {self.time_unit!r}."
            )
        if self.params and self.system is None:
            raise UserError("params are constants of a system; name the system, too.")
        for name, choices in (
            ("edges", ("mark", "drop", "keep")),
            ("codes", ("own", "run", "all")),
        ):
            if getattr(self, name) not in choices:
                raise UserError(
                    f"{name} must be one of {', '.join(choices)}; got {getattr(self, name)!r}."
                )
        if self.split:
            self._check_split()
        if self.validation_trials is not None and (self.split or self.test_trials is None):
            raise UserError(
                "validation_trials names whole trials; name test_trials, too, and leave split out."
            )

    def _check_sources(self) -> None:
        """Each quantity comes from one source."""
        masses = bool(self.mass or self.fit_mass)
        clashes = {
            "give q or markers, not both: the markers' angles become q.": self.q and self.markers,
            "with markers, velocities come from the angles; leave v and p out.": (
                self.markers and (self.v or self.p)
            ),
            "a pivot belongs to markers; name the marker's x and y columns (markers).": (
                (self.pivot or self.fit_pivot) and not self.markers
            ),
            "give the position of the pivot or fit it, not both.": self.pivot and self.fit_pivot,
            "give a time column or a sampling rate, not both.": self.rate and self.time,
            "momenta come from one source: give one of p (measured), mass and system.": (
                masses and (self.system is not None or self.p)
            ),
            "positions_only leaves out velocities and momenta; leave v, p and mass out.": (
                self.positions_only and (self.v or self.p or masses)
            ),
            "edges concern computed velocities; with positions_only there are none.": (
                self.positions_only and self.edges != "mark"
            ),
            "keep_times keeps the times of the file; leave dt out.": self.keep_times and self.dt,
            "masses are fitted on a uniform grid; leave keep_times out.": (
                self.keep_times and self.fit_mass
            ),
        }
        for message, clash in clashes.items():
            if clash:
                raise UserError(message)
        if self.pivot and len(self.pivot) != 2:
            raise UserError(f"pivot needs x and y; got {len(self.pivot)} numbers.")

    def _check_split(self) -> None:
        fits = len(self.split) in (2, 3) and all(x > 0 for x in self.split)
        if not fits or abs(math.fsum(self.split) - 1) > 1e-9:
            raise UserError(
                f"split needs two or three positive fractions that add up to 1, such as "
                f"0.7,0.15,0.15; got {','.join(f'{x:g}' for x in self.split)}."
            )
        if self.test_trials is not None and len(self.split) != 2:
            raise UserError(
                "test_trials already names the test part; split the others into two fractions "
                "(train, validation) or leave split out."
            )

    @classmethod
    def names(cls) -> frozenset[str]:
        """The names of all options."""
        return frozenset(f.name for f in dataclasses.fields(cls))

    @classmethod
    def of(cls, **options: Any) -> "ImportOptions":
        """From keyword arguments; an unknown one is the user's mistake."""
        unknown = sorted(set(options) - cls.names())
        if unknown:
            there = ", ".join(sorted(cls.names()))
            raise UserError(f"there is no import option {unknown[0]!r}; they are {there}.")
        for name in (*_WORDS, *_NUMBERS):
            if name in options:
                value, kind = options[name], str if name in _WORDS else float
                if value is None:
                    value = ()
                values = (value,) if isinstance(value, str | int | float) else tuple(value)
                options[name] = tuple(_as(kind, name, x) for x in values)
        for name, kind in (
            ("time", str),
            ("trial", str),
            *((x, float) for x in (*_POSITIVE, "from_", "to")),
        ):
            if options.get(name) is not None:
                options[name] = _as(kind, name, options[name])
        if "params" in options:
            options["params"] = {k: _as(float, k, x) for k, x in options["params"].items()}
        return cls(**options)


def _as(kind: type, name: str, value: Any) -> Any:
    try:
        return kind(value)
    except (TypeError, ValueError):
        raise UserError(f"{name} must be a number; got {value!r}.") from None
