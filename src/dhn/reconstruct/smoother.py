"""The smoother: all states of a trajectory and its code at once, by Gauss-Newton along time.

Weak-constraint 4D-Var with the code as a further unknown. It minimises

    Σ known ((x - y) / r)² + Σ windows (R(window, u) / σ)² + |P (u - u₀)|²

with the measurement noise `r`, the model's residual `R` and its size `σ` after training, and the
prior of the code. `σ` is annealed: a large value first, so that the path may leave the model while
the code is still wrong, then lower and lower. The inverse Hessian gives the posterior covariance.
"""

import dataclasses
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, Key

from dhn.models.compiling import solving_jit
from dhn.models.contract import AbstractModel
from dhn.reconstruct.linear import Terms, smooth, solve_steps
from dhn.reconstruct.question import Question, interpolate_path
from dhn.reconstruct.windows import WindowTerms, grouped, linearise_windows, window_length

WEAK = 1e-6
"""Inverse variance that every scaled number has without any measurement."""


@final
@dataclasses.dataclass(frozen=True)
class Smoother:
    """Constants of the iteration."""

    first_sigma: float = 1.0
    """`σ` to begin with, in units of the first guess's root mean square residual."""
    largest_sigma: float = 0.5
    """In units of a typical change."""
    cooling: float = 0.1
    """Factor from one value of `σ` to the next."""
    most_per_level: int = 8
    """Gauss-Newton steps after which `σ` falls even if the path still moves."""
    most: int = 60
    """Gauss-Newton steps in all."""
    settled: float = 1e-3
    """Promised decrease of half the objective, a log-likelihood, that counts as no change."""
    slow: float = 1e-2
    """Decrease of half the objective by a damped step that ends the iteration: in a narrow curved
    valley steps are short, and what is left of it moves the estimate by a small share of a standard
    deviation."""
    hasty: float = 0.2
    """The same before the last `σ`, as a share of the objective."""
    first_damping: float = 1e-12
    """Share of the diagonal. It is far larger than the curvature along smooth changes of a path, so
    that a share of 1e-6 already slows these down."""
    raise_damping: float = 100.0
    lower_damping: float = 0.1
    largest_damping: float = 1e4


class CodeGaussian(NamedTuple):
    """Prior of the whitened code of each trajectory."""

    centre: Float[Any, "n r"]
    root: Float[Any, "n r r"]
    """`root.T @ root` is the precision."""


class Frame(NamedTuple):
    """From whitened to network codes."""

    mean: Float[Array, " k"]
    basis: Float[Array, "k r"]


class Path(NamedTuple):
    """Where the iteration ended."""

    states: Float[Array, "n T m"]
    code: Float[Array, "n r"]
    data_misfit: Float[Array, " n"]
    """Sum of squared measurement residuals, in units of their noise."""
    model_misfit: Float[Array, " n"]
    """Sum of squared window residuals, in units of a typical change."""
    code_hessian: Float[Array, "n r r"]
    """Precision of the code, the states marginalised."""
    prior_misfit: Float[Array, " n"]
    converged: Bool[Array, " n"]
    iterations: Int[Array, " n"]


class _Point(NamedTuple):
    states: Float[Array, "n T m"]
    code: Float[Array, "n r"]
    windows: WindowTerms


class _Carry(NamedTuple):
    at: _Point
    """The best so far."""
    states: Float[Array, "n T m"]
    code: Float[Array, "n r"]
    """Where to look next."""
    hessian: Float[Array, "n r r"]
    promise: Float[Array, " n"]
    damping: Float[Array, " n"]
    sigma: Float[Array, " n"]
    taken: Int[Array, " n"]
    corrected: Bool[Array, " n"]
    done: Bool[Array, " n"]
    count: Int[Array, " n"]


def _valid(length: Int[Any, " n"], T: int, L: int) -> Bool[Array, "n W"]:
    return jnp.arange(T - L + 1)[None] + L <= length[:, None]


def _sum(x: Any) -> Float[Array, " n"]:
    return x.reshape(x.shape[0], -1).sum(1)


