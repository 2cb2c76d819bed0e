"""`dhn systems`: which systems are built in."""

import dataclasses
from typing import Any, final

from dhn.cli.arguments import Common
from dhn.cli.result import Console, Result, draw_table


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """List the built-in systems: coordinates, parameters, conserved quantities.

    Example: dhn systems --json
    """


def run(args: Arguments, common: Common) -> Result:
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
    rows = []
    for name, system in found.items():
        params = (f"{key}={_text(value)}" for key, value in system["params"].items())
        cells = (system["coordinates"], params, system["conserved"])
        rows.append((name, *("  ".join(cell) for cell in cells)))
    draw_table(console, ("system", "coordinates", "parameters", "conserved"), rows)
    console.print("A range low:high is drawn anew for each trajectory. Next: dhn simulate --help")


def _text(value: Any) -> str:
    """As `--param` would read it."""
    return f"{value:g}" if isinstance(value, int | float) else ":".join(f"{end:g}" for end in value)
