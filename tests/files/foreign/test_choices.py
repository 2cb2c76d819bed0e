"""Time ranges, pivots, positions at their own times, and warnings about likely mistakes."""

import numpy as np
import pytest
import scipy.io

import dhn
from dhn.files.foreign import import_measured
from dhn.files.foreign.markers import fit_pivot

T = np.arange(400) * 0.02
SWING = 0.6 * np.cos(3 * T)


def save(path, columns, header="t,x"):
    rows = np.stack(columns, -1)
    np.savetxt(path, rows, fmt="%.12g", header=header, delimiter=",", comments="")
    return path


@pytest.fixture
def swing(tmp_path):
    return save(tmp_path / "a.csv", [T, SWING])


@pytest.mark.parametrize(
    "options, first, last, left_out",
    [({"from_": 2}, 2, 7.98, 100), ({"to": 3.0}, 0, 3, 249), ({"from_": 1, "to": 2}, 1, 2, 349)],
)
def test_a_time_range_keeps_the_rows_inside(swing, options, first, last, left_out):
    found = import_measured(swing, q="x", **options)
    data = found.parts["all"]
    assert (data.t[0], data.t[-1]) == pytest.approx((first, last))
    assert found.report.changes == {"rows outside the time range, left out": left_out}
    assert found.report.rows == 400


def test_the_range_applies_after_the_unit(tmp_path):
    file = save(tmp_path / "a.csv", [1000 * T, SWING], "t [ms],x")
    data = import_measured(file, q="x", from_=2, to=3).parts["all"]
    assert (data.t[0], data.t[-1]) == pytest.approx((2, 3))


@pytest.mark.parametrize(
    "arc, noise, off", [(np.pi, 0.002, 1e-3), (0.6, 0.001, 0.02), (0.4, 0, 1e-9)]
)
def test_a_fitted_pivot_is_the_centre_of_the_circle(arc, noise, off):
    rng = np.random.default_rng(0)
    angle = np.linspace(-arc / 2, arc / 2, 500)
    points = np.stack([320 + 90 * np.sin(angle), 240 - 90 * np.cos(angle)], -1)
    points += 90 * noise * rng.normal(size=points.shape)
    points[::50] += 40  # lost markers
    points[7] = np.nan
    found = fit_pivot(points)
    assert np.abs(found.centre - [320, 240]).max() < max(90 * off, 4 * found.error)
    assert found.radius == pytest.approx(90, rel=max(off, 1e-9))
    assert found.error < 0.02 * 90 and not found.warnings()


def test_an_angle_from_x_and_y(tmp_path):
    x, y = 320 + 100 * np.sin(SWING), 240 + 100 * np.cos(SWING)
    file = save(tmp_path / "a.csv", [T, x, y], "t,bob_x,bob_y")
    for pivot in ({"pivot": (320, 240)}, {"pivot": "fit"}):
        for markers in (("bob",), ("2", "3")):
            found = import_measured(file, markers=markers, y_down=True, **pivot)
            data = found.parts["all"]
            np.testing.assert_allclose(data.q[0, :, 0], SWING, atol=1e-8)
            assert data.names == ("theta",) and data.angles == (True,)
            assert data.params["link1_length"] == pytest.approx(100)
            assert not found.report.warnings
    assert "pivot fitted at (320, 240)" in found.report.notes[0]


def test_a_short_arc_makes_the_pivot_doubtful(tmp_path):
    rng = np.random.default_rng(0)
    theta = 0.1 * np.cos(3 * T)
    x, y = 100 * np.sin(theta), -100 * np.cos(theta)
    noise = 0.5 * rng.normal(size=(2, 400))
    file = save(tmp_path / "a.csv", [T, x + noise[0], y + noise[1]], "t,x,y")
    found = import_measured(file, markers=("x", "y"), pivot="fit")
    assert "the pivot is known only to" in found.report.warnings[0]


@pytest.mark.parametrize("times", ["even", "uneven"])
def test_positions_are_those_of_the_file(tmp_path, times):
    rng = np.random.default_rng(0)
    t = T + (0 if times == "even" else rng.uniform(0, 0.015, 400))
    keep = np.r_[0:150, 200:400]  # a hole
    rows = [f"{a:.17g},{b:.17g}" for a, b in zip(t[keep], SWING[keep], strict=True)]
    rows[20], rows[30] = f"{t[20]:.17g},", f"{t[30]:.17g},NA"
    file = tmp_path / "a.csv"
    file.write_text("t,x\n" + "\n".join(rows))
    found = import_measured(file, q="x")
    data = found.parts["all"]
    measured = SWING.copy()
    measured[[20, 30]] = np.nan
    if times == "even":
        measured[150:200] = np.nan
        np.testing.assert_allclose(data.times[0], T, atol=1e-12)
    else:
        measured = measured[keep]
        np.testing.assert_array_equal(data.times[0], t[keep])
    np.testing.assert_array_equal(data.q[0, :, 0], measured)
    assert data.v is None and data.p is None
    np.testing.assert_array_equal(data.known[0], np.isfinite(measured))
    assert found.report.changes == {"rows without measurements, unknown": 2}
    assert found.report.measured == ("q",)
    assert found.report.own_times == (times == "uneven")
    assert found.report.period == pytest.approx(2 * np.pi / 3, rel=0.1)
    out = tmp_path / "out.csv"
    dhn.write(data, out)
    assert dhn.read(out).equals(data)


