"""Hypothesis: whatever stands in the header of a model file, loading is right or one line."""

import json

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import dhn
from dhn.training.storage import load_arrays, save_arrays

SETTINGS = hypothesis.settings(
    max_examples=60, database=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=5), x, max_size=3),
    max_leaves=5,
)
FILES = {
    "run": ("model.safetensors", "model"),
    "mech": ("mechanics.safetensors", "mechanical model"),
}


def paths(header, prefix=()):
    """Every place in a header."""
    for key, value in header.items():
        yield (*prefix, key)
        if isinstance(value, dict):
            yield from paths(value, (*prefix, key))


def changed(header, path, value):
    header = json.loads(json.dumps(header))
    holder = header
    for key in path[:-1]:
        holder = holder[key]
    if value is ...:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return header


@pytest.mark.parametrize("name", FILES)
@SETTINGS
@hypothesis.given(drawn=st.data())
def test_a_changed_header_is_understood_or_refused(world, tmp_path, name, drawn):
    """The checksum is made anew, so that what is stored itself is judged."""
    file, kind = FILES[name]
    header, arrays = load_arrays(world / name / file, kind)
    path = drawn.draw(st.sampled_from(sorted(paths(header))))
    value = drawn.draw(st.just(...) | VALUES)
    save_arrays(tmp_path / file, changed(header, path, value), arrays)
    try:
        dhn.load(tmp_path)
    except dhn.UserError as error:
        assert "\n" not in str(error)
    finally:
        (tmp_path / file).unlink()


@pytest.mark.parametrize("name", FILES)
@SETTINGS
@hypothesis.given(drawn=st.data())
def test_a_changed_array_is_understood_or_refused(world, tmp_path, name, drawn):
    file, kind = FILES[name]
    header, arrays = load_arrays(world / name / file, kind)
    key = drawn.draw(st.sampled_from(sorted(arrays)))
    how = drawn.draw(st.sampled_from(["gone", "longer", "flat", "nan", "text"]))
    old = arrays.pop(key)
    if how != "gone":
        arrays[key] = {
            "longer": np.concatenate([old.reshape(-1)] * 2),
            "flat": old.reshape(-1)[:0],
            "nan": np.full(old.shape, np.nan),
            "text": np.frombuffer(b"hello!!!", np.uint8),
        }[how]
    save_arrays(tmp_path / file, header, arrays)
    try:
        found = dhn.load(tmp_path)
        assert how != "nan" or old.dtype.kind != "f" or old.size == 0, f"NaN in {key}: {found}"
    except dhn.UserError as error:
        assert "\n" not in str(error)
    finally:
        (tmp_path / file).unlink()
