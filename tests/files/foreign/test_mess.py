"""Files as they come: each is either read rightly or refused in one line that says what to do."""

import re

import numpy as np
import pytest
import scipy.io

import dhn
from dhn.files.foreign import import_measured

T = np.arange(40) * 0.1
X, V = np.sin(T), np.cos(T)


def lines(separator=",", header="t,x,v", decimal=".", end="\n"):
    rows = [separator.join(f"{y:.9f}" for y in row) for row in zip(T, X, V, strict=True)]
    text = end.join([header, *rows] if header else rows) + end
    return text if decimal == "." else text.replace(".", decimal)


def changed(number, row):
    """The table with one line (counted as in an editor) put differently."""
    rows = lines().splitlines()
    rows[number - 1] = row
    return "\n".join(rows) + "\n"


READABLE = {
    "byte order mark": ("\ufeff" + lines()).encode(),
    "UTF-16 of a spreadsheet": lines("\t", "t\tx\tv").encode("utf-16"),
    "old encoding in the header": lines(header="t,x,v (°)")
    .encode("latin-1")
    .replace(b"v (\xb0)", b"v"),
    "Windows line ends": lines(end="\r\n").encode(),
    "blanks": lines("   ", "t x v").encode(),
    "tabs": lines("\t", "t\tx\tv").encode(),
    "semicolons and decimal commas": lines(";", "t;x;v", ",").encode(),
    "blanks and decimal commas": lines("  ", "t x v", ",").encode(),
    "percent header": lines(" ", "% t x v").encode(),
    "hash header": lines(",", "# t, x, v").encode(),
    "several lines of remarks": b"# made by a logger\n# serial 42\n\n" + lines().encode(),
    "units row": lines(header="t,x,v\ns,m,m/s").encode(),
    "units in brackets": lines(header="t [s],x [m],v [m/s]").encode(),
    "quoted names": lines(header='"t","x","v"').encode(),
    "separator at the end of each line": lines().replace("\n", ",\n").encode(),
    "empty lines between": lines(end="\n\n").encode(),
    "time in ms": re.sub(
        r"^([\d.]+)", lambda m: f"{float(m[1]) * 1000:.6f}", lines(header="t (ms),x,v"), flags=re.M
    ).encode(),
}