def test_a_coordinate_that_is_missing_alone_leaves_the_other_one(tmp_path):
    file = save(tmp_path / "a.csv", [T, SWING, 2 * SWING], "t,a,b")
    lines = file.read_text().splitlines()
    lines[11] = f"{T[10]:.12g},,{2 * SWING[10]:.12g}"
    file.write_text("\n".join(lines))
    data = import_measured(file, q=("a", "b"), angles="all").parts["all"]
    assert np.isnan(data.q[0, 10, 0]) and data.q[0, 10, 1] == pytest.approx(2 * SWING[10])
    assert data.known.all() and not data.known_q[0, 10, 0] and data.known_q.sum() == 799


def test_own_times_can_be_split_and_segmented(tmp_path):
    t = T + np.random.default_rng(0).uniform(0, 0.015, 400)
    file = save(tmp_path / "a.csv", [t, 0.6 * np.cos(3 * t)])
    found = import_measured(file, q="x", split=(0.5, 0.5), segment=50).parts
    train, test = found["train"], found["test"]
    assert train.states == 50 and train.times.max() < test.times.min()
    assert np.isin(train.times, [float(f"{x:.12g}") for x in t]).all()


CLOCK = 10_000 + np.arange(400) * 33_333
WARNED = {
    "microseconds": ([CLOCK, SWING], "t,x", {}, "by 33333 s a row, read as seconds: if they"),
    "milliseconds": ([np.arange(400) * 20, SWING], "t,x", {}, "if they are in ms"),
    "nanoseconds": ([1e7 * np.arange(400), SWING], "t,x", {}, "if they are in ns"),
    "frames": ([np.arange(400), SWING], "t,x", {}, "if they count frames, give the sampling rate"),
    "seconds as us": ([T, SWING], "t,x", {"time_unit": "us"}, "is the unit of the times right?"),
    "rests at pi": ([T, SWING + np.pi], "t,x", {"angles": "x"}, "set zero to 3.14159265"),
    "rests at -pi, wrapped": (
        [T, SWING % (2 * np.pi) - np.pi], "t,x", {"angles": "x"}, "half a turn from zero"
    ),
    "rests at 180": ([T, 50 * SWING + 180], "t,x", {"degrees": True}, "set zero to 180"),
    "radians as degrees": ([T, SWING], "t,x", {"degrees": True}, "x covers only 1.2 degrees"),
    "radians in a header of degrees": ([T, SWING], "t,x [deg]", {}, "x covers only 1.2 degrees"),
    "some columns named": ([0 * T, T, SWING], "t,x", {}, "the header names 2 of 3 columns"),
    "names of no column": ([0 * T, T, SWING], "t,x,y,z", {"time": "2", "q": "3"}, "names all 3"),
}  # fmt: skip


@pytest.mark.parametrize("name", WARNED)
def test_likely_mistakes_are_warned_of(tmp_path, name):
    columns, header, options, message = WARNED[name]
    file = save(tmp_path / "a.csv", columns, header)
    warnings = import_measured(file, **({"time": "t", "q": "x"} | options)).report.warnings
    assert len(warnings) == 1 and message in warnings[0]


@pytest.mark.parametrize(
    "columns, header, options",
    [
        ([T, SWING], "t,x", {}),
        ([T, SWING], "t,x", {"angles": "x"}),
        ([CLOCK, SWING], "t [us],x", {}),
        ([CLOCK, SWING], "t,x", {"time_unit": "us"}),
        ([T, 50 * SWING], "t,x", {"degrees": True}),
        ([T, 9 * T], "t,x", {"angles": "x"}),  # tumbling
    ],
)
def test_what_is_right_is_not_warned_of(tmp_path, columns, header, options):
    file = save(tmp_path / "a.csv", columns, header)
    assert not import_measured(file, q="x", **options).report.warnings


def test_a_marker_on_a_straight_line_has_no_pivot():
    with pytest.raises(dhn.UserError, match="along a straight line"):
        fit_pivot(np.stack([T, 2 * T], axis=-1))


