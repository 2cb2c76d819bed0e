"""`dhn systems`: which systems are built in."""

import dataclasses
from typing import Any, final

from dhn.cli.arguments import Json, Seed
from dhn.cli.result import Console, Result


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """List the built-in systems: coordinates, parameters, conserved quantities.

    Example: dhn systems --json
    """

    seed: Seed = 0
    json: Json = False


def run(args: Arguments) -> Result:
    """Gather the description of each system."""
    from dhn.systems import SYSTEMS, get_system

    found = {}
    for name in SYSTEMS:
        system = get_system(name)
        found[name] = {
            "description": system.description,
            "coordinates": system.coordinates,
            "angles": system.angles,
            "params": system.params,
            "initial": system.initial,
            "conserved": ["energy", *system.invariants],
            "time_step": system.time_step,
            "steps": system.steps,
        }
    return Result(found, lambda console: _draw(console, found))


def _draw(console: Console, found: dict[str, Any]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("system", no_wrap=True)
    for heading in ("coordinates", "parameters", "conserved"):
        table.add_column(heading)
    for name, system in found.items():
        params = (f"{key}={_text(value)}" for key, value in system["params"].items())
        row = (system["coordinates"], params, system["conserved"])
        table.add_row(name, *("  ".join(cell) for cell in row))
    console.print(table)
    console.print("A range low:high is drawn anew for each trajectory. Next: dhn simulate --help")


def _text(value: Any) -> str:
    """As `--param` would read it."""
    return f"{value:g}" if isinstance(value, int | float) else ":".join(f"{end:g}" for end in value)