def _data_misfit(question: Question, states: Float[Array, "n T m"]) -> Float[Array, " n"]:
    total = _sum(question.weight * (question.values - states) ** 2)
    between = question.between
    if between.fraction.shape[2]:
        found = interpolate_path(states, between.fraction)
        total = total + _sum(between.weight * (between.values - found) ** 2)
    return total


def _terms(
    question: Question,
    at: _Point,
    prior: CodeGaussian,
    sigma: Float[Array, " n"],
) -> Terms:
    """The linear problem at this point."""
    n, T, m = at.states.shape
    G = window_length_of(at.windows) - 1
    valid = _valid(question.length, T, G + 1)
    A, B, C, e = grouped(at.windows, valid, sigma)
    between = question.between
    if between.fraction.shape[2]:
        A, B, C, e = _with_between(between, at, A, B, C, e, G)
    K = A.shape[0] + 1
    pad = K * G - T
    # Padding is tied to nothing; weight 1 keeps it where it is.
    counted = jnp.arange(T)[None] < question.length[:, None]
    weight = jnp.where(counted[..., None], question.weight, 1.0)
    misfit = jnp.where(counted[..., None], question.values - at.states, 0.0)
    # Numbers that nothing determines stay where they are, with a very large variance.
    weight, misfit = weight + WEAK, weight * misfit / (weight + WEAK)
    weight = jnp.pad(weight, [(0, 0), (0, pad), (0, 0)], constant_values=1.0)
    misfit = jnp.pad(misfit, [(0, 0), (0, pad), (0, 0)])
    weight, misfit = (jnp.moveaxis(x.reshape(n, K, G * m), 1, 0) for x in (weight, misfit))
    away = jnp.einsum("nab,nb->na", prior.root, prior.centre - at.code)
    return Terms(A, B, C, e, weight, misfit, prior.root, away)


def linear_terms(
    model: AbstractModel,
    question: Question,
    states: Float[Array, "n T m"],
    code: Float[Array, "n r"],
    frame: Frame,
    prior: CodeGaussian,
    sigma: Float[Array, " n"],
) -> Terms:
    """The linear problem at these states and whitened codes, with exact derivatives."""
    at = _Point(states, code, linearise_windows(model, states, code, *frame))
    return _terms(question, at, prior, sigma)


def _with_between(between, at: _Point, A, B, C, e, G: int):
    """Rows for measurements off the grid; their Jacobian is that of a straight line."""
    n, I, J, m = between.values.shape
    root = jnp.sqrt(between.weight)
    miss = root * (interpolate_path(at.states, between.fraction) - between.values)
    left = root * (1 - between.fraction)[..., None]
    right = root * between.fraction[..., None]
    eye = jnp.eye(m, dtype=miss.dtype)
    groups = A.shape[0]
    pad = groups * G - I if groups * G > I else 0

    def laid(x):
        x = jnp.pad(x, [(0, 0), (0, pad)] + [(0, 0)] * (x.ndim - 2))[:, : groups * G]
        return x.reshape(n, groups, G, J, m)

    miss, left, right = laid(miss), laid(left), laid(right)
    wide = jnp.zeros((n, groups, G, J, m, 2 * G, m), miss.dtype)
    for g in range(G):
        wide = wide.at[:, :, g, :, :, g].set(left[:, :, g, :, :, None] * eye)
        wide = wide.at[:, :, g, :, :, g + 1].set(right[:, :, g, :, :, None] * eye)
    wide = jnp.moveaxis(wide.reshape(n, groups, G * J * m, 2 * G * m), 1, 0)
    miss = jnp.moveaxis(miss.reshape(n, groups, G * J * m), 1, 0)
    none = jnp.zeros((*miss.shape, C.shape[-1]), miss.dtype)
    return (
        jnp.concatenate([A, wide[..., : G * m]], axis=2),
        jnp.concatenate([B, wide[..., G * m :]], axis=2),
        jnp.concatenate([C, none], axis=2),
        jnp.concatenate([e, miss], axis=2),
    )


