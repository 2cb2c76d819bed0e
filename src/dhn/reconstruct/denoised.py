"""The paper's solver behind the same question: codes by autodecoding, states by denoising."""

import jax
import jax.random as jr
import numpy as np

from dhn.blocks import StateBlock
from dhn.models.dhn import DHNModel
from dhn.reconstruct.denoiser import denoise_trajectories
from dhn.reconstruct.guess import first_guess
from dhn.reconstruct.knowledge import Knowledge
from dhn.reconstruct.posterior import Posterior, Result
from dhn.reconstruct.question import Mask, States


def reconstruct_by_denoising(
    model: DHNModel,
    knowledge: Knowledge,
    values: States,
    known: Mask,
    *,
    seed: int = 0,
    wide: bool = False,
) -> Posterior:
    """States by H⁺ and H⁻ with a falling noise level over all windows (paper, appendix C).

    Known numbers are kept as they are, noise included, and there are no bands: the method has no
    place for either.

    Arguments:
        model: The trained model, as `knowledge` has it.
        knowledge: Prior of codes and what training left for first guesses.
        values, known: Scaled numbers `[q, p]` and which of them are known.
        seed: Of the noise to begin with, where the model's inference has any.
        wide: Whether the model was trained in double precision.

    Returns:
        States and codes; deviations are NaN. Trajectories whose rounds did not come to rest have
        the result NOT_CONVERGED.
    """
    values = np.where(known, values, 0.0)
    with jax.enable_x64(wide):
        _, codes = first_guess(model, knowledge.prior, knowledge.examples, values, known, 0.0)
        found = denoise_trajectories(
            model,
            StateBlock.of(values),
            StateBlock.of(known),
            codes,
            jr.key(seed),
        )
    states = np.concatenate([np.asarray(x, np.float64) for x in found.states], axis=-1)
    good = found.settled & np.isfinite(states).all((1, 2))
    n, rank = len(values), knowledge.prior.basis.shape[1]
    return Posterior(
        states=states,
        deviation=np.full(states.shape, np.nan),
        codes=codes,
        code_root=np.full((*codes.shape, rank), np.nan),
        fit=np.full(n, np.nan),
        result=np.where(good, Result.OK, Result.NOT_CONVERGED),
        iterations=0,
        draws=np.zeros((0, *states.shape)),
    )
