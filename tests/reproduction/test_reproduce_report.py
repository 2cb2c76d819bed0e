"""The page of a reproduction: whole in itself, complete, and honest about what is missing."""

import base64
import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import pytest
import synthetic

from dhn.errors import UserError
from dhn.reports.animation import film, frames, joints, player
from dhn.reports.html import Html, duration, element, number, save_pictures, table
from dhn.reproduction.report import document, write_report
from dhn.reproduction.report_figures import block_tables, completion_figure, fit_figure, looks
from dhn.reproduction.report_results import read_results, series, without_block

ALL = tuple(synthetic.MAKERS)


@pytest.fixture(scope="module")
def everything():
    return synthetic.results(*ALL)


@pytest.fixture(scope="module")
def whole(everything):
    return document(everything)


class Reader(HTMLParser):
    """Tags that are open, links and pictures."""

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.pictures = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("img", "meta", "input", "br"):
            self.open.append(tag)
        values = dict(attrs)
        self.addresses += [values[k] for k in ("src", "href") if k in values]
        if tag == "img":
            self.pictures.append(values)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read(document):
    reader = Reader()
    reader.feed(document)
    assert reader.open == []
    return reader


def test_the_page_needs_nothing_from_outside(whole):
    assert "http:" not in whole and "https:" not in whole and "url(" not in whole
    reader = read(whole)
    assert all(address.startswith(("data:", "#")) for address in reader.addresses)
    assert "default-src &#x27;none&#x27;" in whole  # the browser refuses what we forgot


def test_every_experiment_has_its_figures(whole):
    pictures = read(whole).pictures
    for alt in (
        "errors per time step, fit",
        "errors per time step, completion, single_pendulum",
        "errors per time step, completion, double_pendulum",
        "error of the linear probe per model",
        "error of the probe, block size and stride",
        "error of interpolation, single_pendulum",
        "error of interpolation, double_pendulum",
        "frames of the animation",
    ):
        (found,) = [one for one in pictures if one["alt"] == alt]
        svg = base64.b64decode(found["src"].removeprefix("data:image/svg+xml;base64,"))
        assert ET.fromstring(svg).tag.endswith("svg")
    assert whole.count("<canvas") == 1
    assert "noise 1%" in whole and "random starts" in whole


def test_every_picture_can_be_had_as_a_file(whole, tmp_path):
    saved = save_pictures(whole, tmp_path / "pictures")
    assert len(saved) == whole.count("<img ") > 3
    assert sorted(saved) == saved and len(set(saved)) == len(saved)
    for path in saved:
        assert ET.fromstring(path.read_text()).tag.endswith("svg")


def test_text_from_results_is_escaped(whole):
    assert "<script>alert(1)" not in whole
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in whole
    assert "b &lt; 4 &amp; no drift" in whole
    assert "-o &lt;out&gt;" in whole


def test_a_label_cannot_end_the_players_script():
    t = np.linspace(0, 1, 5)
    shown = film("</script><b>", t, np.zeros((5, 2)), np.zeros((5, 2)), [1.0, 0.5])
    assert "</script><b>" not in player([shown], "caption")


@pytest.mark.parametrize("left", ["fit", "interpolation", "stress"])
def test_a_missing_experiment_is_named_and_left_out(left):
    page = document(synthetic.results(left, seeds=1))
    others = [name for name in ALL if name != left]
    assert f"Not in these results: {', '.join(others)}." in page
    anchors = re.findall(r'<h2 id="(\w+)"', page)
    assert anchors == ["claims", left, "runs"]


def test_no_results_at_all_still_make_a_page():
    page = document({**synthetic.results(), "claims": []})
    assert "None was judged here." in page
    assert "Not in these results: fit, completion" in page


def test_verdicts_are_told_by_signs_too(whole):
    assert "✓ holds" in whole and "✗ does not hold" in whole


def test_a_diverged_number_is_not_left_out_of_the_mean(everything):
    (one,) = series(everything["cells"], "stress", "double_pendulum", "noise 1%")
    assert one.mean("mse_late") == np.inf
    assert one.mean("horizon") == 12
    assert "diverged" in document(synthetic.results("stress"))


def test_seeds_are_joined(everything):
    shown = series(everything["cells"], "fit", "double_pendulum")
    assert [one.label for one in shown][:2] == ["Blocks b=2", "Blocks b=8"]
    assert all(len(one.cells) == 2 for one in shown)
    curve = shown[0].curve("mse")
    # Errors of the two seeds are 1 : 1.2, whose geometric mean is their square root.
    np.testing.assert_allclose(curve.mean, curve.low * np.sqrt(1.2))
    np.testing.assert_allclose(curve.high, curve.low * 1.2)
    assert curve.steps[0] == 8


def test_fit_and_completion_show_what_the_paper_shows(everything):
    by_system = {s: series(everything["cells"], "fit", s) for s in synthetic.ANGLES}
    fit = fit_figure(by_system)
    assert len(fit.axes) == 6
    assert [ax.get_yscale() for ax in fit.axes] == ["log", "log", "linear"] * 2
    assert all(ax.get_xlabel() and ax.get_ylabel() for ax in fit.axes)
    shown = series(everything["cells"], "completion", "single_pendulum")
    above, _, _, below, _, _ = completion_figure("single_pendulum", shown).axes

    def labels(ax):
        return {line.get_label() for line in ax.lines}

    assert "HNN euler" in labels(above) and "vanilla transformer" not in labels(above)
    assert "vanilla transformer" in labels(below) and "HNN euler" not in labels(below)
    assert "Blocks b=2" in labels(above) & labels(below)


def test_every_line_can_be_told_from_the_others(everything):
    shown = series(everything["cells"], "completion", "single_pendulum")
    found = looks(shown)
    assert len({(look["color"], str(look["linestyle"])) for look in found.values()}) == len(shown)
    assert found["HNN euler"]["color"] == found["HNN Euler loss euler"]["color"]
    assert found["HNN euler"]["linestyle"] == found["HNN leapfrog"]["linestyle"]


def test_the_heat_map_has_every_block_and_stride(everything):
    shown = series(everything["cells"], "representation", "double_pendulum")
    tables = block_tables(shown, "probe_mse")
    assert set(tables) == {"Blocks"}
    assert set(tables["Blocks"]) == {(4, s) for s in (1, 2, 3, 4)} | {
        (8, s) for s in (1, 2, 4, 6, 8)
    }
    assert min(tables["Blocks"], key=lambda at: tables["Blocks"][at]) in ((4, 2), (8, 4))
    assert without_block("DHN transformer b=4 s=1") == "DHN transformer"


def test_a_hanging_pendulum_hangs():
    chain = joints(np.zeros((1, 2)), [1.0, 0.5])
    np.testing.assert_allclose(chain[0], [[0, 0], [0, -1], [0, -1.5]])
    level = joints(np.full((1, 1), np.pi / 2), [2.0])
    np.testing.assert_allclose(level[0, 1], [2, 0], atol=1e-15)
    t = np.linspace(0, 10, 50)
    swing = np.cos(t)[:, None]
    assert len(frames(film("x", t, swing, swing, [1.0])).axes) == 6


def test_a_lost_prediction_is_drawn_as_far_as_it_goes():
    t = np.linspace(0, 1, 5)
    lost = np.array([[0.1], [0.2], [np.nan], [np.inf], [np.nan]])
    with np.errstate(invalid="ignore"):
        page = player([film("x", t, np.zeros((5, 1)), lost, [1.0])], "c")
    (data,) = json.loads(re.search(r'json">(.*?)</script>', page)[1])
    assert data["predicted"][2][1] == [None, None]
    assert data["truth"][2][1] == [0.0, -1.0]


def test_redrawing_needs_the_file_alone(tmp_path):
    made = synthetic.results("representation", seeds=1)
    path = write_report(made, tmp_path)
    (tmp_path / "results.json").write_text(json.dumps(made))
    before = path.read_bytes()
    assert write_report(read_results(tmp_path), tmp_path).read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.html", "results.json"]


@pytest.mark.parametrize(
    "content, message",
    [
        (None, r"has no results.json; expected the folder of a reproduction"),
        ("{", r"results.json cannot be read: .*; run `dhn reproduce` again"),
        ("[]", r"is not a file of results: expected an object with `cells`"),
        ('{"schema": 7, "cells": []}', r"has schema 7, but this version reads 1"),
    ],
)
def test_other_files_are_refused(content, message, tmp_path):
    if content is not None:
        (tmp_path / "results.json").write_text(content)
    with pytest.raises(UserError, match=message):
        read_results(tmp_path)


def test_numbers_are_short_and_say_what_is_lost():
    shown = [number(x) for x in (0.5, 1.2345e-6, 1e-4, 0.0, 12345.0, np.inf, np.nan, None)]
    assert shown == ["0.5", "1.23e-6", "1e-4", "0", "1.23e4", "diverged", "–", "–"]
    assert [duration(s) for s in (1.2, 42, 61.5, 3700)] == [
        "1.2 s",
        "42 s",
        "1 min 02 s",
        "1 h 01 min",
    ]


def test_markup_is_kept_and_text_is_not():
    assert element("p", "a<b", Html("<i>c</i>")) == "<p>a&lt;b<i>c</i></p>"
    made = table(("x", "n"), [("<", 1.0), ("y", None)])
    assert "<td>&lt;</td>" in made and '<td class="n">1</td>' in made and "&ndash;" in made
