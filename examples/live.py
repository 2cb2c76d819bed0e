"""Write the explorer pages of the documentation: `python examples/live.py [FOLDER]`.

Three models of the package, into docs/live by default, from where `make docs` takes them.
"""

import sys
from pathlib import Path

import dhn
from dhn.estimator.pretrained import draw
from dhn.explorer import build_page

SMALL = ("double_pendulum",)
"""Shown inside a page of the documentation."""
MODELS = ("single_pendulum", "double_pendulum", "henon_heiles")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in MODELS:
        page = build_page(
            dhn.pretrained(name), draw(name, 6, seed=1), train=draw(name, 60), small=name in SMALL
        )
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
        print(f"{folder / name}.html: {len(page) / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    here = Path(__file__).parent.parent
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else here / "docs" / "live")
