"""Measured files to trajectories: columns, gaps, noise, velocities, momenta, segments."""

from dhn.files.foreign.importing import (
    Imported,
    import_measured,
    read_measured,
    run_import,
    wants_import,
)
from dhn.files.foreign.options import ImportOptions
from dhn.files.foreign.report import ImportReport

__all__ = [
    "ImportOptions",
    "ImportReport",
    "Imported",
    "import_measured",
    "read_measured",
    "run_import",
    "wants_import",
]
