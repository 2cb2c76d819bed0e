"""The command `dhn`: parse first, import JAX after.

Adding a command: write `src/dhn/cli/<command>.py` with a frozen dataclass `Arguments` and a
function `run(args) -> Result`, then add its name to `COMMANDS`. Heavy imports go inside `run`.
"""

import importlib
import keyword
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from dhn.errors import UserError

COMMANDS = (
    "systems",
    "simulate",
    "inspect",
    "import",
    "train",
    "forecast",
    "interpolate",
    "infer",
    "evaluate",
    "denoise",
    "reconstruct",
    "reproduce",
    "report",
    "explore",
    "bench",
)

INTERRUPTED = 130  # what a shell reports for a process ended by Ctrl-C


def load(command: str) -> ModuleType:
    """The module of a command; `import` lives in `import_.py`, being a word of Python's."""
    return importlib.import_module(f"dhn.cli.{command}{'_' if keyword.iskeyword(command) else ''}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 2 for the user's mistake, 1 otherwise."""
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(argv)
    except UserError as error:
        return _complain(str(error), 2)
    except KeyboardInterrupt as interrupt:
        # A command that has saved its work says so in the exception it raises.
        code = getattr(interrupt, "exit_code", INTERRUPTED)
        return _complain(str(interrupt) or "interrupted; nothing was written", code)
    except BrokenPipeError:
        # `dhn ... | head`: Python would complain once more when it flushes stdout on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _dispatch(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0 if argv else 2
    if argv[0] in ("-V", "--version"):
        from importlib.metadata import version

        print(f"dhn {version('dhn')}")
        return 0
    from dhn.cli.parsing import closest, parse

    command, *rest = argv
    if command not in COMMANDS:
        raise UserError(
            f"there is no command {command!r}{closest(command, COMMANDS)}; "
            f"the commands are {', '.join(COMMANDS)}."
        )
    module = load(command)
    args = parse(module.Arguments, rest, f"dhn {command}")
    module.run(args).show(as_json=args.json)
    return 0


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [
        "usage: dhn COMMAND [OPTIONS]",
        "",
        "Learn the physics of a system from its trajectories.",
        "",
        "commands:",
    ]
    for command in COMMANDS:
        summary = (load(command).Arguments.__doc__ or "").strip().splitlines()[0]
        lines.append(f"  {command:<{width}}  {summary}")
    lines += ["", "dhn COMMAND --help explains a command, with an example."]
    return "\n".join(lines)


def _complain(message: str, code: int) -> int:
    sys.stdout.flush()
    print("dhn: " + " ".join(message.split()), file=sys.stderr)
    return code
