"""Text from files made safe for a terminal: no escape sequence of a file reaches it."""

import re
import unicodedata

_ODD = re.compile(r"[^ -~\n\t]")  # everything that needs a closer look
_HARMFUL = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories: controls, format and direction marks, lone surrogates, line separators."""


def printable(text: str) -> str:
    r"""`text` with control characters as `\x1b` and the like; line ends and tabs stay.

    Bytes of a file name that are no text (surrogates) are shown the same way.
    """
    return _ODD.sub(_escape, text)


def one_line(text: str) -> str:
    """The same on one line."""
    return printable(" ".join(text.split()))


def _escape(match: re.Match[str]) -> str:
    if unicodedata.category(match[0]) not in _HARMFUL:
        return match[0]
    return match[0].encode("unicode_escape").decode()
