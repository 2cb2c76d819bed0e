"""Text from a file, made harmless for a terminal."""

import re
import unicodedata

_ODD = re.compile(r"[^ -~\n\t]")  # everything that needs a closer look


def printable(text: str) -> str:
    """`text` without control characters, escape characters and direction marks.

    Line ends and tabs stay.
    """
    return _ODD.sub(_replace, text)


def _replace(match: re.Match[str]) -> str:
    # Control and format characters, lone surrogates, separators of lines and paragraphs.
    kind = unicodedata.category(match[0])
    return "" if kind in ("Cc", "Cf", "Cs", "Zl", "Zp") else match[0]
