"""`dhn --completion SHELL`: a script with which a shell completes commands and options."""

import contextlib
import io
from collections.abc import Callable, Iterable
from types import ModuleType

from dhn.errors import UserError

SHELLS = ("bash", "zsh")


def completion(shell: str, commands: Iterable[str], load: Callable[[str], ModuleType]) -> str:
    """The script for one of `SHELLS`, made from the same dataclasses that are parsed."""
    if shell not in SHELLS:
        raise UserError(
            f"--completion needs one of {', '.join(SHELLS)}, got {shell!r}; for example: "
            f'eval "$(dhn --completion bash)".'
        )
    import tyro

    from dhn.cli.parsing import with_common

    screen = io.StringIO()
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(screen):
        tyro.extras.subcommand_cli_from_dict(
            {command: with_common(load(command).Arguments) for command in commands},
            prog="dhn",
            args=["--tyro-print-completion", shell],
        )
    return screen.getvalue().rstrip()
