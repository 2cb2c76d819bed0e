"""`--config FILE`: options from a TOML file, under the names they have on the command line."""

import dataclasses
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dhn.errors import UserError

LARGEST = 1_000_000
"""Bytes; more is no list of options, and a device such as /dev/zero has no end."""


def words_of(path: Path, kind: type, positional: frozenset[str], repeated: frozenset[str]):
    """The file's options as words, to stand before those of the command line, which win.

    A key is the name of an option (`block-size` or `block_size`). A table under the name of a
    repeatable option (`[set]`, `[param]`) has its pairs. Where a command has `--set`, any other key
    is one of its names: `width = 64` is `--set width=64`.

    **Arguments:**

    - `path`: the file.
    - `kind`: the command's dataclass.
    - `positional`: fields of it that are no options.
    - `repeated`: fields that may be given several times.

    **Returns:** the words, in the file's order.
    """
    names = {field.name for field in dataclasses.fields(kind)}
    words: list[str] = []
    for key, value in _read(path).items():
        name = key.replace("-", "_")
        if name in positional:
            raise UserError(f"{path}: {key!r} belongs on the command line, without a name.")
        if name in names and isinstance(value, dict) and name in repeated:
            words += [f"--{_flag(name)}={k}={_text(v)}" for k, v in value.items()]
        elif name in names:
            words += list(_option(path, name, value, name in repeated))
        elif "set" in names and not isinstance(value, dict):
            words.append(f"--set={key}={_text(value)}")
        else:
            from dhn.cli.parsing import closest

            raise UserError(
                f"{path}: there is no option {key!r}{closest(name, names - positional)}; the names "
                f"are those of the command line."
            )
    return words


def _option(path: Path, name: str, value: Any, repeated: bool) -> Iterator[str]:
    if isinstance(value, bool):
        if value:
            yield f"--{_flag(name)}"
    elif isinstance(value, list) and repeated:
        for item in value:
            yield f"--{_flag(name)}={item}"
    elif isinstance(value, int | float | str):
        yield f"--{_flag(name)}={value}"
    else:
        raise UserError(f"{path}: {name!r} must be a number, text, true or false; got {value!r}.")


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


def _flag(name: str) -> str:
    return name.replace("_", "-")


def _text(value: Any) -> str:
    """As `--set` reads it: JSON, but text without its quotes."""
    return value if isinstance(value, str) else json.dumps(value)
