"""Commands when the world around them fails: kill -9, Ctrl-C, flipped bits, full disks, crowds.

`tests/training/test_faults.py` and `test_kill.py` do the same to trainings.
"""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dhn
from dhn.files import FORMATS

pytestmark = pytest.mark.slow
WATCHDOG = 600  # seconds after which a command counts as hanging
DHN = [sys.executable, "-m", "dhn"]


@pytest.fixture(scope="module")
def good() -> dhn.Trajectories:
    return dhn.simulate("single_pendulum", trajectories=6, steps=20, seed=0)


def start(folder: Path, *words: str, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [*DHN, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        **options,
    )  # fmt: skip


def test_a_command_killed_at_any_moment_leaves_the_old_file_or_the_new_one(tmp_path, good):
    """Ten kills while a larger file takes the place of a smaller one."""
    target = tmp_path / "x.csv"
    words = ("simulate", "single_pendulum", "--trajectories", "400", "-o", "x.csv", "--seed", "3")
    child = start(tmp_path, *words)
    begun = time.monotonic()
    assert child.wait(WATCHDOG) == 0
    whole, new = time.monotonic() - begun, dhn.read(target)
    killed = 0
    for number in range(10):
        dhn.write(good, target)
        child = start(tmp_path, *words)
        time.sleep(random.Random(number).uniform(0.5, 1.0) * whole)
        child.send_signal(signal.SIGKILL)
        killed += child.wait() == -signal.SIGKILL
        found = dhn.read(target)
        assert found.equals(dhn.read(target)) and (len(found) in (len(good), len(new)))
        assert found.fingerprint() in (good.fingerprint(), new.fingerprint())
    assert killed > 0


def test_ctrl_c_does_not_wait_for_a_simulation(tmp_path):
    """These steps are so long that the solver would be busy for many minutes."""
    child = start(
        tmp_path, "simulate", "double_pendulum", "--trajectories", "512", "--dt", "1e4",
        "--steps", "2000", "-o", "x.npz",
    )  # fmt: skip
    assert child.stderr is not None
    assert child.stderr.readline().startswith("simulating")
    child.send_signal(signal.SIGINT)
    assert child.wait(WATCHDOG) == 130
    assert child.stderr.read().splitlines()[-1] == "dhn: interrupted; nothing was written"
    assert list(tmp_path.iterdir()) == []


FLIPS = """
import sys, numpy as np, dhn
path, seed = sys.argv[1], int(sys.argv[2])
whole, rng = open(path, "rb").read(), np.random.default_rng(seed)
right = dhn.read(path).fingerprint()
for position in rng.integers(0, len(whole), 150):
    damaged = bytearray(whole)
    damaged[position] ^= 1 << int(rng.integers(8))
    open(path, "wb").write(damaged)
    try:
        same = dhn.read(path).fingerprint() == right
        print("same" if same else "other")
    except dhn.UserError as error:
        print("refused" if "\\n" not in str(error) else "two lines")
"""
CHECKED = (".npz", ".csv", ".parquet")
"""Formats that carry a checksum of ours or of their own, so that no other numbers get through."""


@pytest.mark.parametrize("ending", [x for x in FORMATS if x != ".hdf5"])
def test_a_flipped_bit_in_a_file_of_trajectories(tmp_path, good, ending):
    """In a process of its own: a library in C might crash."""
    path = tmp_path / f"x{ending}"
    dhn.write(good, path)
    done = subprocess.run(
        [sys.executable, "-c", FLIPS, str(path), "0"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = done.stdout.split("\n")[:-1]
    assert len(found) == 150 and "two lines" not in found
    assert "refused" in found
    if ending in CHECKED:
        assert "other" not in found


@pytest.mark.parametrize("words", [
    ("simulate", "single_pendulum", "--trajectories", "60", "--steps", "60", "-o", "small/x.csv"),
    ("inspect", "d.npz", "--plot", "small/x.png"),
], ids=["data", "picture"])  # fmt: skip
def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path, good, words):
    """A tmpfs of 32 kB in a name space of its own."""
    small = tmp_path / "small"
    small.mkdir()
    dhn.write(good, tmp_path / "d.npz")
    mount = f"mount -t tmpfs -o size=32k tmpfs '{small}'"
    name_space = ["unshare", "--map-root-user", "--mount"]
    if subprocess.run([*name_space, "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("this machine allows no mounts in a name space")
    script = f'cd "{tmp_path}" && {mount} && "$@"; code=$?; ls -A small; exit $code'
    done = subprocess.run(
        [*name_space, "sh", "-c", script, "sh", *DHN, *words], capture_output=True, text=True
    )
    assert done.returncode in (1, 2)
    assert done.stdout == "", "something half-written stayed"
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and ("No space left" in lines[0] or "are free on that" in lines[0])


def test_two_commands_train_into_one_folder(tmp_path, good):
    """The second is refused, and the first ends with a model that can be used."""
    dhn.write(good, tmp_path / "d.npz")
    words = ("train", "d.npz", "-o", "run", "--steps", "400", "--set", "width=8", "--json")
    first = start(tmp_path, *words)
    while first.poll() is None and not (tmp_path / "run" / "metrics.jsonl").exists():
        time.sleep(0.01)
    second = start(tmp_path, *words)
    _, said = second.communicate(timeout=WATCHDOG)
    _, err = first.communicate(timeout=WATCHDOG)
    assert first.returncode == 0, err
    assert second.returncode == 2
    assert "in use by another training" in said or "holds a trained model already" in said
    assert dhn.load(tmp_path / "run").forecast(good[:, :16], 2).states == 18


def test_sighup_saves_a_training_of_the_command(tmp_path, good):
    dhn.write(good, tmp_path / "d.npz")
    words = ("train", "d.npz", "-o", "run", "--steps", "100000", "--set", "width=8", "--json")
    child = start(tmp_path, *words)
    while child.poll() is None and not (tmp_path / "run" / "metrics.jsonl").exists():
        time.sleep(0.01)
    child.send_signal(signal.SIGHUP)
    _, err = child.communicate(timeout=WATCHDOG)
    assert child.returncode == 128 + signal.SIGHUP, err
    assert "--resume" in err
    assert list((tmp_path / "run").glob("step-*.safetensors"))


def test_no_flipped_bit_of_a_mechanical_model_gets_through(tmp_path):
    """The same for networks and checkpoints: tests/training/test_storage.py and test_faults.py."""
    t = 0.05 * np.arange(160)
    runs = dhn.Trajectories(q=(0.5 * np.exp(-0.02 * t) * np.cos(3 * t))[None, :, None], t=t)
    dhn.Mechanics().fit(runs, budget=10).save(tmp_path)
    file = tmp_path / "mechanics.safetensors"
    whole, rng = file.read_bytes(), np.random.default_rng(0)
    for position in rng.integers(0, len(whole), 200):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << int(rng.integers(8))
        file.write_bytes(damaged)
        with pytest.raises(dhn.UserError):
            dhn.load(tmp_path)
