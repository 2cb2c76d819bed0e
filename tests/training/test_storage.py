import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from dhn.errors import UserError
from dhn.training.storage import (
    DamagedFile,
    checksum,
    fill_tree,
    load_arrays,
    save_arrays,
    tree_arrays,
    understanding,
)


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
    header = json.dumps({"layout": 5, "kind": "thing"})
    save_file({"a": np.zeros(1)}, path, metadata={"dhn": header})
    with pytest.raises(DamagedFile, match="it has no checksum"):
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


def test_no_byte_can_change_unnoticed(tmp_path):
    """A bit of every byte of a small file is flipped in turn, and each flip is noticed."""
    path = tmp_path / "x.safetensors"
    save_arrays(path, {"kind": "thing", "x": [1.5, "ä"]}, {"a": np.arange(3.0), "b": np.int32(7)})
    whole = path.read_bytes()
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        with pytest.raises(UserError) as caught:
            load_arrays(path, "thing")
        assert "\n" not in str(caught.value)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
headers = st.dictionaries(st.sampled_from(["layout", "kind", "version", "x"]), values) | values


@given(header=headers, layout=st.sampled_from([4, 5, None]))
@settings(max_examples=60)
def test_any_header_is_read_or_refused_in_one_line(tmp_path_factory, header, layout):
    """Headers with a right checksum, so that nothing but the values can be wrong."""
    if isinstance(header, dict) and layout is not None:
        header = {**header, "layout": layout}
    text, path = json.dumps(header), tmp_path_factory.getbasetemp() / "any.safetensors"
    arrays = {"a": np.zeros(1)}
    save_file(arrays, path, metadata={"dhn": text, "sha256": checksum(text, arrays)})
    try:
        found, _ = load_arrays(path, "thing", {"x": (int, float)})
        assert found["kind"] == "thing" and isinstance(found["x"], int | float)
    except UserError as error:
        assert "\n" not in str(error)


FIELDS = [
    ({"n": int}, "lacks 'n' in its header"),
    ({"x": int}, r"'x' in its header must be an integer, got '1.5'"),
    ({"flag": int}, "'flag' in its header must be an integer, got 'True'"),
    ({"x": (dict, type(None))}, "'x' in its header must be an object or null"),
]


@pytest.mark.parametrize("fields, message", FIELDS)
def test_headers_are_checked(tmp_path, fields, message):
    path = tmp_path / "x.safetensors"
    save_arrays(path, {"kind": "thing", "x": 1.5, "flag": True}, {"a": np.zeros(1)})
    with pytest.raises(UserError, match=message):
        load_arrays(path, "thing", fields)
    load_arrays(path, "thing", {"x": (int, float), "flag": bool})


def test_values_that_are_not_understood_are_one_line():
    message = r"run/x holds values .* \(KeyError: 'width'\); use another"
    with pytest.raises(UserError, match=message), understanding("run/x"):
        raise KeyError("width")
    with pytest.raises(UserError, match=r"^mine$"), understanding("run/x"):
        raise UserError("mine")
