"""Trajectories that are read by rows, so that memory does not grow with their number."""

import abc
from collections.abc import Iterator
from typing import final

from dhn.checks import whole
from dhn.trajectories.container import Trajectories

PIECE = 4096
"""Trajectories held in memory at a time."""


class AbstractSource(abc.ABC):
    """Trajectories that are read by rows."""

    count: int
    """Number of trajectories."""
    states: int
    """Number of states `T` of each, padding included."""
    dim: int
    """Number of coordinates `d`."""

    def __len__(self) -> int:
        return self.count

    @abc.abstractmethod
    def rows(self, first: int, stop: int) -> Trajectories:
        """The trajectories from number `first` up to, but not including, `stop`.

        Arguments:
            first: At least 0.
            stop: At most the number of trajectories.

        Returns:
            These trajectories, with their own ids.
        """

    def pieces(self, size: int = PIECE) -> Iterator[Trajectories]:
        """All trajectories in order, `size` at a time.

        Arguments:
            size: Trajectories of a piece; the last one may have fewer.

        Returns:
            The pieces, each read when it is asked for.
        """
        for first in range(0, len(self), whole("size", size)):
            yield self.rows(first, min(first + size, len(self)))


@final
class InMemory(AbstractSource):
    """Trajectories that are in memory already."""

    def __init__(self, data: Trajectories):
        self.data = data
        self.count, self.states, self.dim = len(data), data.states, data.dim

    def rows(self, first: int, stop: int) -> Trajectories:
        return self.data[first:stop]
