"""Every equation of the paper is cited in exactly one docstring, and docs/paper.md names it."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
EQUATIONS = 25


def ranges(text):
    """The numbers that `Eq. 8-9` and `Eq. 10` in a text stand for."""
    for first, last in re.findall(r"\(paper, Eq\. (\d+)(?:-(\d+))?", text):
        yield from range(int(first), int(last or first) + 1)


def docstrings(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


def test_each_equation_stands_in_exactly_one_docstring():
    found = sorted(
        number
        for file in (ROOT / "src" / "dhn").rglob("*.py")
        for text in docstrings(file)
        for number in ranges(text)
    )
    assert found == list(range(1, EQUATIONS + 1))


def test_the_guide_names_every_equation_and_files_that_exist():
    text = (ROOT / "docs" / "paper.md").read_text()
    rows = re.findall(r"^\| ([\d, -]+) \|", text.split("## Equations")[1], re.MULTILINE)
    named = [
        number
        for row in rows
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", row)
        for number in range(int(first), int(last or first) + 1)
    ]
    assert sorted(named) == list(range(1, EQUATIONS + 1))
    paths = set(re.findall(r"`((?:\w+/)+\w+\.py)`", text))
    assert len(paths) > 12
    missing = [
        path
        for path in paths
        if not (ROOT / "src" / "dhn" / path).exists() and not (ROOT / path).exists()
    ]
    assert missing == []
