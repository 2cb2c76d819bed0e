"""Mask algebra: how many tokens are unknown, and which, for any block size and stride."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dhn.blocks import (
    BlockSpec,
    Known,
    autoregressive,
    autoregressive_text,
    draw_known,
    get_mask,
    mixture,
    random_half,
    register_mask,
    superresolution,
)
from dhn.errors import UserError

specs = st.builds(BlockSpec, st.integers(1, 4), st.integers(0, 4))
with_a_middle = specs.filter(
    lambda spec: spec.window_length >= 3 and spec.stride <= spec.block_size
)
keys = st.integers(0, 2**31 - 1).map(jr.key)
WINDOWS = 64

few = settings(max_examples=12)


def drawn(pattern, spec, key):
    """`(windows, time)` for q and for p, in numpy."""
    return tuple(np.asarray(part) for part in draw_known(key, pattern, spec, WINDOWS))


@few
@given(specs, keys)
def test_autoregressive_leaves_exactly_the_new_states_unknown(spec, key):
    for known in drawn(autoregressive, spec, key):
        expected = np.arange(spec.window_length) < spec.window_length - spec.step_length
        np.testing.assert_array_equal(known, np.broadcast_to(expected, known.shape))
        assert known[:, spec.source].all(), "all of the source block is known"
        assert (~known[:, spec.target]).sum() == WINDOWS * min(spec.stride, spec.block_size)


@few
@given(with_a_middle, keys)
def test_superresolution_knows_the_ends_and_not_the_middle(spec, key):
    q, p = drawn(superresolution, spec, key)
    np.testing.assert_array_equal(q, p)
    length = spec.window_length
    unknown = np.flatnonzero(~q[0])
    assert q[:, 0].all() and q[:, -1].all()
    assert len(unknown) == min(max(spec.stride, 1), length - 2)
    np.testing.assert_array_equal(np.diff(unknown), 1)
    # In the middle: the two known sides differ by one state at most.
    assert abs(unknown[0] - (length - 1 - unknown[-1])) <= 1


@pytest.mark.parametrize(("b", "s"), [(1, 1), (1, 0), (2, 0), (1, 2)])
def test_superresolution_needs_a_middle(b, s):
    with pytest.raises(UserError, match=r"at least 3 states .* has .*Use block_size=2, stride=1"):
        superresolution(jr.key(0), BlockSpec(b, s))


@pytest.mark.parametrize(("b", "s"), [(1, 1), (2, 1), (3, 2), (4, 2)])
def test_the_texts_forward_mask_differs_from_the_codes_unless_s_is_half_of_b(b, s):
    """The last `b - s` states unknown, and the last `s`."""
    spec = BlockSpec(b, s)
    if s == b:
        with pytest.raises(UserError, match=r"needs 1 <= stride < block_size; got block_size=1"):
            autoregressive_text(jr.key(0), spec)
        return
    text = np.asarray(autoregressive_text(jr.key(0), spec).q)
    np.testing.assert_array_equal(np.flatnonzero(~text), np.arange(b + s)[-(b - s) :])
    same = (text == np.asarray(autoregressive(jr.key(0), spec).q)).all()
    assert same == (2 * s == b)


@few
@given(specs, keys)
def test_random_leaves_half_of_each_block_unknown_in_every_window(spec, key):
    for known in drawn(random_half, spec, key):
        if spec.block_size == 1:
            assert ((~known).sum(1) == 1).all() or spec.stride == 0
            continue
        for block in (spec.source, spec.target):
            np.testing.assert_array_equal((~known[:, block]).sum(1), spec.block_size // 2)
        assert known[:, spec.between].all()


def test_every_half_of_either_block_is_equally_likely():
    """Also of the target, whose half is drawn after the source's: 6 halves, 4096 draws."""
    spec = BlockSpec(4, 1)
    known = np.asarray(draw_known(jr.key(0), random_half, spec, 4096).q)
    for block in (spec.source, spec.target):
        _, counts = np.unique(known[:, block], axis=0, return_counts=True)
        assert len(counts) == 6
        # Five standard deviations of a fair count.
        assert np.abs(counts - 4096 / 6).max() < 5 * np.sqrt(4096 * 5 / 36)


