"""`dhn reconstruct`: whatever is known goes in, the rest comes out."""

import dataclasses
from typing import Any, final

from dhn.cli.arguments import Data, Json, Output, RunFolder, Seed
from dhn.cli.outputs import TRAJECTORIES, check_output, save_result
from dhn.cli.result import Console, Result


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Reconstruct every unknown number of trajectories, with error bands.

    Example: dhn reconstruct runs/dp holes.csv -o filled.csv

    An empty cell (or NaN) is an unknown number: lost rows, one of two angles, no momenta at all,
    or rows with nothing but a later time. Measurements at uneven times keep their times.
    """

    run: RunFolder
    data: Data
    output: Output
    seed: Seed = 0
    json: Json = False


def run(args: Arguments) -> Result:
    """Ask the model and write all states with quantiles."""
    check_output(args.output, inputs=(args.data,), endings=TRAJECTORIES)

    import time

    import numpy as np

    from dhn.cli.compilation import open_run
    from dhn.cli.waiting import waiting

    model, data = open_run(args.run, args.data)
    start = time.perf_counter()
    with waiting("reconstructing", enabled=not args.json):
        found = model.reconstruct(data)
        save_result(found.trajectories, args.output)
    values: dict[str, Any] = {
        "output": str(args.output),
        "trajectories": len(data),
        "known": int(data.known_q.sum()),
        "reconstructed": int((~data.known_q).sum()),
        "seconds": time.perf_counter() - start,
        "fit": {"median": float(np.median(found.fit)), "worst": float(found.fit.max())},
        "results": {id: result.name for id, result in zip(data.ids, found.result, strict=True)},
        "parameters": {
            name: {
                id: {"estimate": float(value), "standard_error": float(error)}
                for id, value, error in zip(data.ids, *pair, strict=True)
            }
            for name, pair in found.parameters.items()
        },
        "warning": found.warning(),
    }
    return Result(values, lambda console: _draw(console, values))


def _draw(console: Console, values: dict[str, Any]) -> None:
    console.print(
        f"{values['output']}: {values['trajectories']} trajectories, {values['known']} coordinates "
        f"known, {values['reconstructed']} reconstructed in {values['seconds']:.1f} s",
        soft_wrap=True,
    )
    for name, rows in values["parameters"].items():
        id, first = next(iter(rows.items()))
        console.print(
            f"{name}: {first['estimate']:.6g} ± {first['standard_error']:.2g} (trajectory {id})"
        )
    if values["warning"] is not None:
        console.print(f"warning: {values['warning']}", soft_wrap=True)
