"""`reconstruct`: a trained model and a question in, a posterior out.

Every task is a mask. A forecast is unknown states at the end, an interpolation unknown states in
between, denoising is known states with noise, and inference is a view of the code.
"""

import dataclasses
from typing import Any, NamedTuple, final

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from dhn.codes.autodecode import NEIGHBOURS, CodePrior, local_gaussian
from dhn.codes.batches import in_batches
from dhn.models.compiling import solving_jit
from dhn.models.contract import AbstractForecaster
from dhn.reconstruct.forecast import with_tail
from dhn.reconstruct.guess import Examples, first_guess, from_examples, reliable
from dhn.reconstruct.knowledge import Knowledge, least_noise
from dhn.reconstruct.posterior import Posterior, Result
from dhn.reconstruct.question import Between, Question, nothing_between
from dhn.reconstruct.smoother import CodeGaussian, Frame, Smoother, covariances, draw, iterate
from dhn.reconstruct.windows import residual_deviation, window_length

DOUBTFUL = 4.0
"""Mean squared residual, in expected units, above which other first guesses are tried."""
POOR = 25.0
"""Mean squared residual, in expected units, above which a fit is reported as poor."""
RETRIES = 3
"""Other first guesses that are tried."""
FAR = 2.0
"""Distance of a code from the mean, in units of the farthest training code, outside training."""
BEYOND = 0.5
"""Share of the training set's range that a state may leave it by."""
VAGUE = 0.7
"""Posterior standard deviation of the leading direction of a code, in units of the prior's, above
which the code counts as not identified."""
UNDETERMINED = 1.0
"""Posterior standard deviation of a scaled state, of the order of the whole motion, above which a
trajectory counts as not identified."""
FIRST = 24
"""Steps of a whole batch; the few trajectories that need more go on by themselves."""
FEW = Smoother(most=10, most_per_level=4)
"""Iterations from states that are nearly right already."""
SIDE_BY_SIDE = 6
"""Rows of a matrix up to which two batches are solved at once; larger ones can deadlock."""
BATCH = 128
"""Trajectories solved side by side: bounds memory, and one compiled program serves any number."""


class _Path(NamedTuple):
    """The best path so far of every trajectory, up to the last known number."""

    states: Float[Any, "n span m"]
    code: Float[Any, "n r"]
    misfit: Float[Any, " n"]
    """Objective over the number of residuals: about 1 or less for a good fit."""
    hessian: Float[Any, "n r r"]
    converged: Bool[Any, " n"]
    iterations: Int[Any, " n"]


def reconstruct(
    knowledge: Knowledge,
    values: Float[np.ndarray, "n T m"],
    known: Bool[np.ndarray, "n T m"],
    noise: Float[np.ndarray, "n T m"],
    *,
    between: Between | None = None,
    solver: Smoother | None = None,
    draws: int = 0,
    seed: int = 0,
) -> Posterior:
    """The posterior of all states and of the codes.

    Arguments:
        knowledge: Model, prior of codes and what training left for first guesses.
        values: Scaled numbers `[q, p]`; ignored where unknown.
        known: Which of them are known.
        noise: Their standard deviations; 0 for exact numbers.
        between: Measurements between states of the grid; `values` are then first guesses alone.
        solver: Constants of the iteration.
        draws, seed: Number of samples of the posterior, and their seed.

    Returns:
        Means, standard deviations, codes, and a result for every trajectory.
    """
    T = values.shape[1]
    with jax.enable_x64(True):
        job, path, gaussian = _settle(knowledge, values, known, noise, between, solver)
        code = knowledge.prior.mean + path.code @ knowledge.prior.basis.T
        whole = with_tail(job.model, path.states, code, T)
        samples = [job.draw(path, gaussian, T, jr.fold_in(jr.key(seed), k)) for k in range(draws)]
        return job.posterior(path, whole, gaussian, knowledge.examples, samples)


def most_probable(
    knowledge: Knowledge,
    values: Float[np.ndarray, "n T m"],
    known: Bool[np.ndarray, "n T m"],
    noise: Float[np.ndarray, "n T m"],
    between: Between | None = None,
) -> tuple[Float[np.ndarray, "n T m"], Float[np.ndarray, "n r"], CodeGaussian]:
    """The most probable states and whitened codes without their covariances.

    Arguments:
        knowledge: Model, prior of codes and what training left for first guesses.
        values, known, noise, between: As in `reconstruct`.

    Returns:
        States, whitened codes, and the prior of the codes that was used.
    """
    with jax.enable_x64(True):
        job, path, gaussian = _settle(knowledge, values, known, noise, between, None)
        prior = knowledge.prior
        codes = prior.mean + path.code @ prior.basis.T
        return with_tail(job.model, path.states, codes, values.shape[1]), path.code, gaussian


