"""Text from files made safe for a terminal: no escape sequence of a stranger reaches it."""

import re

# C0 and C1 controls but tab and newline, and the marks that reverse the direction of text.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""`text` with control characters as `\x1b` and the like; lines and tabs stay.

    Bytes of a file name that are no text (surrogates) are shown the same way.
    """
    text = text.encode("utf-8", "backslashreplace").decode()
    return _CONTROLS.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """The same on one line."""
    return printable(" ".join(text.split()))
