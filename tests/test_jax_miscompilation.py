"""JAX 0.10.2 computes wrong numbers on the CPU, without a word (jax issue 39103).

Under `jit`, a matrix-vector product mapped over many rows and then reduced goes wrong from some
row on. Energies and losses have that form, so the installed JAX is put to the test instead of
being trusted by its version: with 0.10.2 four of these cases fail, with 0.10.1 none.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

# On and just past the powers of two: the fault begins past 2**14 (float64) and 2**15 (float32).
ROWS = [1, 7, 1_000, 4_097, 16_384, 16_385, 32_769, 65_537]
# With XLA's defaults, which tests/conftest.py changes.
DEFAULTS = {"xla_backend_optimization_level": 3, "xla_cpu_use_fusion_emitters": True}
compiled = functools.partial(jax.jit, compiler_options=DEFAULTS)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [2, 3, 5])
@pytest.mark.parametrize("rows", ROWS)
def test_mapped_product_then_reduction_matches_numpy(rows, width, dtype):
    generator = np.random.default_rng(rows * width)
    matrix = generator.normal(size=(width, width)).astype(dtype)
    states = generator.normal(size=(rows, width)).astype(dtype)
    truth = ((states @ matrix.T) ** 2).sum(-1)

    with jax.enable_x64(dtype is np.float64):
        # The matrix is a constant of the program, as in the report; and an argument, as weights.
        enclosed = compiled(jax.vmap(lambda x: jnp.sum((jnp.asarray(matrix) @ x) ** 2)))(states)
        passed = compiled(jax.vmap(lambda x, a: jnp.sum((a @ x) ** 2), (0, None)))(states, matrix)

    tolerance = 100 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(enclosed, truth, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(passed, truth, rtol=tolerance, atol=tolerance)
