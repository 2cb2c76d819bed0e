"""Readers and writers of trajectory files; `foreign` imports other people's files."""

from dhn.files.files import read as read
from dhn.files.files import write as write
from dhn.files.files import write_all as write_all
from dhn.files.loading import FORMATS as FORMATS
