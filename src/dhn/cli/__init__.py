"""The command `dhn`: parse first, import JAX after.

Adding a command: write `src/dhn/cli/<command>.py` with a frozen dataclass `Arguments` and a
function `run(args, common) -> Result`, then add its name to `COMMANDS`. Heavy imports go inside
`run`.
"""

import contextlib
import gc
import importlib
import keyword
import logging
import os
import sys
import threading
from collections.abc import Sequence
from types import ModuleType
from typing import NoReturn

from dhn.errors import NEAR, UserError, did_you_mean

COMMANDS = (
    "systems", "pretrained", "simulate", "inspect", "import", "convert", "train", "forecast",
    "interpolate", "infer", "evaluate", "denoise", "reconstruct", "sweep", "reproduce",
    "report", "explore", "bench", "doctor",
)  # fmt: skip

OBJECTS_BETWEEN_COLLECTIONS = 50_000  # few collections happen during imports


def load(command: str) -> ModuleType:
    """The module of a command; `import` lives in `import_.py`, being a word of Python's."""
    return importlib.import_module(f"dhn.cli.{command}{'_' if keyword.iskeyword(command) else ''}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 2 for the user's mistake, 1 otherwise."""
    argv = list(sys.argv[1:] if argv is None else argv)
    # XLA writes notes about cached programs to stderr that mean nothing to a user.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # NumPy's matrices here are small: its threads gain little, and where other programs use the
    # processors they wait for one another, ten times as long as the product takes.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Importing and tracing make many objects that stay; looking for cycles among them every 700
    # objects takes a tenth of the time of a short command.
    before = gc.get_threshold()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS, *before[1:])
    try:
        return _dispatch(argv)
    except BrokenPipeError:
        # `dhn ... | head`: Python would complain once more when it flushes stdout on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (Exception, KeyboardInterrupt) as error:
        from dhn.cli.result import explain

        return explain(error, as_json="--json" in argv)
    finally:
        gc.set_threshold(*before)


def command() -> NoReturn:
    """`main` as a program of its own: ends the process."""
    code = main()
    if any(x.daemon for x in threading.enumerate()):
        # After Ctrl-C a compiled solve may still run. It cannot be stopped, and it would crash the
        # process while Python takes the libraries down in the usual way.
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # closed at the other end
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _dispatch(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0 if argv else 2
    if argv[0] in ("-V", "--version"):
        from importlib.metadata import version

        print(f"dhn {version('dhn')}")
        return 0
    if argv[0] == "--completion":
        from dhn.cli.parsing import completion

        print(completion(argv[1] if len(argv) > 1 else "", COMMANDS, load))
        return 0
    from dhn.cli.parsing import parse

    command, *rest = argv
    if command not in COMMANDS:
        raise UserError(
            f"there is no command {command!r}{did_you_mean(command, COMMANDS, NEAR)}; "
            f"the commands are {', '.join(COMMANDS)}."
        )
    module = load(command)
    args, common = parse(module.Arguments, rest, f"dhn {command}")

    from dhn.cli.logs import logging_to
    from dhn.cli.outputs import refuse_overwriting_inputs

    refuse_overwriting_inputs(args, common.log)
    with logging_to(common.log, verbose=common.verbose, argv=argv):
        result = module.run(args, common)
        result.show(as_json=common.json)
    return result.code


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
    lines += [
        "",
        "dhn COMMAND --help explains a command, with an example.",
        "dhn --completion bash|zsh prints a script that completes words in your shell.",
        "DHN_DEBUG=1 shows where in the program an error arose.",
    ]
    return "\n".join(lines)
