"""The filter: a trajectory followed one measurement at a time, in bounded time and memory.

The last states are a window of the smoother's problem and are solved for anew with every
measurement. What lies before the window is summarised by triangular rows over its first states and
the code (a square-root information filter), linearised where they were left behind.
"""

from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dhn.codes.batches import ALONE
from dhn.models.compiling import solving_jit
from dhn.models.contract import AbstractModel
from dhn.reconstruct.forecast import with_tail
from dhn.reconstruct.job import double
from dhn.reconstruct.knowledge import Knowledge, least_noise
from dhn.reconstruct.linear import advance_root, smooth
from dhn.reconstruct.question import Question, nothing_between
from dhn.reconstruct.smoother import CodeGaussian, Frame, by_state, linear_terms
from dhn.reconstruct.windows import residual_deviation, window_length

MOST = 8
"""Gauss-Newton steps per measurement at most; one or two are usual."""
SETTLED = 1e-3
"""Change, in posterior standard deviations, that counts as none."""


class Summary(NamedTuple):
    """Rows `root @ (y - centre) = right` with `y = [first group of states, code]`."""

    root: Float[Any, "f f"]
    right: Float[Any, " f"]
    centre: Float[Any, " f"]


class Estimate(NamedTuple):
    """A state and the code so far, in scaled units."""

    state: Float[np.ndarray, " m"]
    root: Float[np.ndarray, "m f"]
    """`root @ root.T` is the covariance of the state."""
    code: Float[np.ndarray, " r"]
    """Whitened."""
    code_root: Float[np.ndarray, "r r"]


