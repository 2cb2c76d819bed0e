"""Whether something fits into this machine's memory, asked before it is allocated."""

import os
from pathlib import Path

from dhn.errors import UserError

SHARE = 0.9
"""Share of the free memory that may be asked for; the rest is for the interpreter and others."""


def available_memory() -> int | None:
    """Bytes that this process may still allocate, or None where the system gives no number.

    The least of what the kernel calls available and what a container's limit leaves.
    """
    found = [value for value in (_kernel(), _container()) if value is not None]
    return min(found) if found else None


def check_memory(
    needed: float | int, what: str, remedy: str = "use less data, or a larger machine"
) -> None:
    """A `UserError` if `needed` bytes are more than this machine has left.

    Arguments:
        needed: An estimate of the peak, in bytes.
        what: What needs them, as the subject of a sentence.
        remedy: What to do instead, as an imperative.
    """
    there = available_memory()
    if there is not None and needed > SHARE * there:
        raise UserError(
            f"{what} would need about {size_text(needed)} of memory, and {size_text(there)} are "
            f"free here; {remedy}."
        )


def size_text(count: float | int) -> str:
    """`24.1 GB`, for people."""
    for unit, size in (("EB", 1e18), ("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count / 1e3:.3g} kB"


def disk_size(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(x.stat().st_size for x in files if x.is_file())


def _kernel() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(x.split()[1]) * 1024 for x in lines if x.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        pass
    try:  # no Linux: all of the memory, free or not
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _container(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What the memory limit of the control group leaves (versions 2 and 1)."""
    files = (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    )
    for limit, used in files:
        try:
            return max(int((root / limit).read_text()) - int((root / used).read_text()), 0)
        except (OSError, ValueError):  # not that version, or "max": no limit
            continue
    return None