@pytest.mark.parametrize("labels", [(20240101, 20240102), (1.5, 1.5000001), (1, 2)])
def test_labels_that_differ_are_different_trials(tmp_path, labels):
    trial = np.where(np.arange(len(T)) < len(T) // 2, *labels)
    np.savez(tmp_path / "a.npz", t=T, x=SWING, trial=trial)
    found = import_measured(tmp_path / "a.npz", time="t", q="x", trial="trial")
    assert found.report.runs == 2


@pytest.mark.parametrize(
    "options, message",
    [
        ({"from_": 100}, "no row lies between 100 and inf s; its times run from 0 to 7.98 s"),
        ({"from_": 3, "to": 2}, "the time range is empty: from 3 to 2 s"),
        ({"to": float("nan")}, "to should be a finite number, got nan"),
        ({"pivot": (1, 2)}, "a pivot belongs to markers"),
        ({"q": (), "markers": ("t", "x"), "pivot": 1}, "pivot needs x and y; got 1 numbers"),
        ({"q": (), "markers": ("t",), "pivot": "fit"}, "at least 1 marker, pivot first"),
        ({"q": (), "markers": ("t", "x"), "pivot": "fit"}, "as time and markers"),
    ],
)
def test_contradictions_are_one_line(swing, options, message):
    with pytest.raises(dhn.UserError) as caught:
        import_measured(swing, **({"time": "t", "q": "x"} | options))
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "time, message",
    [
        ("Time_id", "has 2 trials but others have 3; they must go together (did you mean Time_*?)"),
        (
            "Time",
            "there is no variable 'Time' (did you mean Time_*, one for each group of",
        ),
    ],
)
def test_a_star_is_proposed_where_trial_counts_differ(tmp_path, time, message):
    cells = {}
    for part, count in (("vad", 2), ("id", 3)):
        for name, value in (("Time", T), ("Y", SWING)):
            cells[f"{name}_{part}"] = np.empty((count, 1), object)
            for k in range(count):
                cells[f"{name}_{part}"][k, 0] = value
    file = tmp_path / "a.mat"
    scipy.io.savemat(file, cells)
    with pytest.raises(dhn.UserError) as caught:
        import_measured(file, time=time, q="Y_*")
    assert message in str(caught.value)


def test_few_of_many_columns(tmp_path):
    file = tmp_path / "wide.csv"
    d = 100_000
    row = ",0" * d
    names = ",".join(f"c{k}" for k in range(d))
    file.write_text(f"t,{names},x\n" + "".join(f"{t:.4f}{row},{t * t}\n" for t in T[:8]))
    data = import_measured(file, q="x").parts["all"]
    np.testing.assert_allclose(data.q[0, :, 0], T[:8] ** 2)


@pytest.mark.parametrize("lost", [(0, 1, 7), (5, 6), (19,)])
def test_frames_without_any_marker_keep_their_place(tmp_path, lost):
    t = np.arange(20) / 60
    angle = 0.5 * np.cos(4 * t)
    rows = np.column_stack([0 * t, 0 * t, np.sin(angle), -np.cos(angle)])
    lines = ["x0,y0,x1,y1", *(",".join(f"{x:.9f}" for x in row) for row in rows)]
    for k in lost:
        lines[k + 1] = ",,,"
    file = tmp_path / "film.csv"
    file.write_text("\n".join(lines))
    options = {"rate": 60}
    by_position = import_measured(file, markers=("1", "2", "3", "4"), **options).parts["all"]
    by_name = import_measured(file, markers=("0", "1"), **options).parts["all"]
    for found in (by_position, by_name):
        assert found.names == ("theta",)
        known = np.asarray(found.known)[0]
        row = np.round(found.times[0] * 60).astype(int)
        assert set(row[known]) == set(range(20)) - set(lost)
        np.testing.assert_allclose(found.q[0, known, 0], angle[row[known]], atol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_rest_at_the_end_of_a_recording_is_announced(noise, tmp_path):
    """By its time; none where the motion goes on, however slowly it decays."""
    t = np.arange(3000) * 0.01
    rng, angle = np.random.default_rng(0), 0.8 * np.maximum(1 - t / 20, 0) * np.cos(6 * t)
    x = np.round(angle + rng.normal(0, noise, len(t)), 2)
    file = save(tmp_path / "a.csv", [t, x])
    found = [x for x in import_measured(file, q="x").report.warnings if "no motion" in x]
    assert len(found) == 1 and "a after" in found[0]
    end = float(found[0].rpartition("(to ")[2].rstrip(")"))
    assert 19 < end < 20.3
    for options in ({"to": end}, {"to": 15}):
        warned = import_measured(file, q="x", **options).report.warnings
        assert not any("no motion" in x for x in warned)
