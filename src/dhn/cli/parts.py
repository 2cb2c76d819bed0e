"""Questions about many trajectories, asked in parts: bounded memory, and progress."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from dhn.cli.waiting import Report
    from dhn.files.pieces import AbstractSource
    from dhn.trajectories import Trajectories

PART = 2048
"""Trajectories asked about at once: 1 GB at most for the answer of a few hundred states."""
Answer = TypeVar("Answer")


def in_parts(
    source: "AbstractSource", ask: "Callable[[Trajectories, int], Answer]", report: "Report"
) -> Iterator[Answer]:
    """`ask(part, number)` of every part of the source, in order, one at a time."""
    done = 0
    for number, part in enumerate(source.pieces(PART)):
        yield ask(part, number)
        done += len(part)
        report(done, len(source))
