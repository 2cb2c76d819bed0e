"""kill -9 at a random moment, then resume: the same weights as without it, bit for bit."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dhn.training.storage import load_arrays

SCRIPT = Path(__file__).parent / "killed.py"
LAST = "step-000000200.safetensors"


def start(folder: Path) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, str(SCRIPT), str(folder)])


def finish(folder: Path) -> float:
    started = time.monotonic()
    assert start(folder).wait(300) == 0
    return time.monotonic() - started


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    finish(folder)
    return folder


def kill_and_resume(uninterrupted: Path, folder: Path, seed: int) -> int:
    """The step of the newest checkpoint when the process died."""
    process = start(folder)
    while process.poll() is None and not list(folder.glob("step-*.safetensors")):
        time.sleep(0.01)
    time.sleep(random.Random(seed).uniform(0.0, 1.5))
    process.send_signal(signal.SIGKILL)
    process.wait()
    steps = [int(path.stem.split("-")[1]) for path in folder.glob("step-*.safetensors")]
    finish(folder)
    for name in (LAST, "best.safetensors"):
        _, expected = load_arrays(uninterrupted / name, "training checkpoint")
        metadata, found = load_arrays(folder / name, "training checkpoint")
        assert metadata["total_steps"] == 200
        assert expected.keys() == found.keys()
        for key in expected:
            np.testing.assert_array_equal(found[key], expected[key], err_msg=f"{name} {key}")
    assert not list(folder.glob(".step*"))
    return max(steps, default=0)


@pytest.mark.parametrize("seed", [0])
def test_killed_run_resumes_bit_for_bit(uninterrupted, tmp_path, seed):
    kill_and_resume(uninterrupted, tmp_path / "run", seed)


@pytest.mark.slow
def test_killed_ten_times(uninterrupted, tmp_path):
    steps = [kill_and_resume(uninterrupted, tmp_path / f"run{seed}", seed) for seed in range(1, 11)]
    print("killed with the newest checkpoint at step", steps)
    assert min(steps) < 200
