"""`reconstruct`: a trained model and a question in, a posterior out.

Every task is a mask. A forecast is unknown states at the end, an interpolation unknown states in
between, denoising is known states with noise, and inference is a view of the code.
"""

import jax
import jax.random as jr
import numpy as np
from jaxtyping import Bool, Float

from dhn.blocks import Codes
from dhn.codes.autodecode import NEIGHBOURS
from dhn.reconstruct.forecast import with_tail
from dhn.reconstruct.guess import first_guess, from_examples, reliable
from dhn.reconstruct.job import POOR, Found, Job, better_of, double
from dhn.reconstruct.knowledge import Knowledge, least_noise
from dhn.reconstruct.posterior import Posterior
from dhn.reconstruct.question import Between, Mask, States, nothing_between
from dhn.reconstruct.smoother import CodeGaussian, Smoother

DOUBTFUL = 4.0
"""Mean squared residual, in expected units, above which other first guesses are tried."""
RETRIES = 3
"""Other first guesses that are tried."""
FIRST = 24
"""Steps of a whole batch; the few trajectories that need more go on by themselves."""
FEW = Smoother(most=8, most_per_level=4, settled=0.1, slow=0.1)
"""Iterations from states that are nearly right already. A tenth of a unit of log-likelihood moves
them by a small share of their standard deviation."""
SURPRISE = 4.0
"""Standard deviations by which the squared misfit of measurements may exceed the expected one."""


def reconstruct(
    knowledge: Knowledge,
    values: States,
    known: Mask,
    noise: States,
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
    knowledge: Knowledge, values: States, known: Mask, noise: States, between: Between | None = None
) -> tuple[States, Float[np.ndarray, "n r"], CodeGaussian]:
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


def _weighted(knowledge: Knowledge, values, known, noise):
    """Numbers with their inverse variances; both are 0 where nothing is known."""
    weight = np.where(known, 1.0 / np.maximum(noise, least_noise(knowledge)) ** 2, 0.0)
    return np.where(known, values, 0.0), weight


def _settle(
    knowledge: Knowledge, values, known, noise, between: Between | None, solver: Smoother | None
) -> tuple[Job, Found, CodeGaussian]:
    """Iterate from first guesses until no trajectory changes."""
    n, T, m = values.shape
    prior = knowledge.prior
    values, weight = _weighted(knowledge, values, known, noise)
    weight = weight if between is None else np.zeros_like(weight)
    between = nothing_between(n, T, m) if between is None else between
    seen = reliable(known, noise)
    typical = float(np.sqrt(np.mean(noise[seen] ** 2))) if seen.any() else 0.0
    whiten = np.linalg.pinv(prior.basis).T
    rows = np.arange(n)
    model = double(knowledge.model)
    job = Job(model, prior, values, weight, between, solver or Smoother(), knowledge.change)
    span = job.span
    states, codes = first_guess(
        model, prior, knowledge.examples, values[:, :span], seen[:, :span],
        np.sqrt(2) * typical / knowledge.change,
    )  # fmt: skip
    gaussian = job.global_prior(rows)
    path = job.solve(rows, states, (codes - prior.mean) @ whiten, gaussian, FIRST)
    for attempt in range(RETRIES):
        poor = np.flatnonzero(path.misfit > DOUBTFUL)
        if not len(poor):
            break
        states, codes = from_examples(
            knowledge.examples, values[poor][:, :span], seen[poor][:, :span], attempt
        )
        start = (codes - prior.mean) @ whiten
        path = better_of(path, poor, job.solve(poor, states, start, job.global_prior(poor), FIRST))
    if len(prior.codes) >= 2 * NEIGHBOURS:
        gaussian = job.local_prior(path)
        path = job.solve(rows, path.states, path.code, gaussian, FIRST)
        slow = np.flatnonzero(~path.converged)
        if len(slow):
            rest = CodeGaussian(*(x[slow] for x in gaussian))
            path = better_of(path, slow, job.solve(slow, path.states[slow], path.code[slow], rest))
    poor = np.flatnonzero(path.misfit > POOR)
    if len(poor):
        job, path = job.bridged(poor, path, gaussian)
    return job, path, gaussian


def refine(
    knowledge: Knowledge, values: States, known: Mask, noise: States, states: States, codes: Codes
) -> tuple[States, Codes, Bool[np.ndarray, " n"]]:
    """The most probable states and codes, from ones that are nearly right already.

    Arguments:
        knowledge: Model, prior of codes and what training left for first guesses.
        values, known, noise: As in `reconstruct`.
        states, codes: Where the iteration begins.

    Returns:
        States and codes, and the trajectories whose measurements they fit as well as the noise
        allows; the others stay as they were.
    """
    prior = knowledge.prior
    values, weight = _weighted(knowledge, values, known, noise)
    rows = np.arange(len(values))
    with jax.enable_x64(True):
        job = Job(
            double(knowledge.model), prior, values, weight, nothing_between(*values.shape), FEW,
            knowledge.change,
        )  # fmt: skip
        start = (codes - prior.mean) @ np.linalg.pinv(prior.basis).T
        path = job.solve(rows, states[:, : job.span], start, job.global_prior(rows))
    found, codes = np.array(states), np.array(codes)
    numbers = np.maximum((weight > 0).sum((1, 2)), 1)
    misfit = (weight[:, : job.span] * (path.states - values[:, : job.span]) ** 2).sum((1, 2))
    misfit = misfit / numbers
    # A noise that is stated too small raises the misfit of all trajectories alike.
    good = misfit < max(1.0, np.median(misfit)) * (1 + SURPRISE * np.sqrt(2 / numbers))
    found[good, : job.span] = path.states[good]
    codes[good] = prior.mean + path.code[good] @ prior.basis.T
    return found, codes, good
