"""`dhn convert`: trajectories from one format into another, also larger than memory."""

import dataclasses
from pathlib import Path
from typing import Annotated, final

import tyro

from dhn.cli.arguments import Common
from dhn.cli.outputs import TRAJECTORIES, ZARR, check_output, refuse_twice, save_pieces
from dhn.cli.result import Console, Result
from dhn.errors import UserError


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Write trajectories in another format; .zarr is for more than memory holds.

    Example: dhn convert train.npz train.zarr

    Example: dhn convert part1.npz part2.npz part3.npz all.zarr

    A .zarr folder is read and written in pieces; other formats are read whole.
    """

    files: Annotated[
        tyro.conf.Positional[tuple[Path, ...]],
        tyro.conf.arg(
            metavar="IN [IN ...] OUT", help="Files of trajectories, and the one to write."
        ),
    ]


def run(args: Arguments, common: Common) -> Result:
    """Read one input after the other and write what was read."""
    if len(args.files) < 2:
        raise UserError("name at least one file to read and one to write: dhn convert IN OUT.")
    *sources, output = args.files
    check_output(output, inputs=sources, endings=(*TRAJECTORIES, ZARR))
    refuse_twice(sources)

    import contextlib
    import itertools

    from dhn.cli.asking import PART
    from dhn.cli.waiting import waiting
    from dhn.files.pieces import open_pieces

    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(open_pieces(path)) for path in sources]
        count = sum(len(source) for source in opened)
        pieces = itertools.chain.from_iterable(source.pieces(PART) for source in opened)
        with waiting("converting", enabled=not common.json):
            save_pieces(pieces, output, count)
    found = {"inputs": [str(x) for x in sources], "output": str(output), "trajectories": count}

    def draw(console: Console) -> None:
        console.print(f"{output}: {count} trajectories")

    return Result(found, draw)
