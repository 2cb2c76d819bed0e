"""A sweep on a real SLURM of one node gives, byte for byte, what local processes give."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from dhn.cli import main
from dhn.files import write
from dhn.jobs.cells import failure, finished
from dhn.jobs.local import LocalExecutor
from dhn.jobs.slurm import SlurmExecutor, job_of, queue
from dhn.jobs.sweep import Axis, plan, run_sweep, status
from dhn.systems import simulate

pytestmark = [pytest.mark.slow, pytest.mark.cluster]
START = Path(__file__).parent / "start_slurm.sh"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """A running SLURM, with SLURM_CONF set."""
    pytest.importorskip("submitit", reason="the extra dhn[slurm] is not installed")
    folder = tmp_path_factory.mktemp("slurm")
    started = subprocess.run([START, folder, str(os.getpid())], capture_output=True, text=True)
    if started.returncode:
        pytest.skip(started.stderr.strip() or "SLURM cannot be started here")
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = started.stdout.strip()
    yield folder
    subprocess.run([START, "--stop", folder])
    os.environ.pop("SLURM_CONF")
    if before is not None:
        os.environ["SLURM_CONF"] = before


def cells(data):
    """Twelve: ten short ones, one that takes long enough to be stopped, one that diverges."""
    small = {"width": 8, "batch_size": 32}
    found = plan(data, [Axis.parse("seed=0..9/10")], options=small, steps=20)
    found |= plan(data, [Axis.parse("seed=10")], options=small, steps=30_000)
    found |= plan(data, [Axis.parse("seed=11")], options=small | {"learning_rate": 1e30}, steps=20)
    return found


def seed_of(name):
    return int(name.split("-")[1].split(".")[0])


class Trouble:
    """Stops two jobs while the sweep runs: what a scheduler does to jobs of others."""

    def __init__(self, folder):
        self.folder, self.killed, self.warned = folder, None, None

    def __call__(self):
        states = queue()
        for cell in (self.folder / "cells").iterdir():
            running = states.get(job_of(cell)) == "running"
            if running and self.killed is None and seed_of(cell.name) < 10:
                subprocess.run(["scontrol", "requeue", job_of(cell)], check=True)
                self.killed = cell
            training = (cell / "run" / "metrics.jsonl").is_file()
            if running and training and self.warned is None and seed_of(cell.name) == 10:
                # What SLURM sends shortly before the time limit.
                subprocess.run(["scancel", "--signal=USR2", job_of(cell)], check=True)
                self.warned = cell


def test_a_sweep_on_slurm(slurm, tmp_path, monkeypatch):
    data = tmp_path / "train.npz"
    write(simulate("single_pendulum", trajectories=24, steps=32, seed=0), data)
    chosen = cells(data)
    assert len(chosen) == 12
    local, cluster = tmp_path / "local", tmp_path / "cluster"

    trouble, ended = Trouble(cluster), SlurmExecutor.ended

    def ended_after_trouble(self):
        trouble()
        return ended(self)

    monkeypatch.setattr(SlurmExecutor, "ended", ended_after_trouble)
    executor = SlurmExecutor(cluster, minutes=30, partition="main", array_limit=4)
    outcome = run_sweep(chosen, cluster, executor, show=False)

    run_sweep(chosen, local, LocalExecutor(local, 2), show=False)
    bad = [name for name in chosen if seed_of(name) == 11]
    assert list(outcome.failed) == bad and "training diverged" in outcome.failed[bad[0]]
    assert "training diverged" in (failure(local / "cells" / bad[0]) or "")
    for name in chosen.keys() - set(bad):
        results = [(x / "cells" / name / "result.json").read_bytes() for x in (local, cluster)]
        assert results[0] == results[1], name
    # Both were stopped, came back and finished; the warned one saved itself and went on.
    assert trouble.killed is not None and finished(trouble.killed)
    assert trouble.warned is not None and finished(trouble.warned)
    logs = "".join(path.read_text() for path in (cluster / "slurm").glob("*_log.*"))
    assert "Exiting gracefully after preemption/timeout" in logs
    counts = [row["state"] for row in status(cluster)]
    assert counts.count("done") == 11 and counts.count("failed") == 1


def test_a_cancelled_job_costs_its_cell_alone(slurm, tmp_path, capsys, monkeypatch):
    data = tmp_path / "train.npz"
    write(simulate("single_pendulum", trajectories=24, steps=32, seed=0), data)
    chosen = plan(data, [Axis.parse("seed=0,1")], options={"width": 8, "batch_size": 32}, steps=20)
    ended, cancelled = SlurmExecutor.ended, []

    def cancel_one(self):
        for cell in sorted((tmp_path / "cells").iterdir())[:1]:
            if not cancelled and queue().get(job_of(cell)) == "running":
                subprocess.run(["scancel", job_of(cell)], check=True)
                cancelled.append(cell.name)
        return ended(self)

    monkeypatch.setattr(SlurmExecutor, "ended", cancel_one)
    outcome = run_sweep(chosen, tmp_path, SlurmExecutor(tmp_path), show=False)
    assert list(outcome.failed) == cancelled and len(outcome.done) == 1
    assert "CANCELLED" in outcome.failed[cancelled[0]]
    assert main(["sweep", "status", str(tmp_path)]) == 0
    assert "1 failed" in capsys.readouterr().out


def test_the_tools_of_slurm_are_needed(tmp_path, monkeypatch):
    from dhn.errors import UserError

    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(UserError, match="there is no SLURM here"):
        SlurmExecutor(tmp_path)
    assert queue() == {}
