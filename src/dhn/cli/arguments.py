"""The arguments that commands share, so that they are named and explained alike everywhere."""

import math
from pathlib import Path
from typing import Annotated

import tyro
from annotated_types import Ge, Gt, Lt

# Ranges are told by `annotated_types`, which pydantic checks: importing pydantic itself would
# take a third of the time in which `dhn --help` answers.
PositiveInt = Annotated[int, Ge(1)]
Positive = Annotated[float, Gt(0), Lt(math.inf)]
NotNegative = Annotated[float, Ge(0), Lt(math.inf)]

Seed = Annotated[
    int, Ge(0), Lt(2**63), tyro.conf.arg(metavar="INT", help="Seed of every random choice.")
]
Json = Annotated[
    tyro.conf.FlagCreatePairsOff[bool], tyro.conf.arg(help="Print the result as JSON.")
]
Output = Annotated[
    Path,
    tyro.conf.arg(
        aliases=["-o"],
        metavar="FILE",
        help="File to write; the ending chooses the format (.npz, .csv, .mat, ...).",
    ),
]
Data = Annotated[
    tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE", help="File of trajectories.")
]


RunFolder = Annotated[
    tyro.conf.Positional[Path],
    tyro.conf.arg(
        metavar="RUN",
        help="Folder of a trained model, as made by `dhn train`; or pretrained:NAME.",
    ),
]


def page_of(run: Path, name: str) -> Path:
    """Where a page about a run goes: into its folder, or here for a model of the package."""
    package, _, model = str(run).partition("pretrained:")
    return Path(f"{model}-{name}") if model and not package else run / name
