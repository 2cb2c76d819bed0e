"""`dhn forecast`: see the first states of new trajectories, predict the next."""

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any, final

from annotated_types import Ge

from dhn.checks import whole
from dhn.cli.arguments import Common, Data, Output, PositiveInt, RunFolder
from dhn.cli.asking import PART, Answers, draw_warning
from dhn.cli.outputs import TRAJECTORIES, ZARR, check_output
from dhn.cli.result import Console, Result
from dhn.errors import UserError

if TYPE_CHECKING:
    from dhn.trajectories import Trajectories

_BYTES = 2 * 12 * 8
"""On the disk, of a coordinate of a state: q, p and five quantiles of each in float64, gathered and
then written."""


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
    """Paths to draw for the quantiles; 0 takes them from the linearised posterior."""


def run(args: Arguments, common: Common) -> Result:
    """Fit a code to each observed prefix, slide the model forward, write the joined states."""
    answers = Answers(args, common, "forecasting")

    import numpy as np

    from dhn.estimator.answers import check_room, extended, keep_known
    from dhn.evaluation.metrics import compare, units_of
    from dhn.trajectories.validity import Validity, forecast_validity

    valid: list[Validity] = []
    unit: set[str] = set()
    with answers.opened() as (model, data):
        if data.states < args.observe:
            raise UserError(
                f"--observe {args.observe}, but the trajectories of {args.data} have only "
                f"{data.states} states; observe fewer."
            )
        states = args.observe + whole("--steps", args.steps)
        check_room(data.rows(0, min(PART, len(data))), states, args.samples)
        size = _BYTES * len(data) * states * data.dim
        check_output(args.output, endings=(*TRAJECTORIES, ZARR), size=size)
        units = units_of(data.pieces(PART)) if data.states > args.observe else None

        def predict(part, number):
            asked = _at_times_of(
                part, extended(part[:, : args.observe], args.steps, model.time_step)
            )
            answer = model.reconstruct(asked, samples=args.samples, seed=common.seed + number)
            answers.add(part, answer)
            found = keep_known(asked, answer.trajectories)
            if (until := forecast_validity(found)) is not None:
                valid.append(until)
                unit.add(found.units.get("t", ""))
            if units is not None and part.known[:, args.observe : states].any():
                answers.metrics.append(compare(found, part, units))
            return found

        answers.write(data, predict)
    values = answers.values() | {"observed": args.observe, "predicted": args.steps}
    if valid:
        until = np.concatenate([x.until for x in valid])
        beyond = np.concatenate([x.beyond for x in valid])
        each = dict(zip(answers.ids, map(float, until), strict=True))
        values["valid_until"] = {**Validity(until, beyond).summary(unit.pop()), "each": each}
    return Result(values, lambda console: _draw(console, values))


def _at_times_of(data: "Trajectories", asked: "Trajectories") -> "Trajectories":
    """The states asked for at the times of those in the file, as far as there are any."""
    if data.is_uniform:
        return asked
    states = min(data.states, asked.states)
    t = asked.times.copy()
    later = t[:, states:] - t[:, states - 1 : states]
    t[:, :states] = data.times[:, :states]
    t[:, states:] = t[:, states - 1 : states] + later
    return asked.replace(t=t)


def _draw(console: Console, values: dict[str, Any]) -> None:
    console.print(
        f"{values['output']}: {values['trajectories']} trajectories, {values['observed']} states "
        f"seen, {values['predicted']} predicted in {values['seconds']:.1f} s"
    )
    draw_warning(console, values)
    if "valid_until" in values:
        console.print(values["valid_until"]["sentence"])
    if "against_data" in values:
        against = values["against_data"]
        console.print(
            f"against the states in the file: mean squared error {against['mse']:.3g} "
            f"(normalised), median {against['median']:.3g}"
        )
