"""Pages of one file: text is escaped unless it is `Html`, pictures are data inside the page."""

import base64
import html
import io
import math
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from dhn.files.atomic import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A browser that honours it loads nothing from other addresses.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def asset(name: str) -> str:
    """The text of a style or script that becomes a part of the page."""
    return (resources.files("dhn.reports") / "web" / name).read_text(encoding="utf-8")


@final
class Html(str):
    """Text that is markup already; every other text is escaped when it enters a page."""

    __slots__ = ()


def text(value: Any) -> Html:
    """A value as it may stand in a page."""
    if isinstance(value, Html):
        return value
    return Html(html.escape(number(value) if isinstance(value, float) else str(value)))


def join(parts: Iterable[Any], between: str = "\n") -> Html:
    return Html(between.join(text(part) for part in parts))


def element(tag: str, *content: Any, **attributes: str) -> Html:
    """`<tag attributes>content</tag>`; `class_` stands for `class`."""
    named = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for key, value in attributes.items()
    )
    return Html(f"<{tag}{named}>{join(content, '')}</{tag}>")


def paragraph(*content: Any) -> Html:
    return element("p", *content)


def bullets(items: Iterable[Any]) -> Html:
    return element("ul", *(element("li", item) for item in items))


def folded(title: str, *content: Any) -> Html:
    """Shown when the reader asks for it, and on paper."""
    return element("details", element("summary", title), *content)


def table(header: Sequence[Any], rows: Iterable[Sequence[Any]]) -> Html:
    """Columns of numbers stand right-aligned; a `None` is a dash."""
    rows = [list(row) for row in rows]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    kinds = [_kind(column) for column in columns]
    head = element("tr", *(_cell("th", name, k) for name, k in zip(header, kinds, strict=True)))
    body = [
        element("tr", *(_cell("td", value, k) for value, k in zip(row, kinds, strict=True)))
        for row in rows
    ]
    inner = element("table", element("thead", head), element("tbody", *body))
    return element("div", inner, class_="scroll")


def _kind(column: Sequence[Any]) -> str:
    numbers = [
        isinstance(v, int | float) and not isinstance(v, bool) for v in column if v is not None
    ]
    return "n" if numbers and all(numbers) else ""


def _cell(tag: str, value: Any, kind: str) -> Html:
    content = Html("&ndash;") if value is None else value
    return element(tag, content, class_=kind) if kind else element(tag, content)


def number(value: float | int | None) -> str:
    """Three significant digits, as short as they can be written."""
    if value is None or not math.isfinite(value):
        return "–" if value is None or math.isnan(value) else "diverged"
    written = f"{value:.3g}" if value == 0 or abs(value) >= 1e-3 else f"{value:.2e}"
    mantissa, e, exponent = written.partition("e")
    if not e:
        return written
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{int(exponent)}"


def duration(seconds: float | int | None) -> str:
    """Seconds in the units that a person would use."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def picture(figure: "Figure", caption: Any, *, alt: str) -> Html:
    """A drawing as SVG data: sharp at any size and on paper."""
    buffer = io.BytesIO()
    from dhn.reports.style import style  # Matplotlib is slow to import, and text needs none

    with style():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    coded = base64.b64encode(_shortened(buffer.getvalue())).decode("ascii")
    # Letters are as large in a narrow drawing as in a wide one.
    width = f"max-width: {6.0 * figure.get_figwidth():.1f}rem"
    image = element("img", src=f"data:image/svg+xml;base64,{coded}", alt=alt, style=width)
    image = Html(image.removesuffix("</img>"))
    return element("figure", image, element("figcaption", caption))


def save_pictures(document: str, folder: Path) -> list[Path]:
    """Every drawing of a page as a file of its own, numbered in the page's order."""
    folder.mkdir(parents=True, exist_ok=True)
    found = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]+)" alt="([^"]*)"', document)
    paths = []
    for number, (coded, alt) in enumerate(found, 1):
        words = re.findall(r"[a-z0-9]+", alt.lower())[:6]
        path = folder / "-".join([f"{number:02d}", *words, ".svg"]).replace("-.svg", ".svg")
        with atomic_path(path) as temporary:
            temporary.write_bytes(base64.b64decode(coded))
        paths.append(path)
    return paths


def _shortened(svg: bytes) -> bytes:
    """Coordinates to a hundredth of a point: half of the bytes, the same picture."""
    paths = re.compile(rb'(?<= d=")[^"]*')
    return paths.sub(lambda found: re.sub(rb"(\.\d\d)\d+", rb"\1", found[0]), svg)


def section(title: str, *content: Any, anchor: str) -> tuple[str, str, Html]:
    """A part of the page with its entry in the list of contents."""
    head = element("h2", title, id=anchor)
    return title, anchor, element("section", head, join(content))


def page(
    title: str,
    lead: Any,
    opening: Sequence[Any],
    sections: Sequence[tuple[str, str, Html]],
) -> str:
    """The whole document."""
    short = [(name.partition(":")[0], anchor) for name, anchor, _ in sections]
    links = element("nav", *(element("a", name, href=f"#{at}") for name, at in short))
    body = join(
        [
            element("h1", title),
            element("p", lead, class_="lead"),
            links,
            *opening,
            *(content for _, _, content in sections),
        ]
    )
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{asset('page.css')}</style></head>\n"
        f"<body>\n{body}\n<script>{asset('unfold.js')}</script>\n</body></html>\n"
    )


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
