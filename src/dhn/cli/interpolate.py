"""`dhn interpolate`: states between the known ones."""

import dataclasses
from typing import Annotated, Any, final

import tyro
from annotated_types import Ge

from dhn.cli.arguments import Data, Json, Output, RunFolder, Seed
from dhn.cli.outputs import TRAJECTORIES, check_output, save_result
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
    seed: Seed = 0
    json: Json = False


def run(args: Arguments) -> Result:
    """Reconstruct the states between the known ones."""
    check_output(args.output, inputs=(args.data,), endings=TRAJECTORIES)

    import time

    from dhn.cli.compilation import open_run
    from dhn.cli.parts import in_parts, joined
    from dhn.cli.waiting import waiting
    from dhn.evaluation.metrics import compare

    model, data = open_run(args.run, args.data)
    start = time.perf_counter()
    sparse = data.resample(args.factor) if args.thin else data
    with waiting("interpolating", enabled=not args.json) as report:
        parts = in_parts(sparse, lambda part, _: model.interpolate(part, args.factor), report)
        found = joined(parts)
    values: dict[str, Any] = {
        "output": str(args.output),
        "trajectories": len(found),
        "states": found.q.shape[1],
        "factor": args.factor,
        "seconds": time.perf_counter() - start,
    }
    save_result(found, args.output)
    if args.thin:
        values["against_data"] = compare(found, data).summary()
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
