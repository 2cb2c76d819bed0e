"""Batches of rows, on one core or several."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dhn.codes.batches import in_batches


@pytest.mark.parametrize("cores", ["1", "3"])
@pytest.mark.parametrize("rows", [1, 15, 64, 200])
def test_rows_come_back_in_order(monkeypatch, cores, rows):
    monkeypatch.setenv("NPROC", cores)
    shapes, threads = set(), set()

    def function(x):
        shapes.add(x["a"].shape)
        threads.add(threading.get_ident())
        return x["a"] * 2 + x["b"][:, None]

    a, b = np.arange(2.0 * rows).reshape(rows, 2), np.arange(float(rows))
    found = in_batches(function, {"a": a, "b": b}, 64)
    np.testing.assert_array_equal(found, 2 * a + b[:, None])
    assert len(shapes) == 1  # one compilation
    assert (threading.get_ident() not in threads) is (cores == "3" and rows >= 64)


@pytest.mark.parametrize("wide", [True, False])
def test_precision_reaches_the_threads(monkeypatch, wide):
    monkeypatch.setenv("NPROC", "2")
    with jax.enable_x64(wide):
        found = in_batches(lambda x: jnp.sin(x), np.arange(128.0), 256)
    assert found.dtype == (np.float64 if wide else np.float32)
