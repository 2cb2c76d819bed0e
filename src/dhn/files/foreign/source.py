"""The contents of a measured file before columns are mapped: one table a recording."""

import dataclasses
from collections.abc import Mapping
from typing import final

from dhn.files.table import Table


@final
@dataclasses.dataclass(frozen=True)
class Source:
    """The rows of one recording as they stand in the file."""

    label: str
    """Name of the recording: the file's, or the file's and the variable's."""
    table: Table
    units: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Column -> unit, as the file states it."""
    notes: tuple[str, ...] = ()
    """What had to be assumed to read it."""
    warnings: tuple[str, ...] = ()
    """What was assumed and may well be wrong."""
    dropped: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """Reason -> number of lines left out."""
    rate: float | None = None
    """Samples a second, where the file states it."""
    angles: frozenset[str] = frozenset()
    """Columns that are angles, where the file states it."""
    coordinates: tuple[str, ...] = ()
    """Columns that are coordinates, where the file states it."""
