"""The arguments that commands share, so that they are named and explained alike everywhere."""

from pathlib import Path
from typing import Annotated

import tyro
from pydantic import Field

from dhn.errors import UserError

Seed = Annotated[
    int, Field(ge=0, lt=2**63), tyro.conf.arg(metavar="INT", help="Seed of every random choice.")
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
PositiveInt = Annotated[int, Field(ge=1)]


def check_writable(path: Path) -> None:
    """Complain about an impossible output before the work is done rather than after it."""
    if path.is_dir():
        raise UserError(f"{path} is a folder; name a file to write, such as {path / 'out.npz'}.")
    if not path.parent.is_dir():
        raise UserError(f"the folder {path.parent} does not exist; make it: mkdir -p {path.parent}")
