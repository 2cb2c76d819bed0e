"""Exact models are checked in float64, whatever the rest of the suite uses."""

import jax
import pytest


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield
