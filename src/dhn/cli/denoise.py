"""`dhn denoise`: the model's own path through noisy measurements."""

import dataclasses
from typing import Annotated, Any, final

import tyro

from dhn.cli.arguments import Data, Json, Output, Positive, RunFolder, Seed
from dhn.cli.outputs import TRAJECTORIES, check_output, save_result
from dhn.cli.result import Console, Result


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Lay the model's path through noisy measurements: smoother states, gaps filled.

    Example: dhn denoise runs/track measured.npz -o clean.npz
    """

    run: RunFolder
    data: Data
    output: Output
    noise: Annotated[Positive | None, tyro.conf.arg(metavar="FRACTION")] = None
    """Noise as a fraction of each quantity's standard deviation, if the file does not carry it."""
    seed: Seed = 0
    json: Json = False


def run(args: Arguments) -> Result:
    """Reconstruct every state from all measurements."""
    check_output(args.output, inputs=(args.data,), endings=TRAJECTORIES)

    import numpy as np

    from dhn.cli.asking import in_parts, open_run
    from dhn.cli.waiting import waiting
    from dhn.files.pieces import InMemory
    from dhn.trajectories import Trajectories

    model, data = open_run(args.run, args.data)
    noise = None
    if args.noise is not None:
        momenta = np.zeros_like(data.q) if data.momenta is None else data.momenta
        parts = (data.q[data.known], momenta[data.known])
        noise = args.noise * np.stack([np.nanstd(x, axis=0) for x in parts])
    with waiting("denoising", enabled=not args.json) as report:
        ask = lambda part, _: model.denoise(part, noise=noise)  # noqa: E731
        found = Trajectories.concatenate(list(in_parts(InMemory(data), ask, report)))
    save_result(found, args.output)
    moved = np.sqrt(np.nanmean((found.q - data.q)[data.known] ** 2, axis=0))
    values: dict[str, Any] = {
        "output": str(args.output),
        "trajectories": len(found),
        "filled": int((~data.known).sum()),
        "moved": dict(zip(data.names, moved.tolist(), strict=True)),
    }
    return Result(values, lambda console: _draw(console, values))


def _draw(console: Console, values: dict[str, Any]) -> None:
    moved = ", ".join(f"{name} {value:.3g}" for name, value in values["moved"].items())
    console.print(
        f"{values['output']}: {values['trajectories']} trajectories, {values['filled']} states "
        f"filled in; measurements moved by (rms) {moved}"
    )
