"""From words on the command line to a checked, frozen dataclass; every mistake is one line."""

import contextlib
import dataclasses
import io
import itertools
import json
import re
import textwrap
import tomllib
import typing
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import tyro

from dhn.cli.arguments import Common
from dhn.errors import NEAR, UserError, did_you_mean, first_mistake

Arguments = TypeVar("Arguments")
_Named: Any = type(tyro.conf.arg())
"""What `tyro.conf.arg` adds to the type of a field."""


def with_common(kind: type) -> type:
    """The dataclass `kind` with the fields of `Common` at its end."""
    hints = typing.get_type_hints(Common, include_extras=True)
    added = [(field.name, hints[field.name], field) for field in dataclasses.fields(Common)]
    made = dataclasses.make_dataclass(kind.__name__, added, bases=(kind,), frozen=True)
    made.__doc__ = kind.__doc__
    return made


def parse(kind: type[Arguments], words: Sequence[str], prog: str) -> tuple[Arguments, Common]:
    """Read `words` as the dataclass `kind`: tyro reads the types, pydantic checks the ranges.

    **Returns:** the command's arguments, and those that all commands share.
    """
    _refuse_twice(kind, words)
    configured = _configured(kind, words)
    _refuse_twice(kind, configured)
    words = [*configured, *words]
    screen = io.StringIO()
    try:
        with contextlib.redirect_stderr(screen):
            args, unknown = tyro.cli(
                with_common(kind), args=words, prog=prog, return_unknown_args=True
            )
    except SystemExit as leaving:
        if not leaving.code:
            raise
        strange = [w for w in words if _option(w).startswith("--") and _option(w) not in _OPTIONS]
        strange = [w for w in strange if _option(w) not in _flags(kind)]
        if strange:
            raise UserError(_unknown(kind, strange, prog)) from None
        raise UserError(f"{_first_words(screen.getvalue())} See {prog} --help.") from None
    if unknown:
        raise UserError(_unknown(kind, unknown, prog))
    from pydantic import TypeAdapter, ValidationError

    def checked(part: Any) -> Any:
        # Here rather than by a pydantic dataclass: its errors arrive as data, not text.
        values = {f.name: getattr(args, f.name) for f in dataclasses.fields(part)}
        return TypeAdapter(part).validate_python(values)

    try:
        return checked(kind), checked(Common)
    except ValidationError as error:
        flag = _flag(with_common(kind), str(error.errors(include_url=False)[0]["loc"][0]))
        raise UserError(f"{first_mistake(error, flag)} See {prog} --help.") from None


def _configured(kind: type, words: Sequence[str]) -> list[str]:
    """The words that a file named by `--config` stands for."""
    found = [w.partition("=")[2] for w in words if w.startswith("--config=")]
    found += [b for a, b in itertools.pairwise(words) if a == "--config"]
    if not found:
        return []
    return words_of(Path(found[0]), kind)


_OPTIONS = ("--", "--help")
"""Words of every command that are no field."""


def _option(word: str) -> str:
    """The name of the option that a word gives, with hyphens; `-o` is `--output`."""
    return "--output" if word == "-o" else word.partition("=")[0].replace("_", "-")


def _flags(kind: type) -> dict[str, str]:
    """Option -> its field."""
    kind = with_common(kind)
    flags = {_flag(kind, field.name): field.name for field in dataclasses.fields(kind)}
    return {flag: name for flag, name in flags.items() if flag.startswith("--")}


def _refuse_twice(kind: type, words: Sequence[str]) -> None:
    """A second value of an option would silently replace the first."""
    kind, flags = with_common(kind), _flags(kind)
    given = [_option(word) for word in words if word.startswith("-")]
    for flag in sorted({x for x in given if given.count(x) > 1} & flags.keys()):
        marks = _marks(kind, flags[flag])
        if tyro.conf.UseAppendAction in marks:
            values = [w.partition("=")[2] for w in words if _option(w) == flag and "=" in w]
            values += [b for a, b in itertools.pairwise(words) if _option(a) == flag == a]
            names = [value.partition("=")[0] for value in values]
            for name in (x for x in names if names.count(x) > 1):
                raise UserError(f"{flag} names {name!r} twice; keep one of them.")
        elif tyro.conf.FlagCreatePairsOff not in marks:
            raise UserError(f"{flag} is given twice; keep one of them.")


def _unknown(kind: type, unknown: Sequence[str], prog: str) -> str:
    word = unknown[0].split("=")[0]
    if word.startswith("-"):
        near = did_you_mean(word, list(_flags(kind)), NEAR)
        return f"{prog} has no option {word}{near}. See {prog} --help."
    return f"{prog} does not know what to do with {word!r}. See {prog} --help."


def _flag(kind: type, name: str) -> str:
    """The word that stands for a field on the command line."""
    marks = _marks(kind, name)
    if tyro.conf.Positional in marks:
        return name.upper()
    own = next((x.name for x in marks if isinstance(x, _Named) and x.name), name)
    return "--" + own.replace("_", "-")


