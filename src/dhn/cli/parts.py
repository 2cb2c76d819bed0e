"""Questions about many trajectories, asked in parts: bounded memory, and progress."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from dhn.cli.waiting import Report
    from dhn.files import StoredTrajectories
    from dhn.trajectories import Trajectories

PART = 2048
"""Trajectories asked about at once: 1 GB at most for the answer of a few hundred states."""
Answer = TypeVar("Answer")


def parts_of(path: Path) -> "Iterator[Trajectories]":
    """The trajectories of a file, a part at a time; a .zarr folder is never read whole."""
    from dhn.files import open, read
    from dhn.files.stored import is_store

    if is_store(path):
        yield from open(path).pieces(PART)
    else:
        yield from split(read(path))


def split(data: "Trajectories") -> "Iterator[Trajectories]":
    """Parts of trajectories that are in memory."""
    for first in range(0, len(data), PART):
        yield data[first : first + PART]


def parts_in(data: "Trajectories | StoredTrajectories") -> "Iterator[Trajectories]":
    """Parts of trajectories that are in memory or on disk."""
    from dhn.files import StoredTrajectories

    return data.pieces(PART) if isinstance(data, StoredTrajectories) else split(data)


def in_parts(
    data: "Trajectories | StoredTrajectories",
    ask: "Callable[[Trajectories, int], Answer]",
    report: "Report",
) -> "Iterator[Answer]":
    """`ask(part, number)` of every part of `data`, in order."""
    for number, part in enumerate(parts_in(data)):
        yield ask(part, number)
        report(min((number + 1) * PART, len(data)), len(data))


@contextlib.contextmanager
def saving(path: Path) -> "Iterator[Callable[[Trajectories], None]]":
    """Write parts one after the other: to a .zarr folder at once, elsewhere all at the end."""
    from dhn.cli.outputs import save_result
    from dhn.files.stored import is_store, writing

    if is_store(path):
        with writing(path) as store:
            yield store.append
        return
    parts: list[Trajectories] = []
    yield parts.append
    save_result(joined(parts), path)


def joined(parts: "Iterable[Trajectories]") -> "Trajectories":
    """All trajectories of the parts."""
    from dhn.trajectories import Trajectories

    every = list(parts)
    return every[0] if len(every) == 1 else Trajectories.concatenate(every)
