"""Measured files to trajectories: columns, gaps, noise, velocities, momenta, segments."""

from dhn.files.foreign.importing import Imported as Imported
from dhn.files.foreign.importing import import_measured as import_measured
from dhn.files.foreign.importing import read_measured as read_measured
from dhn.files.foreign.importing import run_import as run_import
from dhn.files.foreign.importing import wants_import as wants_import
from dhn.files.foreign.options import ImportOptions as ImportOptions
from dhn.files.foreign.parts import PARTS as PARTS
from dhn.files.foreign.parts import WHOLE as WHOLE
from dhn.files.foreign.report import ImportReport as ImportReport