def _marks(kind: type, name: str) -> tuple[Any, ...]:
    """The metadata that `Annotated` adds to the type of a field."""
    hint = typing.get_type_hints(kind, include_extras=True)[name]
    return typing.get_args(hint)[1:] if typing.get_origin(hint) is typing.Annotated else ()


def _first_words(screen: str) -> str:
    """The gist of tyro's framed message: what stands above the first inner rule, as one line.

    The frame is drawn with lines or, where the terminal cannot, with spaces and hyphens.
    """
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).strip("│") for line in screen.splitlines()[1:]]
    rules = [i for i, line in enumerate(lines) if set(line.strip()) in ({"─"}, {"-"})]
    start = 1 if rules[:1] == [0] else 0
    stop = next((i for i in rules if i > start), len(lines))
    message = textwrap.dedent("\n".join(line.rstrip() for line in lines[start:stop]))
    if message.startswith("Missing from"):
        # Names are indented by four, their explanations by more.
        return "missing: " + "; ".join(re.findall(r"^ {4}(\S.*)$", message, re.MULTILINE)) + "."
    text = " ".join(message.split()) or screen
    for pattern, plain in _PLAINER.items():
        text = re.sub(pattern, plain, text)
    return text.removeprefix("Error parsing ").rstrip(".") + "."


_PLAINER = {
    # An option that may be left out: tyro lists the type None first.
    r"no type matching \{None\}.*: ([^:]+: .*)": r"\1",
    r"invalid literal for int\(\) with base 10: (.*)": r"expected an integer, got \1",
    r"could not convert string to float: (.*)": r"expected a number, got \1",
}


LARGEST = 1_000_000
"""Bytes; more is no list of options, and a device such as /dev/zero has no end."""


def words_of(path: Path, kind: type) -> list[str]:
    """The options of a file as words, to stand before those of the command line, which win.

    A key is the name of an option (`block-size` or `block_size`). A table under the name of a
    repeatable option (`[set]`, `[param]`) has its pairs. Where a command has `--set`, any other key
    is one of its names: `width = 64` is `--set width=64`.

    **Arguments:** `path`, a TOML file; `kind`, the command's dataclass.

    **Returns:** the words, in the file's order.
    """
    kind = with_common(kind)
    marks = {field.name: _marks(kind, field.name) for field in dataclasses.fields(kind)}
    del marks["config"]
    words: list[str] = []
    for key, value in _read(path).items():
        name = key.replace("-", "_")
        if name not in marks and "set" in marks and not isinstance(value, dict):
            name, value = "set", {key: value}
        if name not in marks:
            options = [x for x, found in marks.items() if tyro.conf.Positional not in found]
            raise UserError(
                f"{path}: there is no option {key!r}{did_you_mean(name, options, NEAR)}; the names "
                f"are those of the command line."
            )
        if tyro.conf.Positional in marks[name]:
            raise UserError(f"{path}: {key!r} belongs on the command line, without a name.")
        values = [value]
        if tyro.conf.UseAppendAction in marks[name] and isinstance(value, dict):
            # As `--set` reads it: JSON, but text without its quotes.
            texts = {k: x if isinstance(x, str) else json.dumps(x) for k, x in value.items()}
            values = [f"{k}={text}" for k, text in texts.items()]
        elif tyro.conf.UseAppendAction in marks[name] and isinstance(value, list):
            values = value
        for item in values:
            if not isinstance(item, int | float | str):
                raise UserError(
                    f"{path}: {name!r} must be a number, text, true or false; got {value!r}."
                )
            if item is not False:
                words.append(_flag(kind, name) + ("" if item is True else f"={item}"))
    return words


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.exists() and not (path.is_file() and path.stat().st_size <= LARGEST):
            raise UserError(f"the configuration {path} is no file of at most {LARGEST} bytes.")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except UserError:
        raise
    except OSError as error:
        raise UserError(f"the configuration {path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:  # TOML mistakes, other encodings, nested too deep
        raise UserError(
            f"the configuration {path} is not TOML ({error}); expected lines such as steps = 1000."
        ) from error


SHELLS = ("bash", "zsh")


def completion(shell: str, commands: Iterable[str], load: Callable[[str], ModuleType]) -> str:
    """The script for one of `SHELLS`, made from the same dataclasses that are parsed."""
    if shell not in SHELLS:
        raise UserError(
            f"--completion needs one of {', '.join(SHELLS)}, got {shell!r}; for example: "
            f'eval "$(dhn --completion bash)".'
        )
    screen = io.StringIO()
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(screen):
        tyro.extras.subcommand_cli_from_dict(
            {command: with_common(load(command).Arguments) for command in commands},
            prog="dhn",
            args=["--tyro-print-completion", shell],
        )
    return screen.getvalue().rstrip()
