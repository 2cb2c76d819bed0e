"""Readers and writers of trajectory files; `foreign` imports other people's files."""

from dhn.files.accepting import as_trajectories as as_trajectories
from dhn.files.accepting import from_dataframe as from_dataframe
from dhn.files.files import FORMATS as FORMATS
from dhn.files.files import read as read
from dhn.files.files import write as write
from dhn.files.files import write_all as write_all
from dhn.files.stored import StoredTrajectories as StoredTrajectories
from dhn.files.stored import open as open