def window_length_of(windows: WindowTerms) -> int:
    return windows.by_state.shape[3]


@solving_jit
def iterate(
    model: AbstractModel,
    question: Question,
    code: Float[Array, "n r"],
    frame: Frame,
    prior: CodeGaussian,
    last_sigma: Float[Array, " n"],
    config: Smoother,
    most: Int[Array, ""] | None = None,
    idle: Bool[Array, " n"] | None = None,
) -> Path:
    """Levenberg-Marquardt with a falling `σ`; trajectories that have settled wait.

    Arguments:
        model: In double precision.
        question: What is known, and the first guess of the states.
        code: First guess of the whitened codes.
        frame: From whitened to network codes.
        prior: Of the whitened codes.
        last_sigma: Size of window residuals to end with; the first is that of the guess.
        config: Constants of the iteration.
        most: Gauss-Newton steps in all, if not the configuration's.
        idle: Trajectories that only fill up the batch; they stay at their guess.

    Returns:
        The most probable states and codes.
    """
    n, T, m = question.values.shape
    valid = _valid(question.length, T, window_length(model))

    def look(states, code, wanted):
        windows = linearise_windows(model, states, code, *frame, wanted, rough=True)
        return _Point(states, code, windows)

    def model_misfit(point: _Point):
        return _sum((point.windows.residual**2) * valid[..., None])

    def prior_misfit(point: _Point):
        return _sum(jnp.einsum("nab,nb->na", prior.root, point.code - prior.centre) ** 2)

    def objective(point: _Point, sigma):
        found = _data_misfit(question, point.states) + model_misfit(point) / sigma**2
        return (found + prior_misfit(point)) / 2

    def choose(mask, new, old):
        def pick(a, b):
            return jnp.where(mask.reshape(n, *[1] * (a.ndim - 1)), a, b)

        return jax.tree.map(pick, new, old)

    def body(now: _Carry) -> _Carry:
        point = look(now.states, now.code, ~now.done)
        # The first look is at the guess, whose residual is the `σ` to begin with.
        first = ~now.done & (now.count == 0)
        windows = jnp.maximum(valid.sum(1) * point.windows.residual.shape[2], 1)
        rough = config.first_sigma * jnp.sqrt(model_misfit(point) / windows)
        rough = jnp.maximum(jnp.clip(rough, last_sigma, config.largest_sigma), last_sigma)
        sigma = jnp.where(first, rough, now.sigma)
        value, best = objective(point, sigma), objective(now.at, sigma)
        best = jnp.where(first, jnp.inf, best)
        better = ((value <= best) & jnp.isfinite(value) & ~now.done) | first
        at = choose(better, point, now.at)
        # A step along a curved valley leaves it by the square of its length, which a small `σ`
        # punishes hard. One more step from there returns to the valley further on.
        still = now.promise < config.settled
        correct = ~better & ~now.corrected & ~still & jnp.isfinite(value)
        damping = jnp.where(better, now.damping * config.lower_damping, now.damping)
        damping = jnp.where(~better & ~correct, damping * config.raise_damping, damping)
        damping = jnp.clip(damping, config.first_damping, config.largest_damping)
        taken = now.taken + 1
        # A negligible promise ends a level even if round-off keeps the step from being better.
        stuck = damping >= config.largest_damping
        last = sigma <= last_sigma
        leave = still | stuck | (taken >= config.most_per_level)
        leave = (leave | (now.promise < config.hasty * best)) & ~correct & ~first
        # At the last level only rest counts, not the number of steps.
        crawls = better & (best - value < config.slow) & (damping > config.first_damping)
        done = now.done | (last & (still | stuck | crawls) & ~correct & ~first)
        sigma = jnp.where(leave & ~last, jnp.maximum(sigma * config.cooling, last_sigma), sigma)
        damping = jnp.where(leave & ~last, config.first_damping, damping)
        from_here = choose(correct, point, at)
        # Of a path at rest the undamped Hessian is kept.
        terms = _terms(question, from_here, prior, sigma)
        step = solve_steps(terms, jnp.where(done, 0.0, damping))
        return _Carry(
            at=at,
            states=from_here.states + by_state(step.x, T, m),
            code=from_here.code + step.c,
            hessian=step.code_hessian,
            promise=jnp.where(correct, now.promise, step.promise),
            damping=damping,
            sigma=sigma,
            taken=jnp.where(leave, 0, taken),
            corrected=correct,
            done=done,
            count=jnp.where(done, now.count, now.count + 1),
        )

    idle = jnp.zeros(n, bool) if idle is None else idle
    shapes = jax.eval_shape(look, question.guess, code, idle).windows
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    start = _Carry(
        at=_Point(question.guess, code, nothing),
        states=question.guess,
        code=code,
        hessian=jnp.zeros((n, code.shape[1], code.shape[1]), code.dtype),
        promise=jnp.full(n, jnp.inf, code.dtype),
        damping=jnp.full(n, config.first_damping, code.dtype),
        sigma=jnp.asarray(last_sigma, code.dtype),
        taken=jnp.full(n, -1, jnp.int32),
        corrected=jnp.zeros(n, bool),
        done=idle,
        count=jnp.zeros(n, jnp.int32),
    )
    limit = config.most if most is None else most
    end = jax.lax.while_loop(lambda now: (~now.done & (now.count <= limit)).any(), body, start)
    return Path(
        states=end.at.states,
        code=end.at.code,
        data_misfit=_data_misfit(question, end.at.states),
        model_misfit=model_misfit(end.at),
        code_hessian=end.hessian,
        prior_misfit=prior_misfit(end.at),
        converged=end.done,
        iterations=end.count,
    )


