"""One question on its way to an answer: batches, priors of codes, bridges, covariances."""

import dataclasses
import functools
from typing import Any, NamedTuple, final

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from dhn.codes.autodecode import CodePrior, local_gaussian
from dhn.codes.batches import in_batches
from dhn.errors import UserError
from dhn.models.compiling import solving_jit
from dhn.models.contract import AbstractForecaster
from dhn.reconstruct.forecast import with_tail
from dhn.reconstruct.guess import Examples, bridges
from dhn.reconstruct.posterior import Posterior, Result
from dhn.reconstruct.question import Between, Question, States
from dhn.reconstruct.smoother import CodeGaussian, Frame, Smoother, covariances, draw, iterate
from dhn.reconstruct.windows import residual_deviation, window_length

POOR = 25.0
"""Mean squared residual, in expected units, above which a fit is reported as poor."""
FAR = 2.0
"""Distance of a code from the mean, in units of the farthest training code, outside training."""
BEYOND = 0.1
"""Share of the training set's range, or of its distance from the sections, that states may leave it
by."""
VAGUE = 0.7
"""Posterior standard deviation of the leading direction of a code, in units of the prior's, above
which the code counts as not identified."""
UNDETERMINED = 1.0
"""Posterior standard deviation of a scaled state, of the order of the whole motion, above which a
trajectory counts as not identified."""
WITHOUT_DOUBLE = ("metal",)
"""Platforms of JAX on which nothing can be solved to the precision of a trained model."""
SIDE_BY_SIDE = 6
"""Rows of a matrix up to which two batches are solved at once; larger ones can deadlock."""
FEW_ROWS = 16
"""Rows of a batch for up to four times as many: any number of trajectories that begin again uses
one compiled program, and each batch ends by itself."""
BATCH = 128
"""Trajectories solved side by side: bounds memory, and one compiled program serves any number."""


class Found(NamedTuple):
    """The best path so far of every trajectory, up to the last known number."""

    states: Float[Any, "n span m"]
    code: Float[Any, "n r"]
    misfit: Float[Any, " n"]
    """Objective over the number of residuals: about 1 or less for a good fit."""
    scatter: Float[Any, " n"]
    """Factor on the model's error that the residuals of this trajectory ask for, at least 1."""
    hessian: Float[Any, "n r r"]
    converged: Bool[Any, " n"]
    iterations: Int[Any, " n"]


def better_of(path: Found, rows: Int[np.ndarray, " k"], other: Found) -> Found:
    """`path` with those of `rows` replaced that `other` fits better."""
    better = other.misfit < path.misfit[rows]
    return replaced(path, rows[better], Found(*(x[better] for x in other)))


def replaced(path: Found, rows: Int[np.ndarray, " k"], other: Found) -> Found:
    """`path` with `other` in these rows."""

    def joined(old, new):
        old = np.array(old)
        old[rows] = new
        return old

    return Found(*(joined(*pair) for pair in zip(path, other, strict=True)))


def double(model: AbstractForecaster) -> AbstractForecaster:
    """The same weights in double precision; a `UserError` on a platform without it."""
    if (platform := jax.default_backend().lower()) in WITHOUT_DOUBLE:
        raise UserError(
            f"reconstruction needs double precision, which the platform {platform!r} does not "
            f"have; run it on the processor: set JAX_PLATFORMS=cpu."
        )
    wide = lambda x: jax.device_put(np.asarray(x, np.float64))  # noqa: E731
    return jax.tree.map(lambda x: wide(x) if eqx.is_inexact_array(x) else x, model)