def _settle(
    knowledge: Knowledge, values, known, noise, between: Between | None, solver: Smoother | None
) -> tuple["_Job", _Path, CodeGaussian]:
    """Iterate from first guesses until no trajectory changes."""
    n, T, m = values.shape
    prior = knowledge.prior
    values = np.where(known, values, 0.0)
    weight = np.where(known, 1.0 / np.maximum(noise, least_noise(knowledge)) ** 2, 0.0)
    weight = weight if between is None else np.zeros_like(weight)
    between = nothing_between(n, T, m) if between is None else between
    seen = reliable(known, noise)
    typical = float(np.sqrt(np.mean(noise[seen] ** 2))) if seen.any() else 0.0
    whiten = np.linalg.pinv(prior.basis).T
    rows = np.arange(n)
    model = double(knowledge.model)
    job = _Job(model, prior, values, weight, between, solver or Smoother())
    span = job.span
    states, codes = first_guess(
        model, prior, knowledge.examples, values[:, :span], seen[:, :span],
        np.sqrt(2) * typical / knowledge.change,
    )  # fmt: skip
    gaussian = job.global_prior(rows)
    path = job.solve(rows, states, (codes - prior.mean) @ whiten, gaussian, FIRST)
    for attempt in range(RETRIES):
        poor = np.flatnonzero((path.misfit > DOUBTFUL) | ~path.converged)
        if not len(poor):
            break
        states, codes = from_examples(
            knowledge.examples, values[poor][:, :span], seen[poor][:, :span], attempt
        )
        start = (codes - prior.mean) @ whiten
        path = _better(path, poor, job.solve(poor, states, start, job.global_prior(poor)))
    if len(prior.codes) >= 2 * NEIGHBOURS:
        gaussian = job.local_prior(path)
        path = job.solve(rows, path.states, path.code, gaussian, FIRST)
        slow = np.flatnonzero(~path.converged)
        if len(slow):
            rest = CodeGaussian(*(x[slow] for x in gaussian))
            path = _better(path, slow, job.solve(slow, path.states[slow], path.code[slow], rest))
    return job, path, gaussian


def refine(
    knowledge: Knowledge,
    values: Float[np.ndarray, "n T m"],
    known: Bool[np.ndarray, "n T m"],
    noise: Float[np.ndarray, "n T m"],
    states: Float[np.ndarray, "n T m"],
    codes: Float[np.ndarray, "n k"],
) -> Float[np.ndarray, "n T m"]:
    """The most probable states, from states and codes that are nearly right already.

    Arguments:
        knowledge: Model, prior of codes and what training left for first guesses.
        values, known, noise: As in `reconstruct`.
        states, codes: Where the iteration begins.

    Returns:
        States; those of trajectories that fit poorly stay as they were.
    """
    prior = knowledge.prior
    values = np.where(known, values, 0.0)
    weight = np.where(known, 1.0 / np.maximum(noise, least_noise(knowledge)) ** 2, 0.0)
    rows = np.arange(len(values))
    with jax.enable_x64(True):
        job = _Job(
            double(knowledge.model), prior, values, weight, nothing_between(*values.shape), FEW
        )
        start = (codes - prior.mean) @ np.linalg.pinv(prior.basis).T
        path = job.solve(rows, states[:, : job.span], start, job.global_prior(rows))
    found = np.array(states)
    good = path.misfit < POOR
    found[good, : job.span] = path.states[good]
    return found


def _better(path: _Path, rows: Int[np.ndarray, " k"], other: _Path) -> _Path:
    """`path` with those of `rows` replaced that `other` fits better."""
    better = other.misfit < path.misfit[rows]

    def replaced(old, new):
        old = np.array(old)
        old[rows[better]] = new[better]
        return old

    return _Path(*(replaced(*pair) for pair in zip(path, other, strict=True)))


def double(model: AbstractForecaster) -> AbstractForecaster:
    """The same weights in double precision."""
    wide = lambda x: jax.device_put(np.asarray(x, np.float64))  # noqa: E731
    return jax.tree.map(lambda x: wide(x) if eqx.is_inexact_array(x) else x, model)


