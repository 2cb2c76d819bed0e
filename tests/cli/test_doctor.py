"""`dhn doctor` states what is here, and does not hide what does not work."""

import json
import os

import pytest

from dhn.cli import main
from dhn.cli.selftest import STEPS


def test_a_self_test_that_hangs_is_ended_and_named(capsys):
    assert main(["doctor", "--timeout", "0.01"]) == 1
    shown = capsys.readouterr().out
    assert "FAILED: did not finish within 0.01 s" in shown
    assert "Something is wrong" in shown
    assert "GPU" in shown and "none that JAX can use\n" in shown


def test_a_gpu_without_its_extra_is_told_apart_from_none(capsys, tmp_path, monkeypatch):
    (tmp_path / "nvidia-smi").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    main(["doctor", "--timeout", "0.01"])
    assert 'there is an NVIDIA driver: pip install "dhn[cuda]"' in capsys.readouterr().out


@pytest.mark.slow
def test_everything_works_here(capsys):
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["healthy"] and [x["step"] for x in found["self_test"]] == list(STEPS)
    assert found["versions"]["jax"] and found["devices"] == ["cpu: cpu"] and not found["gpu"]
    assert found["cache"]["folder"]