@final
class Filter:
    """One trajectory on the model's grid. States before the window are never looked at again."""

    def __init__(
        self,
        knowledge: Knowledge,
        states: Float[np.ndarray, "T m"],
        weight: Float[np.ndarray, "T m"],
        values: Float[np.ndarray, "T m"],
        code: Float[np.ndarray, " r"],
        prior: CodeGaussian,
        lag: int,
    ):
        """Begin with states and a code that have been found by the smoother.

        Arguments:
            knowledge: Model and prior of codes.
            states, code: The most probable ones; codes are whitened.
            weight, values: Measurements: inverse variances, 0 for none, and scaled numbers.
            prior: Of the code.
            lag: States that are solved for with every measurement, at least.
        """
        with jax.enable_x64(True):
            self._model = double(knowledge.model)
        self._prior = knowledge.prior
        self._least = least_noise(knowledge)
        self._group = window_length(self._model) - 1
        self._capacity = self._group * max(-(-lag // self._group) + 1, 3)
        m = states.shape[1]
        self._sigma = residual_deviation(self._model, knowledge.prior.noise, m)
        B, r = self._group * m, len(code)
        root = np.zeros((B + r, B + r))
        root[:r, B:] = prior.root[0]
        self._summary = Summary(
            root,
            np.concatenate([prior.root[0] @ (prior.centre[0] - code), np.zeros(B)]),
            np.concatenate([states[: self._group].ravel(), code]),
        )
        self.path = np.array(states)
        """States of the window."""
        self._values, self._weight, self._code = np.array(values), np.array(weight), code
        self._forget()
        self._solve(MOST)

    def predict(self, steps: int) -> None:
        """Move on by so many states of the grid, of which nothing is known yet."""
        codes = (self._prior.mean + self._prior.basis @ self._code)[None]
        with jax.enable_x64(True):
            longer = with_tail(self._model, self.path[None], codes, len(self.path) + steps)[0]
        empty = np.zeros((steps, self.path.shape[1]))
        self.path = np.where(np.isfinite(longer), longer, self.path[-1])
        self._values = np.concatenate([self._values, empty])
        self._weight = np.concatenate([self._weight, empty])
        self._forget()
        self._solve(1)

    def correct(
        self, back: int, values: Float[np.ndarray, " m"], noise: Float[np.ndarray, " m"]
    ) -> None:
        """Take in measurements of a state; those it has already are kept.

        Arguments:
            back: 0 for the last state, 1 for the one before it.
            values: Scaled numbers; NaN where nothing was measured.
            noise: Their standard deviations.
        """
        at = len(self.path) - 1 - back
        new = np.where(np.isfinite(values), 1 / np.maximum(noise, self._least) ** 2, 0.0)
        old = self._weight[at]
        both = np.where(old + new > 0, old + new, 1.0)
        self._values[at] = (old * self._values[at] + new * np.nan_to_num(values)) / both
        self._weight[at] = old + new
        self._solve(MOST)

    def estimate(self, back: int = 0) -> Estimate:
        """What is known of a state; 0 is the last one."""
        at = len(self.path) - 1 - back
        return Estimate(self.path[at], self._roots[at], self._code, self._code_root)

    def _question(self) -> tuple[Any, ...]:
        """The states of the window, as many as it holds, as a question filled up to that."""
        count = self._capacity
        states = min(len(self.path), count)
        more = [(0, self._capacity - states), (0, 0)]
        guess = np.pad(self.path[:count], more, mode="edge")[None]
        values, weight = (np.pad(x[:count], more)[None] for x in (self._values, self._weight))
        between = nothing_between(*values.shape)
        question = Question(values, weight, guess, np.array([states]), between)
        frame = Frame(jnp.asarray(self._prior.mean), jnp.asarray(self._prior.basis))
        return self._model, question, self._code[None], frame, self._summary

    def _solve(self, most: int) -> None:
        with jax.enable_x64(True), ALONE:
            limit = jnp.asarray(most)
            found = _solve(*self._question(), np.array([self._sigma]), limit)
        states, code, self._roots, self._code_root = (np.array(x) for x in found)
        if np.isfinite(states).all() and np.isfinite(code).all():
            self.path, self._code = states[: len(self.path)], code

    def _forget(self) -> None:
        """Summarise the first groups of states until the others fit the window."""
        while len(self.path) > self._capacity:
            with jax.enable_x64(True), ALONE:
                rows = _leave(*self._question(), np.array([self._sigma]))
            G = self._group
            self.path, self._values = self.path[G:], self._values[G:]
            self._weight = self._weight[G:]
            centre = np.concatenate([self.path[:G].ravel(), self._code])
            rows = np.array(rows)
            self._summary = Summary(rows[:, :-1], rows[:, -1], centre)


def _with_summary(terms, summary: Summary, states: Array, code: Array, group: int):
    """The summary as further rows of the first tie, in increments about this point."""
    B = terms.A.shape[-1]
    point = jnp.concatenate([states[0, :group].reshape(-1), code[0]])
    right = summary.right - summary.root @ (point - summary.centre)

    def more(x, rows):
        extra = jnp.zeros((x.shape[0], 1, *rows.shape), x.dtype).at[0, 0].set(rows)
        return jnp.concatenate([x, extra], axis=2)

    root = jnp.asarray(summary.root)
    return terms._replace(
        A=more(terms.A, root[:, :B]),
        B=more(terms.B, jnp.zeros_like(root[:, :B])),
        C=more(terms.C, root[:, B:]),
        e=more(terms.e, -right),
    )


def _terms(model: AbstractModel, question: Question, states, code, frame, summary, sigma):
    r = code.shape[1]
    flat = CodeGaussian(jnp.zeros((1, r)), jnp.zeros((1, r, r)))  # the summary contains the prior
    terms = linear_terms(model, question, states, code, frame, flat, sigma)
    return _with_summary(terms, summary, states, code, window_length(model) - 1)


@solving_jit
def _solve(model, question: Question, code, frame, summary, sigma, most):
    """Gauss-Newton by orthogonal transformations until nothing changes."""
    _, T, m = question.values.shape

    def step(carry):
        states, code, _, _, _, count = carry
        found = smooth(_terms(model, question, states, code, frame, summary, sigma))
        x, root = by_state(found.x, T, m), by_state(found.x_root, T, m)
        deviation = jnp.sqrt((root**2).sum(-1))
        change = jnp.max(jnp.abs(x) / jnp.where(deviation > 0, deviation, 1.0))
        return states + x, code + found.c, root, found.c_root, change, count + 1

    r, B = code.shape[1], (window_length(model) - 1) * m
    carry = (question.guess, code, jnp.zeros((1, T, m, B + r)), jnp.zeros((1, r, r)), jnp.inf, 0)
    carry = jax.lax.while_loop(lambda c: (c[5] < most) & (c[4] > SETTLED), step, carry)
    return carry[0][0], carry[1][0], carry[2][0], carry[3][0]


@solving_jit
def _leave(model, question: Question, code, frame, summary, sigma):
    """The summary of the first group of states for the second one."""
    terms = _terms(model, question, question.guess, code, frame, summary, sigma)
    r, B = code.shape[1], terms.weight.shape[-1]
    none = jnp.zeros((1, B + r, B + r + 1), terms.e.dtype)
    first = [x[0] for x in (terms.A, terms.B, terms.C, terms.e, terms.weight, terms.misfit)]
    return advance_root(none, *first)[0][0]
