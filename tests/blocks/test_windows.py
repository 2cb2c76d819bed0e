"""Windows: every valid one is found, none over an unknown state; cutting takes the right ones."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dhn.blocks import StateBlock, cut_windows, window_starts
from dhn.errors import UserError

masks = hnp.arrays(bool, st.tuples(st.integers(1, 4), st.integers(1, 12)))


def by_hand(known, length, spacing):
    """The definition, read aloud."""
    n, states = known.shape
    return {
        (i, start)
        for i in range(n)
        for start in range(states)
        if all(
            start + k * spacing < states and known[i, start + k * spacing] for k in range(length)
        )
    }


@given(masks, st.integers(1, 5), st.integers(1, 4))
def test_exactly_the_valid_windows_are_found(known, length, spacing):
    expected = by_hand(known, length, spacing)
    if expected:
        starts = window_starts(known, length, spacing)
        assert starts.dtype == np.int32 and starts.shape == (len(expected), 2)
        assert {tuple(row) for row in starts.tolist()} == expected
    else:
        with pytest.raises(UserError, match=r"a window needs|no run of"):
            window_starts(known, length, spacing)


def test_too_short_trajectories_say_how_many_states_are_needed():
    with pytest.raises(UserError, match=r"needs 9 states \(3 of them, 4 apart\).*have only 8"):
        window_starts(np.ones((2, 8), bool), 3, 4)


def test_data_full_of_gaps_say_so():
    with pytest.raises(UserError, match="no run of 2 known states, 1 apart, without a gap"):
        window_starts(np.array([[True, False, True]]), 2)


@pytest.mark.parametrize("spacing", [1, 2, 3])
def test_cutting_takes_the_states_of_that_trajectory_at_those_times(spacing):
    """States that carry their own address: `q = (trajectory, time)`, `p` its negative."""
    address = np.stack(np.meshgrid(np.arange(4), np.arange(12), indexing="ij"), -1).astype(float)
    states = StateBlock(jnp.asarray(address), -jnp.asarray(address))
    starts = window_starts(np.ones((4, 12), bool), 3, spacing)
    windows = cut_windows(states, jnp.asarray(starts[:, 0]), jnp.asarray(starts[:, 1]), 3, spacing)
    assert windows.q.shape == (len(starts), 3, 2)
    times = starts[:, 1, None] + spacing * np.arange(3)
    np.testing.assert_array_equal(windows.q[..., 0], np.repeat(starts[:, :1], 3, axis=1))
    np.testing.assert_array_equal(windows.q[..., 1], times)
    np.testing.assert_array_equal(windows.p, -windows.q)
