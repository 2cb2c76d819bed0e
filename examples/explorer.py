"""Write explorer pages of two pretrained models and draw the pictures of docs/explorer.md.

`python examples/explorer.py [FOLDER]`: the pages go to FOLDER (by default explorer/), the pictures
to docs/. The pictures need playwright and Debian's Chromium (`apt-get install chromium`).
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

import dhn
from dhn.estimator.pretrained import draw
from dhn.explorer import write_explorer
from pictures import shrink

DOCS = Path(__file__).parent.parent / "docs"


def pages(folder: Path) -> None:
    for name in ("double_pendulum", "henon_heiles"):
        new, train = draw(name, 12, seed=1), draw(name, 100)
        size = write_explorer(folder / f"{name}.html", dhn.pretrained(name), new, train=train)
        print(f"{folder / name}.html: {size / 1000:.0f} kB")


def pendulum(page: Page) -> None:
    """Both bobs held to the side and let go, some seconds later."""
    page.evaluate("explorer.app.begin([1.5, -0.4], [0, 0]); explorer.app.seek(0)")
    page.wait_for_timeout(6000)
    page.evaluate("explorer.app.seek(75)")


def section(page: Page) -> None:
    """Orbits of one energy, each started by a click."""
    page.click("text=Poincaré section")
    page.evaluate("explorer.app.begin([0, -0.12], [0.29, 0.02])")
    box = page.locator("#portrait").bounding_box()
    assert box is not None
    for x, y in ((0.44, 0.5), (0.5, 0.4), (0.56, 0.5), (0.62, 0.46), (0.68, 0.5), (0.52, 0.62)):
        page.wait_for_timeout(1000)
        page.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])
    while page.evaluate("explorer.app.section.unfinished"):
        page.wait_for_timeout(200)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pages(folder)
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for system, act, picture in (
            ("double_pendulum", pendulum, "explorer.png"),
            ("henon_heiles", section, "explorer-section.png"),
        ):
            theme = "dark" if act is section else "light"
            page = browser.new_page(viewport={"width": 1360, "height": 830}, color_scheme=theme)
            page.goto((folder / f"{system}.html").resolve().as_uri())
            page.wait_for_timeout(1000)
            act(page)
            page.wait_for_timeout(500)
            page.screenshot(path=DOCS / picture)
            shrink(DOCS / picture)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "explorer"))