@pytest.mark.parametrize("name", READABLE)
def test_it_is_read_rightly(name, tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(READABLE[name])
    data = import_measured(file, time="t", q="x", v="v").parts["all"]
    np.testing.assert_allclose(data.q[0, :, 0], X, atol=1e-8)
    np.testing.assert_allclose(data.v[0, :, 0], V, atol=1e-8)
    assert data.time_step == pytest.approx(0.1, rel=1e-6) and data.known.all()


FOLLOWED = {
    "above the first column of each": "\tjoint A\t\ttip\t\nt\tx\ty\tx\ty\n",
    "above every column": "model\tjoint A\tjoint A\ttip\ttip\nt\tx\ty\tx\ty\n",
    "in a header of three lines": "run 7\n\nt\tjoint A\tjoint A\ttip\ttip\nt\tx\ty\tx\ty\n",
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_columns_of_one_name_are_told_apart_by_the_markers_above_them(name, tmp_path):
    first, second = 0.3 * X, 0.5 * V
    x1, y1 = np.sin(first), -np.cos(first)
    rows = np.stack([T, x1, y1, x1 + np.sin(second), y1 - np.cos(second)], axis=1)
    text = "\n".join("\t".join(f"{x:.9f}" for x in row) for row in rows)
    (tmp_path / "film.txt").write_text(FOLLOWED[name] + text + "\n")
    data = import_measured(tmp_path / "film.txt", markers=("joint A", "tip"), pivot=(0, 0)).parts[
        "all"
    ]
    np.testing.assert_allclose(data.q[0], np.stack([first, second], axis=1), atol=1e-8)


ASKED = {"time": "t", "q": "x", "v": "v"}
REFUSED = {
    "missing column": (lines(), {"q": "theta"}, "there is no column 'theta'; it has t, x, v"),
    "misspelt column": (
        lines(header="time,angle,rate"),
        {"time": "time", "q": "angel", "v": "rate"},
        "there is no column 'angel' (did you mean 'angle'?)",
    ),
    "position too high": (lines(), {"q": "7"}, "there is no column 7; columns run from 1 to 3"),
    "mixed separators": (
        changed(9, "0.7;0.64;0.76"),
        {},
        "line 9 is separated by semicolons but the lines before it by commas",
    ),
    "line too short": (changed(9, "0.7,0.64"), {}, "line 9 has 2 cells but the lines before it"),
    "decimal commas between commas": (
        changed(9, "0,7,0,64,0,76"),
        {},
        "line 9 has 6 cells but the lines before it have 3 (decimal commas between commas?",
    ),
    "text in a column": (
        changed(9, "0.7,fell off,0.76"),
        {},
        "line 9, column 'x': 'fell off' is not a number",
    ),
    "time changes from s to ms": (
        "t,x,v\n" + "\n".join(f"{t if k < 20 else 1000 * t},{k},{k}" for k, t in enumerate(T)),
        {},
        "does the unit change within the file?",
    ),
    "clock of whole seconds": (
        "t,x,v\n" + "\n".join(f"{int(t)},{k},{k}" for k, t in enumerate(T)),
        {},
        "36 of 40 rows have the time of the row before, first at line 3; the clock is too coarse",
    ),
    "clock set forward by a year": (
        lines() + f"{4 + 3.15e7},0.1,0.2\n",
        {},
        "time jumps from 3.9 to 31500004",
    ),
    "clock restarted": (
        lines() + "\n".join(lines(header="").splitlines()),
        {},
        "time goes back from 3.9 to 0 at line 42; if a new trial begins there, set trial to",
    ),
    "time that never moves": (
        re.sub(r"^[\d.]+", "1.0", lines(), flags=re.M),
        {},
        "has only 1 different times",
    ),
    "shuffled rows": (
        "t,x,v\n" + "\n".join(f"{T[k] % 0.5 + k % 7 / 100},{X[k]},{V[k]}" for k in range(40)),
        {},
        "rows are earlier than the row before, first at line",
    ),
    "column of nothing but NaN": (
        re.sub(r",[\d.-]+$", ",NaN", lines(), flags=re.M),
        {},
        "column 'v' has no number at all",
    ),
    "never a whole row": (
        "t,x,v\n"
        + "\n".join(f"{t},{'1' if k % 2 else ''},{'' if k % 2 else '1'}" for k, t in enumerate(T)),
        {},
        "no run has four or more complete rows",
    ),
    "header without data": ("t,x,v\n", {}, "it holds no line of numbers"),
    "prose": ("Dear Sir,\nthe data are in the other file.\n", {}, "it holds no line of numbers"),
    "two columns of one name": (lines(header="t,x,x"), {}, "two columns are called 'x'"),
    "no time and no rate": (
        lines(header="a,x,v"),
        {"time": None},
        "it has no times: name their column (time) or give rate",
    ),
    "no names and no columns given": (
        lines(header=""),
        {"time": "1", "q": (), "v": ()},
        "which columns are the coordinates? Name them",
    ),
    "fewer velocities than coordinates": (
        lines(header="t,x,y"),
        {"q": ("x", "y"), "v": ("x",)},
        "v needs one column for each of the 2 coordinates (x, y); got 1: x",
    ),
    "every row its own trial": (lines(), {"trial": "x"}, "the trial column 'x' has"),
    "angle that does not exist": (lines(), {"angles": "phi"}, "there is no coordinate 'phi' to be"),
    "markers without partners": (
        lines(),
        {"q": (), "v": (), "markers": ("t", "x", "v")},
        "markers needs x and y of at least 2 markers",
    ),
    "segments longer than the run": (lines(), {"segment": 128}, "has no trajectory of 128 states"),
    "fractions over one": (lines(), {"split": (0.7, 0.7)}, "fractions that add up to 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_a_way_out(name, tmp_path):
    text, options, message = REFUSED[name]
    file = tmp_path / "a.csv"
    file.write_text(text)
    with pytest.raises(dhn.UserError) as caught:
        import_measured(file, **(ASKED | options))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_binary_and_spreadsheet_files(tmp_path):
    for name, content, message in (
        (
            "a.csv",
            b"PK\x03\x04" + bytes(50),
            "its contents are not text but look like .npz or .xlsx",
        ),
        ("a.xlsx", b"PK\x03\x04" + bytes(50), "save the sheet as CSV"),
        ("a.txt", b"1 2\n\0\0\0 3", "binary data, not text"),
        ("a.mat", b"not MATLAB", "it cannot be read as MATLAB .mat"),
        ("a.dat", b"", "is empty (0 bytes)"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(dhn.UserError) as caught:
            import_measured(tmp_path / name, time="1", q="2")
        assert message in str(caught.value) and name in str(caught.value)
    with pytest.raises(dhn.UserError, match="there is no file"):
        import_measured(tmp_path / "none.csv")


@pytest.mark.parametrize(
    "variables, options, message",
    [
        ({"t": T, "x": X}, {"time": "t", "q": "y"}, "no variable 'y'; it has t (1x40), x (1x40)"),
        ({"t": T, "x": X[:30]}, {"time": "t", "q": "x"}, "'x' has shape (1, 30), which does not"),
        ({"Y": np.eye(40), "t": T}, {"time": "t", "q": "Y"}, "is square, (40, 40)"),
        ({"Y": np.stack([X, V]), "t": T}, {"time": "t", "q": "Y:3"}, "name one from Y:1 to Y:2"),
        ({"x": X}, {"q": "x"}, "it has no times"),
        ({"x_a": X, "t_b": T}, {"q": "x_*", "time": "t_*"}, "the same words everywhere"),
        ({"x": X}, {"q": "z_*", "rate": 1}, "no variable fits 'z_*'"),
        ({"note": "nothing"}, {"q": "note", "rate": 1}, "it has no numeric variables"),
    ],
)
def test_variables_that_do_not_fit(tmp_path, variables, options, message):
    file = tmp_path / "a.mat"
    scipy.io.savemat(file, variables)
    with pytest.raises(dhn.UserError) as caught:
        import_measured(file, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"rate": -1}, "rate should be greater than 0, got -1"),
        ({"rate": 10, "time": "t"}, "a time column or a sampling rate, not both"),
        ({"q": "x", "markers": ("1", "2", "3", "4")}, "give q or markers, not both"),
        ({"hop": 3}, "give segment"),
        ({"time_unit": "fortnight"}, "time_unit must be one of s, ms"),
        ({"split": (0.5, 0.3, 0.2), "test_trials": "b"}, "test_trials already names the test part"),
        ({"validation_trials": "b"}, "name test_trials, too"),
        ({"colour": "red"}, "there is no import option 'colour'"),
    ],
)
def test_options_that_contradict_each_other(options, message, tmp_path):
    with pytest.raises(dhn.UserError, match=re.escape(message)):
        import_measured(tmp_path / "a.csv", **options)


def test_numbers_that_mean_nothing_was_measured(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(changed(9, "0.7,-9999,0.76"))
    data = import_measured(file, **ASKED, missing=-9999).parts["all"]
    assert np.isnan(data.q[0, 7, 0]) and np.isfinite(data.q).sum() == 39
    assert data.v[0, 7, 0] == 0.76, "its velocity was measured"


def test_a_block_of_nan_is_a_hole(tmp_path):
    rows = lines().splitlines()
    rows[11:21] = [re.sub(r",.*", ",NaN,NaN", x) for x in rows[11:21]]
    file = tmp_path / "a.csv"
    file.write_text("\n".join(rows))
    found = import_measured(file, **ASKED)
    assert found.report.states["missing"] == 10
    assert found.report.changes == {"rows without measurements, unknown": 10}
    assert np.isnan(found.parts["all"].q[0, 10:20]).all()