def padded_length(states: int) -> int:
    """States that `states` are padded to, so that few lengths compile: at most a fifth more."""
    steps = max(states - 1, 1)
    unit = max(1, 1 << max(steps.bit_length() - 3, 0))
    return -(-steps // unit) * unit + 1


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    """One question with all that stays the same while it is solved."""

    model: AbstractForecaster
    prior: CodePrior
    values: States
    weight: States
    between: Between
    solver: Smoother
    change: float
    """Typical change of a scaled state over one step."""

    @property
    def span(self) -> int:
        """States up to the last known number, or one window if there are fewer."""
        known = np.array((self.weight > 0).any((0, 2)))
        if self.between.fraction.shape[2]:
            known[1:] |= (self.between.weight > 0).any((0, 2, 3))
        last = int(np.flatnonzero(known)[-1]) + 1 if known.any() else 1
        return min(max(last, window_length(self.model) + 1), self.values.shape[1])

    @property
    def frame(self) -> Frame:
        return Frame(jax.device_put(self.prior.mean), jax.device_put(self.prior.basis))

    def global_prior(self, rows: Int[np.ndarray, " k"]) -> CodeGaussian:
        """The Gaussian of all training codes, in which codes are white."""
        r = self.prior.basis.shape[1]
        count = len(rows)
        return CodeGaussian(np.zeros((count, r)), np.broadcast_to(np.eye(r), (count, r, r)))

    def local_prior(self, path: Found) -> CodeGaussian:
        """The Gaussian of the training codes that fit each trajectory nearly as well."""
        others = jax.device_put(self.prior.codes)
        scatter = np.maximum(path.misfit, 1.0)[:, None, None]
        parts = (path.code, path.hessian / scatter)
        return CodeGaussian(
            *in_batches(lambda x: _local(*x, others), parts, BATCH, side_by_side=False)
        )

    @functools.cached_property
    def sigma(self) -> float:
        """Standard deviation of the model's residuals, before any scatter."""
        return residual_deviation(self.model, self.prior.noise, self.values.shape[2])

    def question(self, part, states: int) -> tuple[Question, CodeGaussian]:
        values, weight, guess, between, gaussian = part
        length = jax.device_put(np.full(values.shape[0], states))
        return Question(values, weight, guess, length, between), gaussian

    def parts(self, rows, guess: Float[np.ndarray, "k S m"], gaussian: CodeGaussian):
        """Arrays of these trajectories, padded in time."""
        states = guess.shape[1]
        more = padded_length(states) - states

        def cut(x, length, extra):
            return np.pad(x[rows][:, :length], [(0, 0), (0, extra)] + [(0, 0)] * (x.ndim - 2))

        between = Between(*(cut(x, states - 1, more) for x in self.between))
        guess = np.pad(guess, [(0, 0), (0, more), (0, 0)], mode="edge")
        values, weight = (cut(x, states, more) for x in (self.values, self.weight))
        return values, weight, guess, between, gaussian

    def solve(
        self,
        rows: Int[np.ndarray, " k"],
        states: Float[np.ndarray, "k span m"],
        code: Float[np.ndarray, "k r"],
        gaussian: CodeGaussian,
        most: int | None = None,
        scatter: Float[np.ndarray, " k"] | None = None,
    ) -> Found:
        """Iterate from these states and whitened codes, for at most so many steps.

        `scatter` are factors on the size of the model's residuals, 1 by default.
        """
        limit = jax.device_put(np.asarray(self.solver.most if most is None else most))
        span = states.shape[1]
        ties = (span - window_length(self.model) + 1) * self.values.shape[2]

        def run(arrays):
            code, scatter, number, part = arrays
            question, gaussian = self.question(part, span)
            # NumPy, since every operation of JAX outside a compiled program is one of its own.
            sigma = np.maximum(self.sigma, self._softest(question))
            found = iterate(
                self.model, question, code, self.frame, gaussian,
                jax.device_put(sigma * np.asarray(scatter)), self.solver, limit,
                # Rows repeated to fill up the batch.
                jax.device_put(np.diff(np.asarray(number), prepend=-1) == 0),
            )  # fmt: skip
            found = jax.tree.map(np.asarray, found)
            numbers = (np.asarray(question.weight) > 0).sum((1, 2))
            numbers = numbers + (np.asarray(question.between.weight) > 0).sum((1, 2, 3))
            total = found.model_misfit / sigma**2
            total = total + found.data_misfit + found.prior_misfit
            misfit = total / (numbers + ties + code.shape[1])
            return Found(
                states=found.states[:, :span],
                code=found.code,
                misfit=misfit,
                scatter=np.sqrt(np.maximum(misfit, 1.0)),
                hessian=found.code_hessian,
                converged=found.converged,
                iterations=found.iterations,
            )

        scatter = np.ones(len(rows)) if scatter is None else scatter
        parts = (code, scatter, np.arange(len(rows)), self.parts(rows, states, gaussian))
        together = (window_length(self.model) - 1) * self.values.shape[2] <= SIDE_BY_SIDE
        size = FEW_ROWS if len(rows) <= 4 * FEW_ROWS else BATCH
        return Found(*in_batches(run, parts, size, side_by_side=together))

    def _softest(self, question: Question) -> Float[np.ndarray, " k"]:
        """The largest error of the model that the noise of a trajectory hides.

        Errors of single steps move the end of a path by their sum's sum. What stays below the noise
        so changes no answer, but lowering `σ` further makes valleys narrow and steps short.
        """
        weight, between = (np.asarray(x) for x in (question.weight, question.between.weight))
        weight = weight.max(2)
        weight[:, 1:] = np.maximum(weight[:, 1:], between.max((2, 3), initial=0.0))
        last = (np.arange(1, weight.shape[1] + 1) * (weight > 0)).max(1)
        noise = 1 / np.sqrt(np.maximum(weight.max(1), 1e-30))
        return noise / self.change / np.maximum(last, 1) ** 2

    def bridged(
        self, rows: Int[np.ndarray, " k"], path: Found, gaussian: CodeGaussian
    ) -> tuple["Job", Found]:
        """Trajectories that the model does not explain, with splines as further measurements.

        Each unknown number between known ones is measured by a spline through these, as well as
        such splines predict known numbers that are left out; the model's error is estimated from
        its residuals. So the more precise of the two has the larger weight, and bands contain both.
        """
        span, m = path.states.shape[1:]
        known = self.weight[rows][:, :span] > 0
        noise = 1 / np.sqrt(np.where(known, self.weight[rows][:, :span], np.inf))
        splines, deviation = bridges(self.values[rows][:, :span], known, noise)
        held = ~known & np.isfinite(deviation)
        values, weight = self.values.copy(), self.weight.copy()
        values[rows, :span] += np.where(held, splines, 0.0)
        weight[rows, :span] += np.where(held, 1 / np.maximum(deviation, 1e-12) ** 2, 0.0)
        job = dataclasses.replace(self, values=values, weight=weight)
        # Residuals and measurements minus unknowns are as many as known numbers beyond one state.
        numbers = known.sum((1, 2))
        residuals = numbers + (span - window_length(self.model) + 1) * m + path.code.shape[1]
        scatter = np.sqrt(path.misfit[rows] * residuals / np.maximum(numbers - m, 1))
        found = job.solve(
            rows, np.where(held, splines, path.states[rows]), path.code[rows],
            CodeGaussian(*(x[rows] for x in gaussian)), scatter=scatter,
        )  # fmt: skip
        found = found._replace(misfit=path.misfit[rows], scatter=scatter)
        return job, replaced(path, rows, found)

    def draw(self, path: Found, gaussian: CodeGaussian, T: int, key: Key[Array, ""]) -> States:
        """A sample of the states up to the last known number and of the code, rolled forward."""
        span = path.states.shape[1]

        def run(arrays):
            code, scatter, number, part = arrays
            question, gaussian = self.question(part, span)
            sigma = jax.device_put(self.sigma * np.asarray(scatter))
            states, code = draw(
                self.model, question, question.guess, code, self.frame, gaussian, sigma,
                jr.fold_in(key, number[0]),
            )  # fmt: skip
            return states[:, :span], code

        rows = np.arange(len(path.code))
        parts = (path.code, path.scatter, rows, self.parts(rows, path.states, gaussian))
        states, code = in_batches(run, parts, BATCH, side_by_side=False)
        return with_tail(self.model, states, self.prior.mean + code @ self.prior.basis.T, T)

    def posterior(
        self,
        path: Found,
        whole: States,
        gaussian: CodeGaussian,
        examples: Examples,
        samples: list[States],
    ) -> Posterior:
        """Covariances along the whole path, and the result of each trajectory."""
        n, T = whole.shape[:2]
        span = path.states.shape[1]

        def run(arrays):
            code, scatter, part = arrays
            question, gaussian = self.question(part, T)
            sigma = jax.device_put(self.sigma * np.asarray(scatter))
            states, code, root, code_root = covariances(
                self.model, question, question.guess, code, self.frame, gaussian, sigma
            )
            states, root = np.asarray(states)[:, :T], np.asarray(root)[:, :T]
            return states, code, np.sqrt((root**2).sum(-1)), code_root

        # A trajectory that the model explains worse than usual has a wider posterior.
        parts = (path.code, path.scatter, self.parts(np.arange(n), whole, gaussian))
        states, code, deviation, code_root = in_batches(run, parts, BATCH, side_by_side=False)
        sound = np.isfinite(states).all((1, 2))
        states = np.where(sound[:, None, None], states, whole)
        code = np.where(sound[:, None], code, path.code)  # a roll-out may leave all bounds
        states[:, span:] = whole[:, span:]
        result = np.full(n, Result.OK)
        spread = np.sqrt((code_root**2).sum(-1))[:, 0]
        vague = (spread > VAGUE) | (deviation.max((1, 2)) > UNDETERMINED)
        result[vague] = Result.NOT_IDENTIFIABLE
        result[self._outside(states, code, examples)] = Result.OUTSIDE_TRAINING
        distance = examples.sections.distance(states[:, :span], deviation[:, :span].max(2))
        result[distance > (1 + BEYOND) * examples.sections.reach] = Result.OUTSIDE_TRAINING
        result[path.misfit > POOR] = Result.POOR_FIT
        result[~path.converged | ~sound] = Result.NOT_CONVERGED
        return Posterior(
            states=states,
            deviation=deviation,
            codes=self.prior.mean + code @ self.prior.basis.T,
            code_root=np.einsum("kr,nrs->nks", self.prior.basis, code_root),
            fit=path.misfit,
            result=result,
            iterations=int(path.iterations.max(initial=0)),
            draws=np.reshape(samples, (len(samples), *whole.shape)),
        )

    def _outside(self, states, code, examples: Examples) -> Bool[np.ndarray, " n"]:
        """Codes or states far from those of training."""
        size = np.sqrt((code**2).sum(1))
        farthest = np.sqrt((self.prior.codes**2).sum(1).max())
        low, high = np.nanmin(examples.states, axis=(0, 1)), np.nanmax(examples.states, axis=(0, 1))
        margin = BEYOND * (high - low)
        beyond = (states < low - margin) | (states > high + margin)
        return (size > FAR * farthest) | beyond.any((1, 2))


_local = solving_jit(local_gaussian)
