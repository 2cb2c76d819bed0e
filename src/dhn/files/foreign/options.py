"""The options of an import as one frozen object with checks."""

import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, final

import pydantic

from dhn.errors import UserError, first_mistake

TIME_UNITS: Mapping[str, float] = {
    **{"s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0},
    **{"ms": 1e-3, "msec": 1e-3, "millisecond": 1e-3, "milliseconds": 1e-3},
    **{"us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0},
}
"""Unit of a time column -> seconds."""


def _items(value: Any) -> Any:
    """One item, a sequence or a text with commas, as a tuple."""
    if isinstance(value, str):
        value = [x.strip() for x in value.split(",")]
        if not all(value):
            raise ValueError(f"needs items separated by commas; got {','.join(value)!r}.")
    elif value is None or isinstance(value, numbers.Real):
        value = () if value is None else (value,)
    elif not isinstance(value, Iterable):
        raise ValueError(f"must be one item or a sequence; got {value!r:.60}.")
    return tuple(value)


Words = Annotated[tuple[str, ...], pydantic.BeforeValidator(lambda x: tuple(map(str, _items(x))))]
Numbers = Annotated[tuple[float, ...], pydantic.BeforeValidator(_items)]
Fitted = Annotated[
    tuple[float, ...] | Literal["fit"],
    pydantic.BeforeValidator(lambda x: x if isinstance(x, str) and x == "fit" else _items(x)),
]
Word = Annotated[str, pydantic.Field(min_length=1)]
Positive = Annotated[float, pydantic.Field(gt=0)]
SLOWEST, FASTEST = 1e-9, 1e15  # samples a second: one in 30 years, and a femtosecond apart


@final
class ImportOptions(pydantic.BaseModel):
    """What stands in which column, and what to make of it.

    A column is named, or given by its position from 1; in .mat, .npz and HDF5 files a column is a
    variable (`theta`), a field (`log.theta`) or one row or column of it (`Y:2`). `name=column`
    gives a coordinate another name. A star (`Y_*:1`) stands for several variables, all trials.
    Several columns or numbers are a sequence, or one text with commas.
    """

    model_config = pydantic.ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True,
        coerce_numbers_to_str=True,
    )  # fmt: skip

    time: Word | None = None
    """Column of the times. Without one: t, time, ... if there is, else `rate`."""
    q: Words = ()
    """Columns of the coordinates."""
    v: Words = ()
    """Columns of the velocities, in the order of the coordinates."""
    p: Words = ()
    """Columns of the momenta, where they are measured."""
    trial: Word | None = None
    """Column that labels the trials; `restart`: a new trial begins where time goes back."""
    markers: Words = ()
    """x and y columns of the markers on a chain of links, from the pivot to the tip."""
    pivot: Fitted = ()
    """x and y of a fixed pivot that is not among the markers, or `fit`: the centre of the circle on
    which the first marker moves."""
    y_down: bool = False
    """The markers' y axis points down, as pixels do."""
    rate: Positive | None = None
    """Samples a second, for files without times."""
    time_unit: Word | None = None
    """Unit of the times (s, ms, us, ns, min, h); else what the header states, else seconds."""
    from_: float | None = None
    """Earlier rows are left out; seconds, on the clock of the file."""
    to: float | None = None
    """Later rows are left out."""
    missing: Numbers = ()
    """Numbers that mean "no measurement", such as -9999."""
    angles: Words = ()
    """Names of the coordinates that are angles."""
    degrees: bool = False
    """Angles (all coordinates, if `angles` names none) and their velocities are in degrees."""
    zero: Numbers = ()
    """Reading of each coordinate, in the file's unit, where it should be zero; subtracted."""
    wrapped: bool = False
    """Leave angles as they are. By default they are made continuous: full turns are added where
    they jump by more than half of one, and every trajectory begins between -π and π."""
    dt: Positive | None = None
    """Spacing of a uniform grid that the rows are resampled to. By default nothing is resampled:
    rows of a regular clock keep its step, others their own times."""
    gap: Positive | None = None
    """A hole in the times longer than this many seconds begins a new trial."""
    segment: Annotated[int, pydantic.Field(ge=2)] | None = None
    """Cut every run into trajectories of this many states."""
    hop: Annotated[int, pydantic.Field(ge=1)] | None = None
    """States from the start of one segment to the next; by default the segment's length."""
    codes: Literal["own", "run", "all"] = "run"
    """Which trajectories share a latent code: none (`own`), the segments of a `run`, or `all`."""
    split: Numbers = ()
    """Fractions of every run, in time, for train(, validation) and test."""
    test_trials: Word | None = None
    """Trials (a pattern such as `vad*`) that go to the test part as a whole."""
    validation_trials: Word | None = None
    """Trials that go to the validation part as a whole."""

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> "ImportOptions":
        """Each quantity comes from one source, and no option is without effect."""
        start, end = self.from_, self.to
        parts, sum_of_parts = len(self.split), math.fsum(self.split)
        pivot_numbers = 2 if self.pivot in ("fit", ()) else len(self.pivot)
        clashes = {
            "give q or markers, not both: the markers' angles become q.": self.q and self.markers,
            "with markers, velocities come from the angles; leave v and p out.": (
                self.markers and (self.v or self.p)
            ),
            "a pivot belongs to markers; name the marker's x and y columns (markers).": (
                self.pivot and not self.markers
            ),
            "y_down is about markers; name the markers' x and y columns (markers).": (
                self.y_down and not self.markers
            ),
            f"pivot needs x and y; got {pivot_numbers} numbers.": pivot_numbers != 2,
            "the angles of markers follow from their places, in radians; leave degrees out.": (
                self.markers and self.degrees
            ),
            "the unit of times belongs to a column of times; with a rate, leave time_unit out.": (
                self.rate and self.time_unit
            ),
            "give a time column or a sampling rate, not both.": self.rate and self.time,
            f"the rate must lie between {SLOWEST:g} and {FASTEST:g} samples a second.": (
                self.rate and not SLOWEST <= self.rate <= FASTEST
            ),
            f"the time range is empty: from {start or 0:g} to {end or 0:g} s.": (
                start is not None and end is not None and start >= end
            ),
            "hop is the distance between segments; give segment, their length, too.": (
                self.hop is not None and self.segment is None
            ),
            f"time_unit must be one of s, ms, us, ns, min, h; got {self.time_unit!r}.": (
                self.time_unit is not None and self.time_unit not in TIME_UNITS
            ),
            f"split needs two or three positive fractions that add up to 1, such as "
            f"0.7,0.15,0.15; got {','.join(f'{x:g}' for x in self.split)}.": self.split
            and (parts not in (2, 3) or min(self.split) <= 0 or abs(sum_of_parts - 1) > 1e-9),
            "test_trials already names the test part; split the others into two fractions "
            "(train, validation) or leave split out.": self.test_trials and parts == 3,
            "validation_trials names whole trials; name test_trials, too, and leave split out.": (
                self.validation_trials is not None and (self.split or self.test_trials is None)
            ),
        }
        for message, clash in clashes.items():
            if clash:
                raise UserError(message)
        return self

    @classmethod
    def of(cls, **options: Any) -> "ImportOptions":
        """From keyword arguments; the first mistake is a `UserError`."""
        unknown = sorted(set(options) - set(cls.model_fields))
        if unknown:
            there = ", ".join(sorted(cls.model_fields))
            raise UserError(f"there is no import option {unknown[0]!r}; they are {there}.")
        try:
            return cls(**options)
        except pydantic.ValidationError as error:
            raise UserError(first_mistake(error)) from None
