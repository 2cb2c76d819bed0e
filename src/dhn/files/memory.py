"""Checks sizes that a file declares against the free memory, before anything is allocated."""

import os
from pathlib import Path

from dhn.errors import UserError

_CGROUP = Path("/sys/fs/cgroup")
_GIGABYTE = 1e9  # bytes


def available_memory() -> int | None:
    """Bytes that can still be allocated, or None where the platform does not say."""
    found = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
        limit = (_CGROUP / "memory.max").read_text().strip()
        if limit != "max":
            found.append(int(limit) - int((_CGROUP / "memory.current").read_text()))
    except (OSError, ValueError, IndexError):
        pass  # no Linux, or no container
    if not found and hasattr(os, "sysconf"):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(found, default=None)


def check_memory(size: int, what: str) -> None:
    """Raise a `UserError` if `size` bytes are more than the free memory.

    Arguments:
        size: Bytes that are about to be allocated.
        what: Subject of the message, such as "its arrays".
    """
    free = available_memory()
    if free is not None and size > free:
        raise UserError(
            f"{what} would take {size / _GIGABYTE:.3g} GB of memory, but {free / _GIGABYTE:.3g} GB "
            f"are free; if the file is right, read it in parts on a larger machine."
        )
