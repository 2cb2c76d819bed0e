import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import save_file

from dhn.errors import UserError
from dhn.training.storage import fill_tree, load_arrays, save_arrays, tree_arrays


def test_round_trip_is_exact_for_any_memory_layout(tmp_path):
    path = tmp_path / "model.safetensors"
    base = np.random.default_rng(0).normal(size=(4, 6))
    arrays = {
        "transposed": base.T,
        "strided": base[::2, ::3].astype(np.float32),
        "scalar": np.array(3, np.int32),
        "device": jnp.arange(5),
    }
    save_arrays(path, {"kind": "thing", "note": "Größe", "x": [0.1, None]}, arrays)
    metadata, loaded = load_arrays(path, "thing")
    assert metadata["note"] == "Größe" and metadata["x"] == [0.1, None]
    assert metadata["version"]
    for name, array in arrays.items():
        assert loaded[name].dtype == array.dtype and loaded[name].shape == array.shape
        np.testing.assert_array_equal(loaded[name], array)
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]


def test_trees_are_filled_by_path(tmp_path):
    tree = {"a": (jnp.arange(3.0), None), "b": [jnp.zeros((2, 2))]}
    arrays = tree_arrays(tree)
    found = fill_tree(jax.tree.map(jnp.zeros_like, tree), arrays, "file")
    np.testing.assert_array_equal(found["a"][0], np.arange(3.0))
    assert found["a"][1] is None
    with pytest.raises(UserError, match="file lacks \"\\['c'\\]\"; it belongs to another model"):
        fill_tree({"c": jnp.zeros(1)}, arrays, "file")
    with pytest.raises(UserError, match=r"has shape \(3,\) of float32, expected \(4,\)"):
        fill_tree({"a": (jnp.zeros(4), None)}, arrays, "file")


def test_bad_files(tmp_path):
    path = tmp_path / "x.safetensors"
    with pytest.raises(UserError, match=r"x.safetensors does not exist; expected a thing"):
        load_arrays(path, "thing")
    save_arrays(path, {"kind": "thing"}, {"a": np.arange(100.0)})
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"hello", whole[:20]):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"x.safetensors is damaged .*use another copy"):
            load_arrays(path, "thing")
    path.write_bytes(whole)
    with pytest.raises(UserError, match="is a thing, expected a model"):
        load_arrays(path, "model")
    save_file({"a": np.zeros(1)}, path)
    with pytest.raises(UserError, match="was not written by dhn"):
        load_arrays(path, "thing")
    header = json.dumps({"layout": 99, "version": "9.0", "kind": "thing"})
    save_file({"a": np.zeros(1)}, path, metadata={"dhn": header})
    with pytest.raises(UserError, match=r"has layout 99 \(dhn 9.0\), this dhn .* reads layout \d"):
        load_arrays(path, "thing")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.safetensors"
    save_arrays(path, {"kind": "thing"}, {"a": np.arange(3)})
    with pytest.raises(TypeError):
        save_arrays(path, {"kind": "thing", "bad": object()}, {"a": np.arange(4)})
    np.testing.assert_array_equal(load_arrays(path, "thing")[1]["a"], np.arange(3))
    assert [p.name for p in tmp_path.iterdir()] == ["x.safetensors"]
