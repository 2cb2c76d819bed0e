"""`dhn reconstruct`: whatever is known goes in, the rest comes out."""

import dataclasses
from typing import Any, final

from dhn.cli.arguments import Data, Json, Output, RunFolder, Seed
from dhn.cli.outputs import TRAJECTORIES, check_output, save_pieces
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

    from dhn.cli.compilation import open_model
    from dhn.cli.parts import in_parts
    from dhn.cli.waiting import waiting
    from dhn.estimator.reconstruction import warning
    from dhn.files.pieces import open_pieces

    fit: list[np.ndarray] = []
    result: list[Any] = []
    parameters: dict[str, dict[str, dict[str, float]]] = {}
    known = [0, 0]
    with open_pieces(args.data) as data:
        model = open_model(args.run)
        start = time.perf_counter()

        def ask(part, _):
            found = model.reconstruct(part)
            fit.append(found.fit)
            result.extend(found.result)
            for name, pair in found.parameters.items():
                rows = parameters.setdefault(name, {})
                for id, value, error in zip(part.ids, *pair, strict=True):
                    rows[id] = {"estimate": float(value), "standard_error": float(error)}
            known[0] += int(part.known_q.sum())
            known[1] += int((~part.known_q).sum())
            return found.trajectories

        with waiting("reconstructing", enabled=not args.json) as report:
            save_pieces(in_parts(data, ask, report), args.output, len(data))
        ids = data.ids
    fits = np.concatenate(fit)
    values: dict[str, Any] = {
        "output": str(args.output),
        "trajectories": len(ids),
        "known": known[0],
        "reconstructed": known[1],
        "seconds": time.perf_counter() - start,
        "fit": {"median": float(np.median(fits)), "worst": float(fits.max())},
        "results": {id: x.name for id, x in zip(ids, result, strict=True)},
        "parameters": parameters,
        "warning": warning(result, ids),
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
