"""From words on the command line to a checked, frozen dataclass; every mistake is one line."""

import contextlib
import dataclasses
import difflib
import io
import re
import typing
from collections.abc import Iterable, Sequence
from typing import TypeVar

import tyro
from pydantic import TypeAdapter, ValidationError

from dhn.errors import UserError

Arguments = TypeVar("Arguments")


def closest(word: str, choices: Iterable[str]) -> str:
    """`, did you mean 'x'?` for the choice most like `word`, or nothing."""
    found = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.6)
    return f" (did you mean {found[0]!r}?)" if found else ""


def parse(kind: type[Arguments], words: Sequence[str], prog: str) -> Arguments:
    """Read `words` as the dataclass `kind`: tyro reads the types, pydantic checks the ranges."""
    screen = io.StringIO()
    try:
        with contextlib.redirect_stderr(screen):
            args, unknown = tyro.cli(kind, args=list(words), prog=prog, return_unknown_args=True)
    except SystemExit as leaving:
        if not leaving.code:
            raise
        raise UserError(f"{_first_words(screen.getvalue())} See {prog} --help.") from None
    if unknown:
        raise UserError(_unknown(kind, unknown, prog))
    try:
        # Checked here rather than by a pydantic dataclass: its errors arrive as data, not text.
        values = {f.name: getattr(args, f.name) for f in dataclasses.fields(args)}  # type: ignore[arg-type]
        return TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        flag = _flag(kind, str(first["loc"][0]))
        expected = first["msg"].removeprefix("Input ").removeprefix("Value error, ")
        raise UserError(f"{flag} {expected}, got {first['input']!r}. See {prog} --help.") from None


def _unknown(kind: type, unknown: Sequence[str], prog: str) -> str:
    flags = [_flag(kind, f.name) for f in dataclasses.fields(kind)]
    flags = [flag for flag in flags if flag.startswith("--")]
    word = unknown[0].split("=")[0]
    if word.startswith("-"):
        return f"{prog} has no option {word}{closest(word, flags)}. See {prog} --help."
    return f"{prog} does not know what to do with {word!r}. See {prog} --help."


def _flag(kind: type, name: str) -> str:
    """The word that stands for a field on the command line."""
    hint = typing.get_type_hints(kind, include_extras=True)[name]
    metadata = typing.get_args(hint)[1:] if typing.get_origin(hint) is typing.Annotated else ()
    if tyro.conf.Positional in metadata:
        return name.upper()
    return "--" + name.replace("_", "-")


def _first_words(screen: str) -> str:
    """The gist of tyro's framed message: what stands above the first inner rule, as one line."""
    lines = []
    for line in screen.splitlines():
        inside = re.match(r"│ (.*?)\s*│$", line)
        if inside is None:
            continue
        if set(inside[1]) == {"─"}:
            break
        lines.append(inside[1])
    if lines and lines[0].startswith("Missing from"):
        # Names are indented by four, their explanations by more.
        names = [line.strip() for line in lines[1:] if re.match(r" {4}\S", line)]
        return "missing: " + "; ".join(names) + "."
    text = " ".join(" ".join(lines or [screen]).split())
    text = re.sub(r"invalid literal for int\(\) with base 10: (.*)", r"expected an integer, got \1", text)
    text = re.sub(r"could not convert string to float: (.*)", r"expected a number, got \1", text)
    return text.removeprefix("Error parsing ").rstrip(".") + "."
