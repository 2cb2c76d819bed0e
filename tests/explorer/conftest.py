"""Small trained models of every form, and a browser to open their pages in."""

import shutil
from pathlib import Path

import pytest
from explorer_models import FORMS, until

import dhn


@pytest.fixture(scope="session")
def trained():
    """Form -> (model, training data), trained for a few steps when first asked for."""
    made = {}

    def get(form: str):
        if form not in made:
            system, estimator, options = FORMS[form]
            data = dhn.simulate(system, trajectories=24, seed=1, **options)
            made[form] = estimator(width=16, depth=2).fit(data, steps=30), data
        return made[form]

    return get


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium; never a browser that playwright downloads."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = [shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")]
    if not any(found):
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as play:
        # Tests may run as root, for whom Chromium has no sandbox.
        chromium = play.chromium.launch(
            executable_path=next(filter(None, found)), args=["--no-sandbox"]
        )
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Open a page from its text; afterwards: nothing was complained of, nothing asked for."""
    complaints, requests, contexts = [], [], []

    ready = "window.explorer && explorer.app.motion.path.length > 100"

    def opening(
        document: str,
        *,
        hash: str = "",
        width: int = 1200,
        height: int = 860,
        ready: str = ready,
        **options,
    ):
        file = Path(tmp_path) / "page.html"
        file.write_text(document, encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url.split("#")[0]))
        page.goto(file.as_uri() + hash)
        until(page, ready)
        return page

    yield opening
    for context in contexts:
        context.close()
    assert complaints == []
    assert set(requests) <= {(Path(tmp_path) / "page.html").as_uri(), "about:srcdoc"}
