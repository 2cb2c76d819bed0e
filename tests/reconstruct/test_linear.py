"""The smoother's linear algebra against dense solutions in extended precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dhn.reconstruct.linear import Terms, smooth, solve_steps

K, N, M, B, R = 9, 2, 5, 3, 2


def random_terms(seed: int, sharp: float = 1.0) -> Terms:
    """Terms of a few states; `sharp` multiplies what ties the states to each other."""
    rng = np.random.default_rng(seed)
    shapes = [(K - 1, N, M, B), (K - 1, N, M, B), (K - 1, N, M, R), (K - 1, N, M)]
    ties = [jnp.asarray(sharp * rng.normal(size=shape)) for shape in shapes]
    weight = rng.uniform(size=(K, N, B)) * (rng.random((K, N, B)) > 0.7)
    return Terms(
        *ties,
        weight=jnp.asarray(weight),
        misfit=jnp.asarray(rng.normal(size=(K, N, B))),
        prior_root=jnp.asarray(rng.normal(size=(N, R, R))),
        prior_misfit=jnp.asarray(rng.normal(size=(N, R))),
    )


def dense(terms: Terms, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Solution and covariance of trajectory `i`, by one large system in extended precision."""
    size = K * B + R
    rows, right = [], []
    for k in range(K):
        root = np.sqrt(np.asarray(terms.weight[k, i]))
        block = np.zeros((B, size), np.longdouble)
        block[:, k * B : (k + 1) * B] = np.diag(root)
        rows.append(block)
        right.append(root * np.asarray(terms.misfit[k, i]))
    for k in range(K - 1):
        block = np.zeros((M, size), np.longdouble)
        block[:, k * B : (k + 1) * B] = terms.A[k, i]
        block[:, (k + 1) * B : (k + 2) * B] = terms.B[k, i]
        block[:, K * B :] = terms.C[k, i]
        rows.append(block)
        right.append(-np.asarray(terms.e[k, i]))
    block = np.zeros((R, size), np.longdouble)
    block[:, K * B :] = terms.prior_root[i]
    rows.append(block)
    right.append(np.asarray(terms.prior_misfit[i]))
    J, y = np.concatenate(rows), np.concatenate(right).astype(np.longdouble)
    inverse = gauss_jordan(J.T @ J)
    return inverse @ (J.T @ y), inverse


def gauss_jordan(a: np.ndarray) -> np.ndarray:
    """The inverse of a matrix of extended precision, which LAPACK has not."""
    n = len(a)
    work = np.concatenate([a, np.eye(n, dtype=a.dtype)], axis=1)
    for i in range(n):
        pivot = i + int(np.argmax(np.abs(work[i:, i])))
        work[[i, pivot]] = work[[pivot, i]]
        work[i] /= work[i, i]
        for j in range(n):
            if j != i:
                work[j] -= work[j, i] * work[i]
    return work[:, n:]


@pytest.mark.parametrize(("sharp", "close"), [(1.0, 1e-10), (1e4, 1e-6)])
def test_means_and_covariances_are_exact(sharp, close):
    """To a millionth of a standard deviation, even where ties are much sharper than data."""
    with jax.enable_x64(True):
        terms = random_terms(0, sharp)
        found = smooth(terms)
        for i in range(N):
            x, covariance = dense(terms, i)
            deviation = np.sqrt(np.diag(covariance)).astype(float)
            mean = np.concatenate([np.asarray(found.x[:, i]).ravel(), np.asarray(found.c[i])])
            assert np.abs((mean - x.astype(float)) / deviation).max() < close
            for k in range(K):
                part = slice(k * B, (k + 1) * B)
                root = np.asarray(found.x_root[k, i])
                scale = np.outer(deviation[part], deviation[part])
                want = covariance[part, part].astype(float)
                assert np.abs((root @ root.T - want) / scale).max() < close
            root = np.asarray(found.c_root[i])
            scale = np.outer(deviation[K * B :], deviation[K * B :])
            want = covariance[K * B :, K * B :].astype(float)
            assert np.abs((root @ root.T - want) / scale).max() < close


def test_steps_solve_the_same_problem_and_promise_their_gain():
    with jax.enable_x64(True):
        terms = random_terms(1)
        step = solve_steps(terms, jnp.zeros(N))
        for i in range(N):
            x, covariance = dense(terms, i)
            mean = np.concatenate([np.asarray(step.x[:, i]).ravel(), np.asarray(step.c[i])])
            np.testing.assert_allclose(mean, x.astype(float), atol=1e-9)
            precision = np.linalg.inv(covariance[K * B :, K * B :].astype(float))
            np.testing.assert_allclose(step.code_hessian[i], precision, rtol=1e-7)


def test_damping_shortens_steps():
    with jax.enable_x64(True):
        terms = random_terms(2)
        free, damped = (solve_steps(terms, jnp.full(N, value)) for value in (0.0, 1e3))
        assert np.all(np.linalg.norm(damped.c, axis=1) < 1e-2 * np.linalg.norm(free.c, axis=1))
        assert np.all(damped.promise < free.promise)
