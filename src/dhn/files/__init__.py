"""Readers and writers of trajectory files; `foreign` imports other people's files."""

from dhn.files.files import FORMATS as FORMATS
from dhn.files.files import read as read
from dhn.files.files import write as write
