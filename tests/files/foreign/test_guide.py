"""The guide's example prints what the guide says it prints."""

import re
import shlex
from pathlib import Path

from dhn.cli import main

GUIDE = (Path(__file__).parents[3] / "docs" / "bring-your-own-data.md").read_text()


def block(language):
    return re.search(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)[1]


def test_the_example_runs_and_prints_the_summary(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(block("python"), "guide", "exec"), {})
    program, *argv = shlex.split(block("bash"))
    assert program == "dhn" and main(argv) == 0
    assert capsys.readouterr().out == block("text")
