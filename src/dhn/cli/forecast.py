"""`dhn forecast`: see the first states of new trajectories, predict the next."""

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any, final

from annotated_types import Ge

from dhn.cli.arguments import Data, Json, Output, PositiveInt, RunFolder, Seed
from dhn.cli.outputs import TRAJECTORIES, ZARR, check_output
from dhn.cli.result import Console, Result
from dhn.errors import UserError

if TYPE_CHECKING:
    from dhn.evaluation.metrics import Metrics


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Forecast trajectories from their first states.

    Example: dhn forecast runs/dp new.npz --observe 16 --steps 112 -o forecast.npz

    Quantiles of the posterior are written beside the most probable states.
    """

    run: RunFolder
    data: Data
    output: Output
    observe: PositiveInt = 16
    """States of each trajectory that the model may see."""
    steps: PositiveInt = 112
    """States to predict after them."""
    samples: Annotated[int, Ge(0)] = 0
    """Draw so many paths for the quantiles; 0 takes them from the linearised posterior."""
    seed: Seed = 0
    json: Json = False


def run(args: Arguments) -> Result:
    """Fit a code to each observed prefix, slide the model forward, write the joined states."""
    check_output(args.output, inputs=(args.data,), endings=(*TRAJECTORIES, ZARR))

    import time

    import numpy as np

    from dhn.cli.compilation import open_run
    from dhn.cli.parts import in_parts, saving
    from dhn.cli.waiting import waiting
    from dhn.estimator.answers import extended, keep_known
    from dhn.estimator.reconstruction import warning
    from dhn.evaluation.metrics import compare

    model, data = open_run(args.run, args.data, in_pieces=True)
    if data.states < args.observe:
        raise UserError(
            f"--observe {args.observe}, but the trajectories of {args.data} have only "
            f"{data.states} states."
        )
    start = time.perf_counter()

    def predict(part, number):
        asked = extended(part[:, : args.observe], args.steps, model.time_step)
        answer = model.reconstruct(asked, samples=args.samples, seed=args.seed + number)
        found = keep_known(asked, answer.trajectories)
        save(found)
        later = part.states > args.observe and part.known[:, args.observe :].any()
        against = compare(found, part) if later else None
        return found.ids, answer.fit, answer.result, against

    with waiting("forecasting", enabled=not args.json) as report, saving(args.output) as save:
        answers = list(in_parts(data, predict, report))
    ids = tuple(x for answer in answers for x in answer[0])
    fit = np.concatenate([answer[1] for answer in answers])
    result = [x for answer in answers for x in answer[2]]
    values: dict[str, Any] = {
        "output": str(args.output),
        "trajectories": len(ids),
        "observed": args.observe,
        "predicted": args.steps,
        "seconds": time.perf_counter() - start,
        "fit": {"median": float(np.median(fit)), "worst": float(fit.max())},
        "results": {ids[k]: x.name for k, x in enumerate(result)},
        "warning": warning(result, ids),
    }
    against = [answer[3] for answer in answers if answer[3] is not None]
    if against:
        values["against_data"] = _summary(against)
    return Result(values, lambda console: _draw(console, values))


def _summary(parts: "list[Metrics]") -> dict[str, Any]:
    """The summary of all parts: means are weighted by trajectories, drift is a median of medians.

    A part is 2048 trajectories, and units of coordinates that are no angles are each part's own.
    """
    import numpy as np

    found = [part.summary() for part in parts]
    if len(found) == 1:
        return found[0]
    errors = np.concatenate([part.per_trajectory for part in parts])
    weights = [len(part.per_trajectory) for part in parts]
    both = dict(found[0])
    for name in ("mse", "mse_physical", "energy_mse"):
        if name in both:
            both[name] = float(np.average([x[name] for x in found], weights=weights))
    if both.get("energy_drift") is not None:
        both["energy_drift"] = float(np.median([x["energy_drift"] for x in found]))
    blown = sum(x["blow_ups"] for x in found)
    return both | {
        "median": float(np.median(errors)), "worst": float(errors.max()), "blow_ups": blown,
    }  # fmt: skip


def _draw(console: Console, values: dict[str, Any]) -> None:
    console.print(
        f"{values['output']}: {values['trajectories']} trajectories, {values['observed']} states "
        f"seen, {values['predicted']} predicted in {values['seconds']:.1f} s"
    )
    if values["warning"] is not None:
        console.print(f"warning: {values['warning']}", soft_wrap=True)
    if "against_data" in values:
        against = values["against_data"]
        console.print(
            f"against the states in the file: mean squared error {against['mse']:.3g} "
            f"(normalised), median {against['median']:.3g}"
        )
