"""`dhn explore`: a page in which a trained model runs."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any, final

import tyro

from dhn.cli.arguments import Common, RunFolder, page_of
from dhn.cli.outputs import PAGES, check_output
from dhn.cli.result import Console, Result
from dhn.errors import UserError


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Write one HTML page that runs a trained model: drag a state, see the predicted motion.

    Example: dhn explore runs/dp test.npz -o explorer.html --open

    The page is a single file without a server. It can be sent, and opened without a network.
    """

    run: RunFolder
    data: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="FILE")] = None
    """Trajectories to start from and to compare with; the training data by default, where the run
    still finds them, and simulated ones for a model of the package."""
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"], metavar="PAGE")] = None
    """The page; explorer.html in the run's folder by default, NAME-explorer.html here for a model
    of the package."""
    title: Annotated[str | None, tyro.conf.arg(metavar="TEXT")] = None
    """Heading of the page; the system's name by default."""
    open: tyro.conf.FlagCreatePairsOff[bool] = False
    """Show the page in the browser."""


def run(args: Arguments, common: Common) -> Result:
    """Export the model and what is known of its data."""
    output = args.output or page_of(args.run, "explorer.html")
    if args.output is not None or args.run.is_dir():
        check_output(output, endings=PAGES)

    from dhn.cli.asking import use_cache

    use_cache()

    from dhn.cli.sources import training_states
    from dhn.cli.waiting import waiting
    from dhn.estimator import load
    from dhn.explorer import write_explorer
    from dhn.files import read

    model = load(args.run).network
    if model is None:
        raise UserError(f"{args.run} holds mechanics; the explorer shows trained networks.")
    train = training_states(model, args.run)
    data = None if args.data is None else read(args.data)
    with waiting("writing the page", enabled=not common.json):
        size = write_explorer(output, model, data, train=train, title=args.title, seed=common.seed)
    values = {
        "page": str(output),
        "bytes": size,
        "data": None if args.data is None else str(args.data),
        "training_data": train is not None,
    }
    if args.open:
        import webbrowser

        webbrowser.open(output.resolve().as_uri())
    return Result(values, lambda console: _draw(console, values))


def _draw(console: Console, values: dict[str, Any]) -> None:
    console.print(f"page: {values['page']} ({values['bytes'] / 1000:.0f} kB)")
    if not values["training_data"]:
        seen = f"the states of {values['data']}" if values["data"] else "no data"
        console.print(f"the run's training data were not found: the page shows {seen} in grey")
