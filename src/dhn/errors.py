"""The one exception that means: the input, not the program, is at fault."""

import contextlib
import difflib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pydantic


class UserError(ValueError):
    """One line for a person: what was expected, what came, how to mend it.

    The command line prints it without a traceback and exits with code 2.
    """


@contextlib.contextmanager
def os_errors(what: str, hint: str = ".") -> Iterator[None]:
    """Failures of the operating system inside become a `UserError` that gives their reason.

    Arguments:
        what: Has failed, such as `x.npz cannot be written`.
        hint: The rest of the sentence.

    Returns:
        A context; its message is `what: reason` and the hint.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error).splitlines()[0]
        raise UserError(f"{what}: {reason}{hint}") from error


COMPARED = 1000  # names that a misspelt one is compared with; each takes about 0.1 ms


def did_you_mean(word: object, names: Iterable[str], form: str = " Did you mean {!r}?") -> str:
    """A hint at the name most like `word`, or an empty text.

    Arguments:
        word: What was given.
        names: What there is.
        form: Of the hint.

    Returns:
        ` Did you mean 'theta'?`
    """
    lower = {name.lower(): name for name in islice(names, COMPARED)}
    found = difflib.get_close_matches(str(word).lower(), lower, n=1)
    return form.format(lower[found[0]]) if found else ""


NEAR = " (did you mean {!r}?)"
"""The hint of `did_you_mean` inside a sentence."""


def first_mistake(error: "pydantic.ValidationError", name: str | None = None) -> str:
    """One line about the first mistake that pydantic found.

    Arguments:
        error: What pydantic raised.
        name: What the user calls the field; its own name by default.

    Returns:
        `steps should be greater than 0, got -1.`, or the sentence of a check of our own.
    """
    first = error.errors(include_url=False)[0]
    # Pydantic names the kinds of a union as well, such as `tuple[float, ...]`.
    name = name or ".".join(str(x).rstrip("_") for x in first["loc"] if "[" not in str(x))
    if first["type"] == "value_error":
        sentence = first["msg"].removeprefix("Value error, ")
        return f"{name} {sentence}" if first["loc"] else sentence
    expected = (
        first["msg"]
        .removeprefix("Input ")
        .removeprefix("Tuple ")
        .removeprefix("String ")
        .replace("less than inf", "a finite number")
    )
    return f"{name} {expected}, got {first['input']!r}."
