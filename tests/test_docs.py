"""The documentation site: complete, strict, without outside addresses; its examples run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted(str(x.relative_to(ROOT / "docs")) for x in (ROOT / "docs").rglob("*.md"))
TAG = r"<(?:script|link|img|iframe|source)\b[^>]*"
LOADED = re.compile(TAG + r"(?:src|href)=\"?(?:https?:)?//[^\s\">]+")


def test_the_pattern_finds_what_is_loaded_from_elsewhere():
    assert LOADED.search('<link rel="stylesheet" href="https://fonts.example/css">')
    assert LOADED.search('<script src="//cdn.example/x.js">')
    assert not LOADED.search('<a href="https://example.org">') and not LOADED.search(
        '<img src="a/b">'
    )


def test_every_page_is_in_the_navigation():
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    assert sorted(re.findall(r"(\S+\.md)$", nav, re.MULTILINE)) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_no_page_loads_anything_from_elsewhere(page):
    text = (ROOT / "docs" / page).read_text()
    assert not LOADED.search(text) and not re.search(r"!\[[^\]]*\]\(https?:", text)


@pytest.mark.slow
def test_the_site_builds_strictly_and_offline(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path / "site")]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    built = sorted((tmp_path / "site").rglob("*.html"))
    assert len(built) >= len(PAGES)
    assert {
        str(x): LOADED.findall(x.read_text()) for x in built if LOADED.search(x.read_text())
    } == {}


def examples():
    text = (ROOT / "docs" / "ecosystem.md").read_text()
    for code in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield pytest.param(code, marks=pytest.mark.slow if ".fit(" in code else ())


@pytest.mark.parametrize("code", examples())
def test_the_examples_run(code, tmp_path):
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=[x.stem for x in TUTORIALS])
def test_the_tutorials_run(page):
    command = [sys.executable, str(ROOT / "examples" / "tutorials.py"), page.stem]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and page.stem in done.stdout, done.stderr


def test_every_picture_of_a_tutorial_is_made_by_its_code():
    for page in TUTORIALS:
        text = page.read_text()
        for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text):
            assert f'savefig("{name}"' in text and (page.parent / name).is_file()


PROMISES = sorted(
    set(re.findall(r"`pytest (tests/[^`]+)`", (ROOT / "docs" / "reliability.md").read_text()))
)


@pytest.mark.parametrize("words", PROMISES)
def test_the_command_of_a_promise_selects_tests(words):
    """By name alone: what `-k` selects among the functions of the files."""
    files, _, wanted = words.partition(" -k ")
    paths = [ROOT / name for name in files.split()]
    assert all(path.is_file() for path in paths)
    parts = [part.strip() for part in wanted.strip('"').split(" or ")]
    everything = [
        f"{path.name} {name}"
        for path in paths
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
    ]
    for part in parts:
        assert any(part in name for name in everything), part
