"""Every mistake on the command line is one clear line on stderr and exit code 2."""

import pytest

from dhn.cli import COMMANDS, load, main
from dhn.cli.simulate import named_ranges
from dhn.errors import UserError

SIMULATE = ["simulate", "double_pendulum", "-o", "out.npz"]

MISTAKES = [
    (["simulat"], "there is no command 'simulat' (did you mean 'simulate'?)"),
    (["xyz"], f"there is no command 'xyz'; the commands are {', '.join(COMMANDS)}."),
    (
        [*SIMULATE, "--trajectory", "4"],
        "has no option --trajectory (did you mean '--trajectories'?)",
    ),
    ([*SIMULATE, "--nois=0.1"], "has no option --nois (did you mean '--noise'?)"),
    ([*SIMULATE, "extra"], "does not know what to do with 'extra'"),
    (["simulate", "double_pendulum"], "missing: -o FILE, --output FILE."),
    (["inspect"], "missing: FILE."),
    ([*SIMULATE, "--trajectories", "2.5"], "--trajectories: expected an integer, got '2.5'"),
    ([*SIMULATE, "--noise", "much"], "--noise: expected a number, got 'much'"),
    (
        [*SIMULATE, "--trajectories", "0"],
        "--trajectories should be greater than or equal to 1",
    ),
    ([*SIMULATE, "--trajectories"], "Missing value for argument '--trajectories'"),
    ([*SIMULATE, "--dt", "0"], "--dt should be greater than 0, got 0.0"),
    ([*SIMULATE, "--dt", "nan"], "--dt should be a finite number, got nan"),
    ([*SIMULATE, "--gaps", "1.5"], "--gaps should be less than 1, got 1.5"),
    ([*SIMULATE, "--seed", "-1"], "--seed should be greater than or equal to 0, got -1"),
    ([*SIMULATE, "--param", "l2"], "--param expects NAME=VALUE or NAME=LOW:HIGH, got 'l2'"),
    (
        ["simulate", "double_pendulum", "-o", "nowhere/out.npz"],
        "the folder nowhere does not exist; make it: mkdir -p nowhere",
    ),
    (["simulate", "double_pendulum", "-o", "."], ". is a folder; name a file to write"),
    (["simulate", "mine.py:mine", "-o", "out.npz"], "there is no file mine.py"),
    (["simulate", "doublependulum", "-o", "out.npz"], "Did you mean 'double_pendulum'?"),
    (["inspect", "missing.npz"], "missing.npz"),
    (
        ["inspect", "missing.npz", "--plot", "a.gif"],
        "the ending '.gif' chooses no format; use one of .png, .svg, .pdf",
    ),
]


@pytest.mark.parametrize("argv, message", MISTAKES, ids=[" ".join(a) for a, _ in MISTAKES])
def test_a_mistake_is_one_line_and_code_2(argv, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert err.startswith("dhn: ") and err.endswith("\n") and err.count("\n") == 1
    assert out == ""
    assert list(tmp_path.iterdir()) == []  # nothing half-written


def test_a_narrow_terminal_does_not_change_the_message(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert main([*SIMULATE, "--trajectories", "2.5"]) == 2
    assert "--trajectories: expected an integer, got '2.5'" in capsys.readouterr().err


def test_help_lists_every_command_with_its_summary(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for command in COMMANDS:
        assert f"  {command} " in out
        assert load(command).Arguments.__doc__.strip().splitlines()[0] in out


@pytest.mark.parametrize("command", COMMANDS)
def test_each_help_has_an_example_and_the_common_options(command, capsys):
    with pytest.raises(SystemExit) as leaving:
        main([command, "--help"])
    assert not leaving.value.code
    out = capsys.readouterr().out
    assert f"Example: dhn {command}" in out
    assert "--seed" in out and "--json" in out


def test_no_command_shows_the_overview_and_fails(capsys):
    assert main([]) == 2
    assert "usage: dhn COMMAND" in capsys.readouterr().out


def test_ctrl_c_is_130_and_says_what_was_saved(capsys, monkeypatch):
    def interrupted(args, common):
        raise KeyboardInterrupt("saved runs/a; go on with --resume")

    monkeypatch.setattr(load("systems"), "run", interrupted)
    assert main(["systems"]) == 130
    assert capsys.readouterr().err == "dhn: saved runs/a; go on with --resume\n"


def test_named_ranges():
    assert named_ranges(["l=0.7", "m=1:2", "p_theta=-1e-1:0"], "--param") == {
        "l": 0.7,
        "m": (1.0, 2.0),
        "p_theta": (-0.1, 0.0),
    }
    for words, message in [
        (["l=1", "l=2"], "--param names 'l' twice"),
        (["l=2:1"], "the range ends before it begins"),
        (["l=1:2:3"], "expects NAME=VALUE or NAME=LOW:HIGH"),
        (["l=a"], "expects NAME=VALUE or NAME=LOW:HIGH"),
        (["=1"], "expects NAME=VALUE or NAME=LOW:HIGH"),
    ]:
        with pytest.raises(UserError, match=message):
            named_ranges(words, "--param")
