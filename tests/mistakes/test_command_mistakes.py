"""Mistakes on the command line: one line that names what came, exit code 2, nothing changed."""

import json
import shlex

import pytest
from asking_table import ASKING
from importing_table import IMPORTING
from making_table import MAKING

from dhn.cli import COMMANDS as ALL
from dhn.cli import main

COMMANDS = [*ASKING, *MAKING, *IMPORTING]


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.delenv("DHN_DEBUG", raising=False)


@pytest.mark.parametrize("words, message", COMMANDS, ids=[words for words, _ in COMMANDS])
def test_one_line_code_2_and_nothing_changed(words, message, unchanged, capsys):
    argv = shlex.split(words)
    code = main(argv)
    out, err = capsys.readouterr()
    assert (code, out) == (2, ""), err
    assert message in err
    assert err.startswith("dhn: ") and err.endswith("\n") and err.count("\n") == 1
    assert main([*argv, "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found == {"error": err.removeprefix("dhn: ").removesuffix("\n"), "exit_code": 2}


def test_every_command_has_mistakes_in_the_table():
    first = {words.split()[0] for words, _ in COMMANDS}
    assert set(ALL) <= first
    assert len({words for words, _ in COMMANDS}) == len(COMMANDS) >= 250
