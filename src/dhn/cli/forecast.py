"""`dhn forecast`: see the first states of new trajectories, predict the next."""

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any, final

from annotated_types import Ge

from dhn.cli.arguments import Data, Json, Output, PositiveInt, RunFolder, Seed
from dhn.cli.outputs import TRAJECTORIES, check_output
from dhn.cli.result import Result
from dhn.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console


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

    from dhn.cli.compilation import open_run
    from dhn.estimator.answers import extended, keep_known
    from dhn.evaluation.metrics import compare
    from dhn.files import write

    model, data = open_run(args.run, args.data)
    if data.q.shape[1] < args.observe:
        raise UserError(
            f"--observe {args.observe}, but the trajectories of {args.data} have only "
            f"{data.q.shape[1]} states."
        )
    start = time.perf_counter()
    observed = data[:, : args.observe]
    asked = extended(observed, args.steps, model.time_step)
    answer = model.reconstruct(asked, samples=args.samples, seed=args.seed)
    found = keep_known(asked, answer.trajectories)
    elapsed = time.perf_counter() - start
    write(found, args.output)
    values: dict[str, Any] = {
        "output": str(args.output),
        "trajectories": len(found),
        "observed": args.observe,
        "predicted": args.steps,
        "seconds": elapsed,
        "fit": {"median": _median(answer.fit), "worst": float(answer.fit.max())},
        "results": {data.ids[k]: x.name for k, x in enumerate(answer.result)},
        "warning": answer.warning(),
    }
    if data.q.shape[1] > args.observe and data.known[:, args.observe :].any():
        values["against_data"] = compare(found, data).summary()
    return Result(values, lambda console: _draw(console, values))


def _median(x) -> float:
    import numpy as np

    return float(np.median(x))


def _draw(console: "Console", values: dict[str, Any]) -> None:
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
