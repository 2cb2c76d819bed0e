"""How a window splits into blocks, for every legal block size and stride."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dhn.blocks import BlockSpec
from dhn.errors import UserError

sizes = st.integers(1, 12)
strides = st.integers(0, 12)


@given(sizes, strides)
def test_blocks_have_one_length_and_lie_a_stride_apart(b, s):
    spec = BlockSpec(b, s, 0.5)
    window = np.arange(spec.window_length)
    source, target = window[spec.source], window[spec.target]
    assert len(window) == b + s
    assert len(source) == len(target) == b
    np.testing.assert_array_equal(target - source, s)
    assert source[0] == 0 and target[-1] == window[-1]
    assert len(np.intersect1d(source, target)) == max(b - s, 0)
    assert spec.lag == s * 0.5


@given(sizes, strides)
def test_every_state_is_in_a_block_or_between_them(b, s):
    spec = BlockSpec(b, s)
    window = np.arange(spec.window_length)
    between = window[spec.between]
    assert len(between) == max(s - b, 0)
    joined = np.concatenate([window[spec.source], between, window[spec.target]])
    np.testing.assert_array_equal(np.unique(joined), window)


@given(sizes, strides)
def test_a_step_appends_what_follows_the_context(b, s):
    """The new states are the target's last ones, and they are the window's last ones."""
    spec = BlockSpec(b, s)
    window = np.arange(spec.window_length)
    assert spec.context_length + spec.step_length == spec.window_length
    new = window[spec.target][b - spec.step_length :]
    np.testing.assert_array_equal(new, window[spec.context_length :])
    assert set(window[spec.source]) <= set(range(spec.context_length))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1), "block_size must be at least 1; got 0."),
        ((1, -1), "stride must be 0 or more; got -1."),
        ((1, 1, 0.0), "time_step must be positive; got 0.0."),
        ((1, 1, float("nan")), "time_step must be positive; got nan."),
    ],
)
def test_impossible_blocks_are_refused(arguments, message):
    with pytest.raises(UserError, match=message):
        BlockSpec(*arguments)
