"""Run the tutorials of docs/tutorials as they stand.

    python examples/tutorials.py [--write] [NAME]

The Python blocks of a page are one script. It runs in a temporary folder and must make every
picture that the page shows; `--write` copies the pictures into docs/tutorials.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PAGES = Path(__file__).parent.parent / "docs" / "tutorials"


def script(page: Path) -> str:
    """The Python blocks of a page, one after the other."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    return 'import matplotlib\nmatplotlib.use("Agg")\n' + "\n".join(blocks)


def pictures(page: Path) -> list[str]:
    """Pictures that a page shows."""
    return re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text())


def run(page: Path, write: bool = False) -> str:
    """Run one page and return what it printed; an error if it fails or a picture is missing."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", script(page)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{page.name} failed:\n{done.stderr}")
        for name in pictures(page):
            if not (Path(folder) / name).is_file():
                raise SystemExit(f"{page.name} shows {name}, which its code does not make")
            if write:
                shutil.copy(Path(folder) / name, PAGES / name)
    return done.stdout


def main() -> None:
    names = [x for x in sys.argv[1:] if not x.startswith("-")]
    for page in sorted(PAGES.glob("*.md")):
        if not names or page.stem in names:
            print(f"== {page.stem}\n{run(page, '--write' in sys.argv)}", flush=True)


if __name__ == "__main__":
    main()