def padded_length(states: int) -> int:
    """States that `states` are padded to, so that few lengths compile: at most a fifth more."""
    steps = max(states - 1, 1)
    unit = max(1, 1 << max(steps.bit_length() - 3, 0))
    return -(-steps // unit) * unit + 1


@final
@dataclasses.dataclass(frozen=True, eq=False)
class _Job:
    """One question with all that stays the same while it is solved."""

    model: AbstractForecaster
    prior: CodePrior
    values: Float[np.ndarray, "n T m"]
    weight: Float[np.ndarray, "n T m"]
    between: Between
    solver: Smoother

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

    def local_prior(self, path: _Path) -> CodeGaussian:
        """The Gaussian of the training codes that fit each trajectory nearly as well."""
        others = jax.device_put(self.prior.codes)
        scatter = np.maximum(path.misfit, 1.0)[:, None, None]
        parts = (path.code, path.hessian / scatter)
        return CodeGaussian(
            *in_batches(lambda x: _local(*x, others), parts, BATCH, side_by_side=False)
        )

    def question(self, part, states: int) -> tuple[Question, CodeGaussian, Float[Array, " k"]]:
        values, weight, guess, between, gaussian = part
        # NumPy, since every operation of JAX outside a compiled program is a program of its own.
        size = residual_deviation(self.model, self.prior.noise, values.shape[2])
        n = values.shape[0]
        length, sigma = jax.device_put((np.full(n, states), np.full(n, size)))
        return Question(values, weight, guess, length, between), gaussian, sigma

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
    ) -> _Path:
        """Iterate from these states and whitened codes, for at most so many steps."""
        limit = jax.device_put(np.asarray(self.solver.most if most is None else most))
        span = states.shape[1]
        ties = (span - window_length(self.model) + 1) * self.values.shape[2]

        def run(arrays):
            code, number, part = arrays
            question, gaussian, sigma = self.question(part, span)
            found = iterate(
                self.model, question, code, self.frame, gaussian, sigma, self.solver, limit,
                # Rows repeated to fill up the batch.
                jax.device_put(np.diff(np.asarray(number), prepend=-1) == 0),
            )  # fmt: skip
            found = jax.tree.map(np.asarray, found)
            numbers = (np.asarray(question.weight) > 0).sum((1, 2))
            numbers = numbers + (np.asarray(question.between.weight) > 0).sum((1, 2, 3))
            total = found.model_misfit / np.asarray(sigma) ** 2
            total = total + found.data_misfit + found.prior_misfit
            return _Path(
                states=found.states[:, :span],
                code=found.code,
                misfit=total / (numbers + ties + code.shape[1]),
                hessian=found.code_hessian,
                converged=found.converged,
                iterations=found.iterations,
            )

        parts = (code, np.arange(len(rows)), self.parts(rows, states, gaussian))
        together = (window_length(self.model) - 1) * self.values.shape[2] <= SIDE_BY_SIDE
        return _Path(*in_batches(run, parts, BATCH, side_by_side=together))

    def draw(
        self, path: _Path, gaussian: CodeGaussian, T: int, key: Key[Array, ""]
    ) -> Float[np.ndarray, "n T m"]:
        """A sample of the states up to the last known number and of the code, rolled forward."""
        span = path.states.shape[1]

        def run(arrays):
            code, scatter, number, part = arrays
            question, gaussian, sigma = self.question(part, span)
            states, code = draw(
                self.model, question, question.guess, code, self.frame, gaussian, sigma * scatter,
                jr.fold_in(key, number[0]),
            )  # fmt: skip
            return states[:, :span], code

        scatter, rows = np.sqrt(np.maximum(path.misfit, 1.0)), np.arange(len(path.code))
        parts = (path.code, scatter, rows, self.parts(rows, path.states, gaussian))
        states, code = in_batches(run, parts, BATCH, side_by_side=False)
        return with_tail(self.model, states, self.prior.mean + code @ self.prior.basis.T, T)

    def posterior(
        self,
        path: _Path,
        whole: Float[np.ndarray, "n T m"],
        gaussian: CodeGaussian,
        examples: Examples,
        samples: list[Float[np.ndarray, "n T m"]],
    ) -> Posterior:
        """Covariances along the whole path, and what is to be said of each trajectory."""
        n, T = whole.shape[:2]
        span = path.states.shape[1]

        def run(arrays):
            code, scatter, part = arrays
            question, gaussian, sigma = self.question(part, T)
            states, code, root, code_root = covariances(
                self.model, question, question.guess, code, self.frame, gaussian, sigma * scatter
            )
            states, root = np.asarray(states)[:, :T], np.asarray(root)[:, :T]
            return states, code, np.sqrt((root**2).sum(-1)), code_root

        # A trajectory that the model explains worse than usual has a wider posterior.
        scatter = np.sqrt(np.maximum(path.misfit, 1.0))
        parts = (path.code, scatter, self.parts(np.arange(n), whole, gaussian))
        states, code, deviation, code_root = in_batches(run, parts, BATCH, side_by_side=False)
        sound = np.isfinite(states).all((1, 2))
        states = np.where(sound[:, None, None], states, whole)
        states[:, span:] = whole[:, span:]
        result = np.full(n, Result.OK)
        spread = np.sqrt((code_root**2).sum(-1))[:, 0]
        vague = (spread > VAGUE) | (deviation.max((1, 2)) > UNDETERMINED)
        result[vague] = Result.NOT_IDENTIFIABLE
        result[self._outside(states, code, examples)] = Result.OUTSIDE_TRAINING
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
