"""One training in two processes on loopback: the losses of one, and the death of one of them."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from on_processes import STATES, TRAJECTORIES, oscillators

from dhn.cli import main
from dhn.cli.processes import Peers, find_peers
from dhn.errors import UserError
from dhn.files import write
from dhn.files.storing import writing
from dhn.systems import simulate

OPTIONS = [
    "--set", "width=16", "--set", "batch_size=64", "--set", "code_search=0", "--validation", "none",
]  # fmt: skip


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "train.npz"
    write(simulate("single_pendulum", trajectories=24, steps=32, seed=0), path)
    return path


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(data: Path, run: Path, steps: int, *more: str) -> list[subprocess.Popen]:
    address = f"127.0.0.1:{free_port()}"
    return [
        subprocess.Popen(
            [
                sys.executable, "-m", "dhn", "train", str(data), "-o", str(run),
                "--steps", str(steps), *OPTIONS, *more,
                "--coordinator", address, "--processes", "2", "--rank", str(rank),
            ],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in (0, 1)
    ]  # fmt: skip


def finish(processes: list[subprocess.Popen]) -> list[tuple[int, str, str]]:
    """Exit codes and texts. All are read at once: a process whose pipe is full waits, and the
    others wait for it."""
    with ThreadPoolExecutor(len(processes)) as readers:
        said = list(readers.map(lambda process: process.communicate(timeout=900), processes))
    return [(p.returncode, *text) for p, text in zip(processes, said, strict=True)]


def wait_for(condition: Callable[[], object], processes: list[subprocess.Popen]) -> None:
    limit = time.monotonic() + 240
    while not condition():
        assert all(p.poll() is None for p in processes), finish(processes)
        assert time.monotonic() < limit
        time.sleep(0.1)


def written_since(path: Path, moment: float) -> bool:
    return path.is_file() and path.stat().st_mtime > moment


def records(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.cluster
def test_two_processes_give_the_losses_of_one(data, tmp_path, capsys):
    first, second = finish(start(data, tmp_path / "two", 40, "--json"))
    assert first[0] == second[0] == 0, (first[2], second[2])
    assert json.loads(first[1])["steps"] == 40 and second[1] == ""
    words = ["train", str(data), "-o", str(tmp_path / "one"), "--steps", "40", *OPTIONS]
    assert main(words) == 0
    capsys.readouterr()
    one, two = ({x["step"]: x for x in records(tmp_path / name)} for name in ("one", "two"))
    for step in (8, 16, 24, 32, 40):  # validated, so that there is a record
        assert two[step]["validation"] == pytest.approx(one[step]["validation"], rel=1e-3)
    assert main(["inspect", str(data), "--json"]) == 0
    assert main(["forecast", str(tmp_path / "two"), str(data), "-o", str(tmp_path / "f.csv"),
                 "--observe", "16", "--steps", "8"]) == 0  # fmt: skip


SCRIPT = Path(__file__).parent / "on_processes.py"


def train_small(folder: Path, processes: int, kind: str) -> list[dict]:
    """What each of so many processes printed."""
    address = f"127.0.0.1:{free_port()}"
    started = [
        subprocess.Popen(
            [sys.executable, SCRIPT, folder, address, str(processes), str(rank), kind],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(processes)
    ]  # fmt: skip
    found = finish(started)
    assert [code for code, _, _ in found] == [0] * processes, found
    return [json.loads(said.splitlines()[-1]) for _, said, _ in found]


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_each_process_reads_its_rows(tmp_path, kind):
    """1536 trajectories in 2048 rows, or pools of 1024 rows; each process has a half."""
    with writing(tmp_path / "data.zarr", chunk=64) as store:
        store.append(oscillators(TRAJECTORIES, STATES))
    (one,) = train_small(tmp_path, 1, kind)
    two = train_small(tmp_path, 2, kind)
    assert two[0]["losses"] == two[1]["losses"] and len(one["losses"]) == 40
    np.testing.assert_allclose(two[0]["losses"], one["losses"], rtol=2e-4)
    np.testing.assert_allclose(two[0]["codes"], one["codes"], rtol=1e-2, atol=1e-3)
    assert two[0]["validation"] == pytest.approx(one["validation"], rel=2e-4)
    pools = 1 if kind == "memory" else 3  # another one may have been read ahead
    rows = [
        [{row for span in spans for row in range(*span)} for spans in x["read"][:pools]]
        for x in (one, *two)
    ]
    for all_rows, first, second in zip(*rows, strict=True):
        assert len(first) == (1024 if kind == "memory" else 512)
        assert len(second) == 512 and first | second == all_rows


@pytest.mark.slow
@pytest.mark.cluster
def test_two_processes_keep_a_budget_together(tmp_path):
    first, second = train_small(tmp_path, 2, "budget")
    assert first["steps"] == second["steps"] > 0
    assert first["losses"] == second["losses"]


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_process_ends_the_other_with_one_line(data, tmp_path, killed):
    run = tmp_path / "run"
    for seed in range(int(os.environ.get("DHN_KILLS", "1"))):
        begun = time.time()
        processes = start(data, run, 100_000, *(["--resume"] if seed else []))
        wait_for(lambda: written_since(run / "metrics.jsonl", begun), processes)  # noqa: B023
        time.sleep(random.Random(seed).uniform(0.0, 3.0))
        processes[killed].send_signal(signal.SIGKILL)
        found = finish(processes)
        code, _, errors = found[1 - killed]
        # A process that is killed before the first checkpoint leaves nothing to resume.
        expected = ("step ", "resuming", "dhn: warning: nothing was saved")
        lines = [x for x in errors.splitlines() if not x.startswith(expected)]
        assert code == 1 and len(lines) == 1, errors
        assert "another process of this training has ended" in lines[0]
        assert "--resume" in lines[0]
    processes = start(data, run, 100_000, "--resume")
    wait_for(lambda: records(run)[-1:] and records(run)[-1]["step"] > 100, processes)
    processes[0].send_signal(signal.SIGTERM)
    assert [x[0] for x in finish(processes)] == [143, 143]


@pytest.mark.slow
@pytest.mark.cluster
def test_a_process_that_never_comes_ends_the_other_with_one_line(data, tmp_path):
    processes = start(data, tmp_path / "run", 20)
    processes[1].send_signal(signal.SIGKILL)
    code, _, errors = finish(processes)[0]
    (line,) = errors.splitlines()
    assert code == 1 and "start all of them again as before; nothing was saved yet" in line


@pytest.mark.slow
@pytest.mark.cluster
def test_a_signal_to_one_process_saves_and_ends_both(data, tmp_path):
    run = tmp_path / "run"
    processes = start(data, run, 100_000)
    wait_for(lambda: (run / "metrics.jsonl").is_file() and records(run), processes)
    processes[1].send_signal(signal.SIGTERM)
    found = finish(processes)
    assert [x[0] for x in found] == [143, 143]
    assert "resume to go on" in found[0][2]
    step = max(int(p.stem.split("-")[1]) for p in run.glob("step-*.safetensors"))
    assert step == records(run)[-1]["step"] > 0
    found = finish(start(data, run, step + 1, "--resume"))
    assert found[0][0] == 2 and "training.steps" in found[0][2]  # it is read, and told apart


def test_the_three_options_belong_together(monkeypatch):
    for name in ("SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST"):
        monkeypatch.delenv(name, raising=False)
    assert find_peers(None, None, None) is None
    assert find_peers("host:1", 1, 0) is None
    assert find_peers("host:12", 2, 1) == Peers("host:12", 2, 1)
    for given, text in {
        ("host:1", None, 0): "are given together",
        ("host", 2, 0): "HOST:PORT",
        ("host:123456", 2, 0): "HOST:PORT",
        ("host:1", 2, 2): "from 0 to 1",
    }.items():
        with pytest.raises(UserError, match=text):
            find_peers(*given)
