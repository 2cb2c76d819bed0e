"""Measured files to trajectories: columns, gaps, noise, velocities, momenta, segments."""

from dhn.data.measured.importing import (
    Imported,
    import_measured,
    read_measured,
    run_import,
    wants_import,
)
from dhn.data.measured.options import ImportOptions
from dhn.data.measured.report import ImportReport
from dhn.data.measured.segments import code_groups, is_measured, run_of

__all__ = [
    "ImportOptions",
    "ImportReport",
    "Imported",
    "code_groups",
    "import_measured",
    "is_measured",
    "read_measured",
    "run_import",
    "run_of",
    "wants_import",
]
