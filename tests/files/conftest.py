"""A machine with little memory."""

import pytest

from dhn import memory


@pytest.fixture
def little_memory(monkeypatch):
    """A megabyte is free."""
    monkeypatch.setattr(memory, "available_memory", lambda: 10**6)
