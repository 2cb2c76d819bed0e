"""Failures end in one line, outputs are checked first, options come from files, too."""

import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import dhn
from dhn.cli import COMMANDS, load, main
from dhn.cli.logs import logging_to
from dhn.cli.outputs import TRAJECTORIES, check_output, save_pieces
from dhn.cli.parsing import parse
from dhn.cli.result import describe
from dhn.cli.waiting import progress_text, waiting
from dhn.errors import UserError
from dhn.files import FORMATS
from dhn.printable import one_line, printable

FAILURES = [
    (UserError("mend\nthis"), "mend this", 2),
    (ZeroDivisionError("a bug"), "an unexpected ZeroDivisionError (a bug); this is a fault of", 1),
    (RecursionError(), "an unexpected RecursionError; this is a fault of dhn", 1),
    (MemoryError("1 TB"), "the memory of this machine does not suffice (1 TB); use less data.", 1),
    (RuntimeError("RESOURCE_EXHAUSTED: Out of memory"), "the memory of this machine does not", 1),
    (PermissionError(13, "Permission denied", "a\x1b[2J"), r"a\x1b[2J: Permission denied", 1),
    (KeyboardInterrupt(), "interrupted; nothing was written", 130),
]


@pytest.mark.parametrize("error, message, code", FAILURES, ids=lambda x: type(x).__name__)
def test_every_failure_is_one_line(error, message, code, capsys, monkeypatch):
    def broken(args, common):
        raise error

    monkeypatch.setattr(load("systems"), "run", broken)
    monkeypatch.delenv("DHN_DEBUG", raising=False)
    assert main(["systems"]) == code
    out, err = capsys.readouterr()
    assert err.startswith(f"dhn: {message}") and err.count("\n") == 1 and out == ""
    assert main(["systems", "--json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert found == {"error": describe(error)[0], "exit_code": code}
    monkeypatch.setenv("DHN_DEBUG", "1")
    assert main(["systems"]) == code
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_control_characters_do_not_reach_a_terminal():
    assert printable("a\x1b[31m\tb\nc\x9b\u202ed\udc80") == "a\\x1b[31m\tb\nc\\x9b\\u202ed\\udc80"
    assert printable("θ₁ [rad] ü 😀") == "θ₁ [rad] ü 😀"
    assert one_line("a\r\n b\x07") == "a b\\x07"


def test_escapes_in_a_name_are_shown_not_obeyed(capsys, tmp_path):
    assert main(["inspect", str(tmp_path / "a\x1b]0;owned\x07.npz")]) == 2
    err = capsys.readouterr().err
    assert "\x1b" not in err and "\x07" not in err and r"\x1b]0;owned\x07" in err


OUTPUTS = [
    ("folder", {}, "is a folder; name a file to write, such as"),
    ("no/where.npz", {}, "the folder .*no does not exist; make it: mkdir -p"),
    ("a.txt", {"endings": TRAJECTORIES}, "the ending '.txt' chooses no format; use one of .npz"),
    ("a", {"endings": TRAJECTORIES}, "the ending '' chooses no format"),
    ("in.npz", {"inputs": ["in.npz"]}, "is an input and would be replaced by the result"),
    ("link.npz", {"inputs": ["in.npz"]}, "link.npz is an input"),
    ("folder/../in.npz", {"inputs": ["in.npz"]}, "is an input"),
    ("a.npz", {"size": 1e18}, "would have about 1 EB, and .* are free on that disk"),
    ("pipe", {}, "is a device or pipe"),
    ("x" * 300, {}, "is no usable file name: File name too long"),
    ("a\0b", {}, "is no usable file name"),
]


@pytest.mark.parametrize("name, options, message", OUTPUTS, ids=[x[2][:30] for x in OUTPUTS])
def test_outputs_are_checked(tmp_path, name, options, message):
    (tmp_path / "folder").mkdir()
    (tmp_path / "in.npz").write_text("x")
    (tmp_path / "link.npz").symlink_to(tmp_path / "in.npz")
    os.mkfifo(tmp_path / "pipe")
    options = {k: [tmp_path / x for x in v] if k == "inputs" else v for k, v in options.items()}
    with pytest.raises(UserError, match=message) as caught:
        check_output(tmp_path / name, **options)
    assert "\n" not in str(caught.value)


def test_outputs_that_are_fine(tmp_path):
    (tmp_path / "in.npz").write_text("x")
    check_output(tmp_path / "in.npz", inputs=[tmp_path / "other.npz"], endings=(".npz",), size=10)
    check_output(tmp_path / "new.CSV", endings=TRAJECTORIES)
    assert set(TRAJECTORIES) == set(FORMATS)


def test_a_result_that_cannot_be_written_is_kept_elsewhere(tmp_path):
    data = dhn.Trajectories(q=np.ones((1, 2, 1)), t=[0.0, 1.0])
    with pytest.raises(UserError, match=r"does not exist.* The result is in \S+ instead\.") as told:
        save_pieces([data], tmp_path / "gone" / "x.csv", 1)
    other = Path(str(told.value).split(" is in ")[1].split(" instead")[0])
    assert dhn.read(other).equals(data)
    shutil.rmtree(other.parent)


@pytest.mark.parametrize("command", ["forecast", "interpolate", "denoise"])
def test_no_command_replaces_its_input(command, tmp_path, capsys):
    data = tmp_path / "data.npz"
    data.write_bytes(b"precious")
    assert main([command, str(tmp_path), str(data), "-o", str(data)]) == 2
    assert "is an input and would be replaced" in capsys.readouterr().err
    assert main(["import", str(data), "-o", str(data)]) == 2
    assert data.read_bytes() == b"precious"


CONFIGS = [
    ('trajectories = 3\nnoise = 0.5\n[param]\nl = "1:2"\ng = 2', {"trajectories": 3, "noise": 0.5}),
    ('param = ["l=1:2", "g=2"]\njson = true\nseed=4', {"json": True, "seed": 4}),
    ("trajectories = 9\njson = false", {"trajectories": 9, "json": False}),
]


@pytest.mark.parametrize("text, expected", CONFIGS, ids=range(3))
def test_options_come_from_a_file(tmp_path, text, expected):
    file = tmp_path / "c.toml"
    file.write_text(text)
    words = ["single_pendulum", "-o", "x.npz", "--config", str(file)]
    args, common = parse(load("simulate").Arguments, words, "dhn simulate")
    found = vars(args) | vars(common)
    assert {name: found[name] for name in expected} == expected
    assert args.param in ((), ("l=1:2", "g=2"))
    assert common.config == file
    args, _ = parse(load("simulate").Arguments, [*words, "--trajectories", "7"], "dhn simulate")
    assert args.trajectories == 7  # the command line wins


def test_set_names_come_from_a_file(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text('width = 64\nmask = "random"\nspacings = [1, 4]\nsteps = 5\n[set]\ndepth = 2')
    args, _ = parse(load("train").Arguments, ["d.npz", "-o", "r", f"--config={file}"], "dhn train")
    assert args.steps == 5
    assert args.set == ("width=64", "mask=random", "spacings=[1, 4]", "depth=2")


BAD_CONFIGS = [
    ("trajectorys = 3", "there is no option 'trajectorys' (did you mean 'trajectories'?)"),
    ("trajectories = ", "is not TOML"),
    ("trajectories = [1, 2]", "'trajectories' must be a number, text, true or false; got [1, 2]"),
    ('system = "kepler"', "'system' belongs on the command line"),
    ("trajectories = 1.5", "--trajectories: expected an integer, got '1.5'"),
    ("\x00", "is not TOML"),
    ("a = " + "[" * 5000, "is not TOML"),
]


@pytest.mark.parametrize("text, message", BAD_CONFIGS, ids=[x[1][:20] for x in BAD_CONFIGS])
def test_mistakes_in_a_file_of_options(tmp_path, capsys, text, message):
    file = tmp_path / "c.toml"
    file.write_text(text)
    out = str(tmp_path / "x.npz")
    assert main(["simulate", "single_pendulum", "-o", out, "--config", str(file)]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1
    assert main(["simulate", "single_pendulum", "-o", out, "--config", "nowhere.toml"]) == 2
    assert "nowhere.toml cannot be read: No such file" in capsys.readouterr().err
    assert main(["systems", "--config", "/dev/zero"]) == 2
    assert "/dev/zero is no file of at most 1000000 bytes" in capsys.readouterr().err


def test_a_log_holds_the_command_warnings_and_errors_in_full(tmp_path, capsys, monkeypatch):
    def broken(args, common):
        warnings.warn("be\ncareful", stacklevel=1)
        raise ZeroDivisionError("a bug")

    log = tmp_path / "dhn.log"
    monkeypatch.setattr(load("systems"), "run", broken)
    assert main(["systems", "--log", str(log)]) == 1
    err = capsys.readouterr().err.splitlines()
    assert err[0] == "dhn: warning: be careful" and len(err) == 2
    text = log.read_text()
    assert "dhn systems --log" in text and "warning: be careful" in text
    assert "Traceback" in text and "ZeroDivisionError: a bug" in text
    assert logging.getLogger("dhn").handlers == []
    assert main(["systems", "--log", str(tmp_path)]) == 2
    assert "cannot be written: Is a directory" in capsys.readouterr().err


def test_a_log_on_a_full_disk_does_not_end_the_work(capsys):
    with logging_to(Path("/dev/full"), verbose=False, argv=["x"]):
        pass
    assert capsys.readouterr().err.count("cannot be written any more") == 1


def test_verbose_shows_time_and_memory(capsys):
    assert main(["systems", "--json", "--verbose"]) == 0
    out, err = capsys.readouterr()
    json.loads(out)
    assert "Python" in err and "MB of memory" in err


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_shells_complete_commands_and_options(shell, capsys):
    assert main(["--completion", shell]) == 0
    out = capsys.readouterr().out
    assert all(command in out for command in COMMANDS)
    assert "trajectories" in out and "config" in out


def test_the_completion_for_bash_is_bash(capsys):
    assert main(["--completion", "bash"]) == 0
    script = capsys.readouterr().out
    script += '\nCOMP_WORDS=(dhn simu); COMP_CWORD=1; _tyro_dhn; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "simulate", done.stderr
    assert main(["--completion", "fish"]) == 2
    assert "needs one of bash, zsh, got 'fish'" in capsys.readouterr().err


def test_python_m_dhn():
    done = subprocess.run([sys.executable, "-m", "dhn", "--version"], capture_output=True)
    assert done.returncode == 0 and done.stdout.startswith(b"dhn ")


def test_progress_of_a_wait(capsys, monkeypatch):
    assert progress_text("simulating", 0, 0, 3) == "simulating, 0:03"
    assert progress_text("x", 512, 2048, 5) == "x: 512 of 2048, 0:05, about 0:15 left"
    assert progress_text("x", 1, 2, 3723).endswith("1:02:03, about 1:02:03 left")
    monkeypatch.setattr("dhn.cli.waiting.PATIENCE", 0.0)
    monkeypatch.setattr("dhn.cli.waiting.SECONDS_BETWEEN_LINES", 0.01)
    with waiting("working") as report:
        report(1, 2)
        threading.Event().wait(0.1)
    assert "working: 1 of 2, 0:00, about 0:00 left\n" in capsys.readouterr().err
    with waiting("working", enabled=False) as report:
        report(1, 2)
    assert capsys.readouterr().err == ""
