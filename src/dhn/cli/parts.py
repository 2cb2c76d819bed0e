"""Questions about many trajectories, asked in parts: bounded memory, and progress."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from dhn.cli.waiting import Report
    from dhn.trajectories import Trajectories

PART = 2048
"""Trajectories asked about at once: 1 GB at most for the answer of a few hundred states."""
Answer = TypeVar("Answer")


def in_parts(
    data: "Trajectories", ask: "Callable[[Trajectories, int], Answer]", report: "Report"
) -> list[Answer]:
    """`ask(part, number)` of every part of `data`, in order."""
    found = []
    for first in range(0, len(data), PART):
        found.append(ask(data[first : first + PART], first // PART))
        report(min(first + PART, len(data)), len(data))
    return found


def joined(parts: "list[Trajectories]") -> "Trajectories":
    """All trajectories of the parts."""
    from dhn.trajectories import Trajectories

    return parts[0] if len(parts) == 1 else Trajectories.concatenate(parts)
