"""The lazy optimiser of the codebook is Adam on the rows it touches, and nothing on the others."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

from dhn.codes.codebook import CodebookState, update_rows


def test_rows_follow_adam_and_others_rest():
    rng = np.random.default_rng(0)
    rows, size = 7, 3
    state = CodebookState.start(jr.key(0), rows, size, 0.0, jnp.float32)
    adam = optax.adam(0.01)
    codes = [jnp.zeros(size)] * rows
    moments = [adam.init(code) for code in codes]
    for _ in range(20):
        index = rng.integers(0, rows - 1, 4)  # with repetitions; the last row never comes
        gradient = rng.normal(size=(4, size)).astype(np.float32)
        state = update_rows(state, jnp.asarray(index), jnp.asarray(gradient), jnp.float32(0.01))
        for row in set(index.tolist()):
            total = jnp.asarray(gradient[index == row].sum(0))
            update, moments[row] = adam.update(total, moments[row])
            codes[row] = codes[row] + update
    np.testing.assert_allclose(state.rows, np.stack(codes), atol=2e-6)
    assert np.all(state.rows[-1] == 0) and int(state.count[-1]) == 0
    assert np.all(state.mean[-1] == 0) and np.all(state.square[-1] == 0)


def test_a_row_past_the_end_is_ignored():
    state = CodebookState.start(jr.key(0), 3, 2, 0.0, jnp.float32)
    state = update_rows(state, jnp.array([1, 1, 1]), jnp.ones((3, 2)), jnp.float32(0.1))
    np.testing.assert_array_equal(state.count, [0, 1, 0])
    np.testing.assert_allclose(state.rows[1], -0.1, rtol=1e-5)
