"""`dhn interpolate`: states between the known ones."""

import dataclasses
from typing import Annotated, Any, final

import tyro
from annotated_types import Ge

from dhn.cli.arguments import Common, Data, Output, RunFolder
from dhn.cli.asking import PART, Answers
from dhn.cli.result import Console, Result


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Put states between the known ones of coarsely sampled trajectories.

    Example: dhn interpolate runs/dp coarse.npz --factor 4 -o fine.npz

    With --thin the file has the fine grid already: every factor-th state is kept, the others
    are predicted and compared.
    """

    run: RunFolder
    data: Data
    output: Output
    factor: Annotated[int, Ge(2)] = 4
    """New time steps per old one."""
    thin: tyro.conf.FlagCreatePairsOff[bool] = False
    """Keep every factor-th state of the file and predict the rest, to see how good it is."""


def run(args: Arguments, common: Common) -> Result:
    """Reconstruct the states between the known ones."""
    answers = Answers(args, common, "interpolating")

    from dhn.evaluation.metrics import compare, units_of

    with answers.opened() as (model, data):
        units = units_of(data.pieces(PART)) if args.thin else None
        kept = -(-data.states // args.factor) if args.thin else data.states

        def refine(part, _):
            sparse = part.resample(args.factor) if args.thin else part
            found = model.interpolate(sparse, args.factor)
            if units is not None:
                answers.metrics.append(compare(found, part, units))
            return found

        answers.write(data, refine)
    values = answers.values() | {"states": (kept - 1) * args.factor + 1, "factor": args.factor}
    return Result(values, lambda console: _draw(console, values))


def _draw(console: Console, values: dict[str, Any]) -> None:
    console.print(
        f"{values['output']}: {values['trajectories']} trajectories of {values['states']} states, "
        f"{values['factor']} times finer, in {values['seconds']:.1f} s"
    )
    if "against_data" in values:
        console.print(
            f"against the states left out: mean squared error {values['against_data']['mse']:.3g} "
            f"(normalised)"
        )
