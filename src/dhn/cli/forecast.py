"""`dhn forecast`: see the first states of new trajectories, predict the next."""

import dataclasses
from typing import Annotated, Any, final

from annotated_types import Ge

from dhn.cli.arguments import Data, Json, Output, PositiveInt, RunFolder, Seed
from dhn.cli.outputs import TRAJECTORIES, check_output, save_result
from dhn.cli.result import Console, Result
from dhn.errors import UserError


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
    check_output(args.output, inputs=(args.data,), endings=TRAJECTORIES)

    import time

    import numpy as np

    from dhn.cli.compilation import open_run
    from dhn.cli.parts import in_parts, joined
    from dhn.cli.waiting import waiting
    from dhn.estimator.answers import extended, keep_known
    from dhn.estimator.reconstruction import warning
    from dhn.evaluation.metrics import compare
    from dhn.trajectories.validity import forecast_validity

    model, data = open_run(args.run, args.data)
    if data.q.shape[1] < args.observe:
        raise UserError(
            f"--observe {args.observe}, but the trajectories of {args.data} have only "
            f"{data.q.shape[1]} states."
        )
    start = time.perf_counter()

    def predict(part, number):
        asked = extended(part, args.steps, model.time_step)
        answer = model.reconstruct(asked, samples=args.samples, seed=args.seed + number)
        return keep_known(asked, answer.trajectories), answer.fit, answer.result

    with waiting("forecasting", enabled=not args.json) as report:
        answers = in_parts(data[:, : args.observe], predict, report)
    found = joined([answer[0] for answer in answers])
    fit = np.concatenate([answer[1] for answer in answers])
    result = [x for answer in answers for x in answer[2]]
    elapsed = time.perf_counter() - start
    with waiting(f"writing {args.output}", enabled=not args.json):
        save_result(found, args.output)
    values: dict[str, Any] = {
        "output": str(args.output),
        "trajectories": len(found),
        "observed": args.observe,
        "predicted": args.steps,
        "seconds": elapsed,
        "fit": {"median": float(np.median(fit)), "worst": float(fit.max())},
        "results": {data.ids[k]: x.name for k, x in enumerate(result)},
        "warning": warning(result, data.ids),
    }
    if (valid := forecast_validity(found)) is not None:
        each = dict(zip(data.ids, map(float, valid.until), strict=True))
        values["valid_until"] = {**valid.summary(data.units.get("t", "")), "each": each}
    if data.q.shape[1] > args.observe and data.known[:, args.observe :].any():
        values["against_data"] = compare(found, data).summary()
    return Result(values, lambda console: _draw(console, values))


def _draw(console: Console, values: dict[str, Any]) -> None:
    console.print(
        f"{values['output']}: {values['trajectories']} trajectories, {values['observed']} states "
        f"seen, {values['predicted']} predicted in {values['seconds']:.1f} s"
    )
    if values["warning"] is not None:
        console.print(f"warning: {values['warning']}", soft_wrap=True)
    if "valid_until" in values:
        console.print(values["valid_until"]["sentence"], soft_wrap=True)
    if "against_data" in values:
        against = values["against_data"]
        console.print(
            f"against the states in the file: mean squared error {against['mse']:.3g} "
            f"(normalised), median {against['median']:.3g}"
        )
