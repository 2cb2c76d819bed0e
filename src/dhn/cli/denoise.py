"""`dhn denoise`: the states behind noisy measurements."""

import dataclasses
from typing import Annotated, Any, final

import tyro

from dhn.cli.arguments import Common, Data, Output, Positive, RunFolder
from dhn.cli.asking import Answers
from dhn.cli.result import Console, Result


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Estimate the states behind noisy measurements: less noise, gaps filled.

    Example: dhn denoise runs/track measured.npz -o clean.npz
    """

    run: RunFolder
    data: Data
    output: Output
    noise: Annotated[Positive | None, tyro.conf.arg(metavar="FRACTION")] = None
    """Noise as a fraction of each quantity's standard deviation, if the file does not carry it."""


def run(args: Arguments, common: Common) -> Result:
    """Reconstruct every state from all measurements."""
    answers = Answers(args, common, "denoising")

    import numpy as np

    moved: list[np.ndarray] = []
    filled = 0
    with answers.opened() as (model, data):
        noise = None
        if args.noise is not None:
            whole = data.rows(0, len(data))
            momenta = np.zeros_like(whole.q) if whole.momenta is None else whole.momenta
            parts = (whole.q[whole.known], momenta[whole.known])
            noise = args.noise * np.stack([np.nanstd(x, axis=0) for x in parts])

        def clean(part, _):
            nonlocal filled
            found = model.denoise(part, noise=noise)
            moved.append((found.q - part.q)[part.known] ** 2)
            filled += int((~part.known).sum())
            return found

        answers.write(data, clean)
        names = data.rows(0, 1).names
    size = np.sqrt(np.nanmean(np.concatenate(moved), axis=0))
    values = answers.values() | {
        "filled": filled,
        "moved": dict(zip(names, size.tolist(), strict=True)),
    }
    return Result(values, lambda console: _draw(console, values))


def _draw(console: Console, values: dict[str, Any]) -> None:
    moved = ", ".join(f"{name} {value:.3g}" for name, value in values["moved"].items())
    console.print(
        f"{values['output']}: {values['trajectories']} trajectories, {values['filled']} states "
        f"filled in; measurements moved by (rms) {moved}"
    )