def test_one_draw_can_serve_a_whole_batch():
    q, p = draw_known(jr.key(1), random_half, BlockSpec(8, 4), 50, shared=True)
    assert q.shape == (50, 12) and (q == q[0]).all() and (p == p[0]).all()


def test_random_masks_reach_every_token_and_treat_q_and_p_apart():
    q, p = drawn(random_half, BlockSpec(2, 2), jr.key(0))
    for known in (q, p):
        assert known.any(0).all() and (~known).any(0).all()
        assert len(np.unique(known, axis=0)) == 4, "one state of each block"
    assert (q != p).any()


@few
@given(with_a_middle, keys)
def test_a_mixture_draws_its_members_only_and_all_of_them(spec, key):
    every, none = (
        lambda key, spec, value=value: Known(*(jnp.full(spec.window_length, value),) * 2)
        for value in (True, False)
    )
    q, p = drawn(mixture(superresolution, every, none), spec, key)
    np.testing.assert_array_equal(q, p)
    middle = np.asarray(superresolution(key, spec).q)
    which = [(q == member).all(1) for member in (middle, True, False)]
    np.testing.assert_array_equal(np.sum(which, axis=0), 1)
    # Of 64 fair draws, a member is missing once in 10^11.
    assert all(members.any() for members in which)


@few
@given(specs, keys)
def test_mixed_windows_are_of_a_known_kind(spec, key):
    q, p = drawn(get_mask("mixed"), spec, key)
    half = np.asarray(max(1, spec.block_size // 2))
    same = np.asarray(autoregressive(key, spec).q)
    ends = q[:, 0] & q[:, -1] & (q == p).all(1) if spec.window_length >= 3 else False
    random = ((~q[:, spec.source]).sum(1) <= half) & ((~p[:, spec.target]).sum(1) <= half)
    assert (((q == same) & (p == same)).all(1) | random | ends).all()


def test_the_same_key_draws_the_same_masks():
    spec = BlockSpec(4, 2)
    first, again = (drawn(random_half, spec, jr.key(5)) for _ in range(2))
    other = drawn(random_half, spec, jr.key(6))
    np.testing.assert_array_equal(first, again)
    assert (first[0] != other[0]).any()


def test_a_mask_of_your_own_is_known_by_its_name():
    def only_momenta(key, spec):
        length = spec.window_length
        return Known(jnp.zeros(length, bool), jnp.ones(length, bool))

    register_mask("only-momenta", only_momenta)
    register_mask("only-momenta", only_momenta)  # importing a module twice does no harm
    assert get_mask("only-momenta") is only_momenta
    q, p = drawn(get_mask("only-momenta"), BlockSpec(2, 1), jr.key(0))
    assert not q.any() and p.all()
    with pytest.raises(UserError, match="'only-momenta' exists already"):
        register_mask("only-momenta", autoregressive)
    with pytest.raises(UserError, match="'random' exists already"):
        register_mask("random", only_momenta)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UserError, match=r"unknown mask pattern 'autoregresive'.*Did you mean"):
        get_mask("autoregresive")


@pytest.mark.parametrize(
    ("wrong", "came"),
    [
        (lambda key, spec: Known(*(jnp.ones(2, bool),) * 2), r"bool of shape \(2,\)"),
        (lambda key, spec: Known(*(jnp.ones(3),) * 2), r"float32 of shape \(3,\)"),
    ],
)
def test_a_pattern_of_the_wrong_shape_is_refused(wrong, came):
    with pytest.raises(UserError, match=f"must return 3 booleans for q and for p.*{came}"):
        draw_known(jr.key(0), wrong, BlockSpec(2, 1), 4)


def test_a_mixture_of_nothing_is_refused():
    with pytest.raises(UserError, match="at least one mask pattern"):
        mixture()


def test_masks_can_be_drawn_inside_compiled_code():
    spec = BlockSpec(2, 1)
    draw = jax.jit(lambda key: draw_known(key, get_mask("mixed"), spec, 8))
    for a, b in zip(
        draw(jr.key(1)), draw_known(jr.key(1), get_mask("mixed"), spec, 8), strict=True
    ):
        np.testing.assert_array_equal(a, b)
