"""The README's commands and examples run as they are written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


SYSTEMS = (ROOT / "docs" / "api" / "systems.md").read_text()


def blocks(language, page=README):
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


EXAMPLES = blocks("python") + blocks("python", SYSTEMS)
COMMANDS = [line for block in blocks("bash") for line in block.splitlines() if line.strip()]


def test_there_is_something_to_run():
    assert any(line.startswith("dhn ") for line in COMMANDS)
    assert blocks("python") and blocks("python", SYSTEMS)


def run(folder, *argv):
    """As a reader would, with compiled programs at their best."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "XLA_FLAGS": ""}
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_commands_run_in_order(tmp_path):
    script = "\n".join(line for line in COMMANDS if line.startswith("dhn "))
    script = script.replace(" --open", "")  # no browser in a test
    run(tmp_path, "bash", "-euc", script)
    for name in re.findall(r"(?:-o|--plot) (\S+)", script):
        assert (tmp_path / name).stat().st_size > 0


@pytest.mark.parametrize(
    "code",
    [pytest.param(c, marks=pytest.mark.slow if ".fit(" in c else ()) for c in EXAMPLES],
)
def test_the_python_examples_run(code, tmp_path):
    run(tmp_path, sys.executable, "-c", code)


def test_the_make_targets_exist():
    """Not run here, since one of them runs this very test: make only says what it would do."""
    targets = re.findall(r"`(make [a-z-]+)`", README)
    assert "make demo" in targets and "make test" in targets
    for target in targets:
        done = subprocess.run([*target.split(), "--dry-run"], cwd=ROOT, capture_output=True)
        assert done.returncode == 0, done.stderr


def test_every_command_is_accounted_for():
    assert all(line.startswith("dhn ") for line in COMMANDS)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/index.md"])
def test_the_links_lead_somewhere(page):
    file = ROOT / page
    for target in re.findall(r"\]\(([^)#]+)\)", file.read_text()):
        if not target.startswith("http"):
            assert (file.parent / target).exists(), target


def test_pictures_are_small():
    shown = re.findall(r"!\[.+?\]\((.+?)\)", README)
    assert len(shown) == 2 and shown[0].endswith(".webp")  # an animation and a screenshot
    kept = [x for x in (ROOT / "docs").rglob("*") if x.suffix in (".png", ".svg", ".webp", ".gif")]
    sizes = {str(x.relative_to(ROOT)): x.stat().st_size for x in kept}
    assert set(shown) <= set(sizes) and max(sizes.values()) < 300_000, sizes
    assert sum(sizes.values()) < 2_000_000, sizes