def by_state(x: Float[Array, "K n B *f"], T: int, m: int) -> Float[Array, "n T m *f"]:
    """What stands by groups of states, first axis, for each of the `T` states of `m` numbers."""
    groups, n, size = x.shape[:3]
    return jnp.moveaxis(x, 0, 1).reshape(n, groups * size // m, m, *x.shape[3:])[:, :T]


@solving_jit
def covariances(
    model: AbstractModel,
    question: Question,
    states: Float[Array, "n T m"],
    code: Float[Array, "n r"],
    frame: Frame,
    prior: CodeGaussian,
    sigma: Float[Array, " n"],
) -> tuple[Float[Array, "n T m"], Float[Array, "n r"], Float[Array, "n T m f"], Array]:
    """One last step by orthogonal transformations, with the posterior's square roots.

    Returns:
        States, whitened codes, and square roots of their covariances; `f` is the size of a group
        of states plus that of the code.
    """
    _, T, m = states.shape
    found = smooth(linear_terms(model, question, states, code, frame, prior, sigma))
    x, root = by_state(found.x, T, m), by_state(found.x_root, T, m)
    return states + x, code + found.c, root, found.c_root


@solving_jit
def draw(
    model: AbstractModel,
    question: Question,
    states: Float[Array, "n T m"],
    code: Float[Array, "n r"],
    frame: Frame,
    prior: CodeGaussian,
    sigma: Float[Array, " n"],
    key: Key[Array, ""],
) -> tuple[Float[Array, "n T m"], Float[Array, "n r"]]:
    """One sample of the Gaussian posterior of states and code.

    Every residual is shifted by a standard normal number; the solution of the shifted problem has
    the posterior's mean and covariance.
    """
    n, T, m = states.shape
    terms = linear_terms(model, question, states, code, frame, prior, sigma)
    keys = jr.split(key, 3)
    root = jnp.sqrt(jnp.maximum(terms.weight, jnp.finfo(terms.e.dtype).tiny))
    shifted = terms._replace(
        e=terms.e + jr.normal(keys[0], terms.e.shape, terms.e.dtype),
        misfit=terms.misfit
        + jr.normal(keys[1], root.shape, root.dtype) * (terms.weight > 0) / root,
        prior_misfit=terms.prior_misfit + jr.normal(keys[2], (n, code.shape[1]), code.dtype),
    )
    step = solve_steps(shifted, jnp.zeros(n, states.dtype))
    return states + by_state(step.x, T, m), code + step.c
