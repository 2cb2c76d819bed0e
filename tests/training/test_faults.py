"""What happens to a training when the world around it fails."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dhn.errors import UserError
from dhn.training.interrupt import watch_signals
from dhn.training.lock import lock_run
from dhn.training.storage import load_arrays, save_arrays

SCRIPT = Path(__file__).parent / "killed.py"
KIND = "training checkpoint"


def checkpoints(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*.safetensors"))


def wait_for_a_checkpoint(process: subprocess.Popen, folder: Path) -> None:
    while process.poll() is None and not checkpoints(folder):
        time.sleep(0.01)
    assert process.poll() is None, "it ended before it could be disturbed"


def test_the_lock_dies_with_its_process(tmp_path):
    code = "import sys, time\nfrom dhn.training.lock import lock_run\n"
    code += "with lock_run(sys.argv[1]):\n    print('held', flush=True)\n    time.sleep(100)\n"
    argv = [sys.executable, "-c", code, str(tmp_path)]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "held\n"
    with (
        pytest.raises(UserError, match=rf"in use by another training \(process {child.pid}\)"),
        lock_run(tmp_path),
    ):
        pass
    child.kill()
    child.wait()
    with lock_run(tmp_path):
        pass
    child.stdout.close()


def test_without_a_folder_nothing_is_locked():
    with lock_run(None), lock_run(None):
        pass


def test_an_ignored_signal_stays_ignored():
    """`nohup dhn train` ignores SIGHUP, and a training must not undo that."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with watch_signals() as interruption:
            signal.raise_signal(signal.SIGHUP)
            assert not interruption
            signal.raise_signal(signal.SIGTERM)
            assert interruption.signal_number == signal.SIGTERM
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_full_disk_is_one_line_and_the_old_file_stays(tmp_path):
    """A tmpfs of 64 kB in a name space of its own, so that nothing else sees it."""
    code = (
        "import sys, numpy as np\n"
        "from dhn.training.storage import load_arrays, save_arrays\n"
        "path = sys.argv[1] + '/x.safetensors'\n"
        "save_arrays(path, {'kind': 'thing'}, {'a': np.arange(1000.0)})\n"
        "try: save_arrays(path, {'kind': 'thing'}, {'a': np.arange(9000.0)})\n"
        "except ValueError as error: print(error)\n"
        "print(load_arrays(path, 'thing')[1]['a'].size)\n"
    )
    done = in_small_disk(tmp_path, 64, [sys.executable, "-c", code, str(tmp_path)])
    assert done.stdout.splitlines() == [
        f"{tmp_path}/x.safetensors cannot be written: No space left on device.", "1000",
    ], done.stderr  # fmt: skip


def in_small_disk(folder: Path, kilobytes: int, argv: list[str], **options):
    mount = f"mount -t tmpfs -o size={kilobytes}k tmpfs '{folder}'"
    script = f'{mount} && "$@"; code=$?; ls -A "{folder}" >&2; exit $code'
    name_space = ["unshare", "--map-root-user", "--mount"]
    if subprocess.run([*name_space, "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("this machine allows no mounts in a name space")
    argv = [*name_space, "sh", "-c", script, "sh", *argv]
    return subprocess.run(argv, capture_output=True, text=True, **options)


@pytest.mark.slow
def test_a_disk_that_fills_up_in_training_keeps_the_last_checkpoint(tmp_path):
    """A checkpoint has 36 kB: three fit, a fourth, as it is being written, does not."""
    done = in_small_disk(tmp_path, 130, [sys.executable, str(SCRIPT), str(tmp_path)])
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    line = [x for x in lines if x.startswith("dhn.errors.UserError: ")][-1]
    assert re.search(r"cannot be written: No space left on device\. Make room and resume\.", line)
    good = re.search(r"The last good checkpoint is \S+/(step-\d+\.safetensors)\.$", line)
    assert good and good.group(1) in lines[-4:]  # `ls` still finds it


@pytest.mark.slow
def test_two_trainings_into_one_folder(tmp_path):
    folder = tmp_path / "run"
    first = subprocess.Popen([sys.executable, str(SCRIPT), str(folder)])
    wait_for_a_checkpoint(first, folder)
    second = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder)], capture_output=True, text=True
    )
    assert first.wait(300) == 0
    assert second.returncode == 1
    assert f"is in use by another training (process {first.pid})" in second.stderr
    assert load_arrays(checkpoints(folder)[-1], KIND)[0]["step"] == 200


@pytest.mark.slow
def test_a_closed_terminal_saves(tmp_path):
    """The training owns a pseudo-terminal; closing the other end sends SIGHUP, as ssh does."""
    folder = tmp_path / "run"
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, str(SCRIPT), str(folder), "show"])
    while not checkpoints(folder):  # a terminal that nobody reads would stop the writer
        if select.select([terminal], [], [], 0.01)[0]:
            os.read(terminal, 1 << 16)
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert not os.WIFSIGNALED(status)
    header, arrays = load_arrays(checkpoints(folder)[-1], KIND)
    assert 0 < header["step"] < 200 and all(np.isfinite(x).all() for x in arrays.values())
    assert subprocess.run([sys.executable, str(SCRIPT), str(folder)]).returncode == 0
    assert load_arrays(checkpoints(folder)[-1], KIND)[0]["step"] == 200


@pytest.mark.slow
def test_bits_flipped_anywhere_in_a_checkpoint(tmp_path):
    """One bit at each of 400 random positions of a file of real size."""
    path = tmp_path / "x.safetensors"
    rng = np.random.default_rng(0)
    arrays = {f"layer{i}": rng.normal(size=(64, 64)).astype(np.float32) for i in range(8)}
    save_arrays(path, {"kind": KIND, "note": "x" * 2000}, arrays)
    whole = path.read_bytes()
    for position in rng.integers(0, len(whole), 400):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(UserError):
            load_arrays(path, KIND)
