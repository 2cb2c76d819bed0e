"""The arguments that commands share, so that they are named and explained alike everywhere."""

import math
from pathlib import Path
from typing import Annotated

import tyro
from annotated_types import Ge, Gt, Lt

from dhn.cli.outputs import check_output
from dhn.errors import UserError

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


def check_writable(path: Path) -> None:
    """`check_output` for a file of any ending."""
    check_output(path)


RunFolder = Annotated[
    tyro.conf.Positional[Path],
    tyro.conf.arg(metavar="RUN", help="Folder of a trained model, as made by `dhn train`."),
]


def seconds(text: str) -> float:
    """A duration such as 90, 90s, 5m or 1.5h, in seconds."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    try:
        value = float(number) * units[unit]
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise UserError(f"--budget must be a duration such as 90s, 5m or 1h; got {text!r}.")
    return value
