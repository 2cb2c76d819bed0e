"""The whole way from files of all kinds to trajectories, with every row accounted for."""

import numpy as np
import pytest
import scipy.io

import dhn
from dhn.files.foreign import import_measured
from dhn.trajectories.segments import code_rows, run_of


def oscillator(t, w=2.0, gamma=0.05):
    """A damped oscillator and its velocity, exactly."""
    x = np.exp(-gamma * t) * np.cos(w * t)
    return x, -gamma * x - w * np.exp(-gamma * t) * np.sin(w * t)


def save(path, columns, header="", fmt="%.10g", delimiter=" "):
    np.savetxt(
        path, np.stack(columns, -1), fmt=fmt, header=header, delimiter=delimiter, comments=""
    )
    return path


@pytest.fixture
def track(tmp_path):
    """Like an air track: a header that names the last columns, blanks, times rounded to ms."""
    t = np.round((1 + np.arange(500)) / 29.97, 3)
    x, v = oscillator(t)
    return save(tmp_path / "track.txt", [0 * t, t, np.round(100 * x), 100 * v], "% x v")


def test_columns_by_name_and_position(track):
    found = import_measured(track, trial="1", time="2", q="x", v="v")
    data = found.parts["all"]
    assert data.names == ("x",) and data.ids == ("track",)
    assert data.is_uniform and data.time_step == pytest.approx(1 / 29.97, rel=1e-3)
    x, v = oscillator(data.times[0])
    assert np.abs(data.q[0, :, 0] - 100 * x).max() < 1.0
    assert np.abs(data.v[0, :, 0] - 100 * v).max() < 1.0
    assert data.known.all() and data.p is None
    # Rounding to whole numbers is the noise of x.
    assert data.noise[0, 0] == pytest.approx(1 / np.sqrt(12), rel=0.25)
    assert found.report.rows == 500 and sum(found.report.states.values()) == data.states
    assert found.report.period == pytest.approx(np.pi, rel=0.05)
    assert "names 2 of 4 columns" in found.report.warnings[0]
    assert found.report.measured == ("q", "v")
    same = import_measured(track, time=2, q="3", v="4").parts["all"]
    np.testing.assert_array_equal(same.q, data.q)


def test_read_takes_the_same_options(track):
    data = dhn.read(track, time="2", q=("x",), v=("v",), segment=100)
    expected = import_measured(track, time="2", q="x", v="v", segment=100).parts["all"]
    assert data.equals(expected)
    with pytest.raises(dhn.UserError, match="several parts"):
        dhn.read(track, time="2", q="x", split=(0.5, 0.5))


def test_what_is_uniform_already_is_not_changed(tmp_path):
    t = np.arange(300) * 0.01
    x, v = oscillator(t)
    file = save(tmp_path / "a.csv", [t, x, v], "t,q,v", "%.17g", ",")
    found = import_measured(file)
    data = found.parts["all"]
    np.testing.assert_array_equal(data.q[0, :, 0], x)
    np.testing.assert_array_equal(data.v[0, :, 0], v)
    assert found.report.states == {
        **{"missing": 0, "interpolated": 0, "resampled": 0, "copied": 300}
    }
    assert not found.report.changes and not found.report.warnings


@pytest.mark.parametrize("ending", ["npz", "csv", "mat"])
def test_importing_what_was_imported_changes_nothing(track, tmp_path, ending):
    data = import_measured(track, time="2", q="x", v="v").parts["all"]
    file = tmp_path / f"out.{ending}"
    dhn.write(data, file)
    again = import_measured(file).parts["all"]
    np.testing.assert_array_equal(again.q, data.q)
    np.testing.assert_array_equal(again.v, data.v)
    np.testing.assert_allclose(again.times, data.times, rtol=1e-12)
    np.testing.assert_array_equal(again.known, data.known)
    assert again.ids == data.ids and again.names == data.names


def test_everything_that_happens_to_rows_is_counted(tmp_path):
    t = np.arange(400) * 0.01
    x, v = oscillator(t)
    rows = [f"{a:.4f},{b:.8f},{c:.8f}" for a, b, c in zip(t, x, v, strict=True)]
    rows[50] = "0.5000,,"
    rows[60] = "0.6000,0.1,nan"
    rows[70] = ",0.1,0.2"
    rows.insert(80, rows[79])
    rows[101], rows[102] = rows[102], rows[101]
    del rows[200:260]
    rows.insert(150, "t,q,v")
    rows.append("4.0000,0.")
    file = tmp_path / "a.csv"
    file.write_text("t,q,v\n" + "\n".join(rows) + "\n")
    found = import_measured(file)
    assert found.report.changes == {
        "header or comment lines between the data, left out": 1,
        "last line cut short, left out": 1,
        "rows without a time, left out": 1,
        "rows without measurements, unknown": 1,
        "rows with some measurements missing, known in part": 1,
        "rows out of order, sorted": 1,
        "rows at (nearly) the same time, averaged into others": 1,
    }
    data = found.parts["all"]
    # A hole of sixty rows, one row without a number and one without a time.
    assert found.report.states["missing"] == 62
    assert found.report.rows == len(rows)
    assert data.states == 400 and (~data.known).sum() == 62
    assert data.q[0, 60, 0] == 0.1 and np.isnan(data.v[0, 60, 0]), "known in part"
    x[60] = 0.1
    np.testing.assert_allclose(data.q[0, data.known[0], 0], x[data.known[0]], atol=1e-8)
    assert np.isnan(data.q[0, 50, 0])


def test_trials_of_unequal_length_from_a_column_files_or_restarts(tmp_path):
    parts = [np.arange(n) * 0.05 for n in (80, 120)]
    t = np.concatenate(parts)
    x, v = oscillator(t)
    label = np.repeat([1, 2], [80, 120])
    file = save(tmp_path / "a.dat", [label, t, x, v], "run time x v", delimiter="\t")
    options = {"q": "x", "v": "v"}
    by_column = import_measured(file, trial="run", **options).parts["all"]
    by_restart = import_measured(file, trial="restart", **options).parts["all"]
    for k in (1, 2):
        where = label == k
        save(tmp_path / f"b{k}.txt", [t[where], x[where], v[where]], "time x v")
    by_file = import_measured([tmp_path / "b1.txt", tmp_path / "b2.txt"], **options).parts["all"]
    for data in (by_column, by_restart, by_file):
        assert len(data) == 2 and list(data.lengths) == [80, 120]
        np.testing.assert_allclose(data.q[1, :, 0], x[80:], atol=1e-9)
    assert by_column.ids == ("a-1", "a-2") and by_file.ids == ("b1", "b2")


def test_cells_of_a_mat_file(tmp_path):
    def cells(arrays):
        out = np.empty((len(arrays), 1), dtype=object)
        for k, x in enumerate(arrays):
            out[k, 0] = x
        return out

    variables = {"dt": 0.01}
    truth = {}
    for part, lengths in (("id", (60, 60, 50)), ("vad", (60,))):
        ts = [5 * k + np.arange(n) * 0.01 for k, n in enumerate(lengths)]
        variables[f"Time_{part}"] = cells([t[:, None] for t in ts])
        variables[f"Y_{part}"] = cells(
            [np.stack([*oscillator(t, 1), *oscillator(t, 3)]) for t in ts]
        )
        truth[part] = ts
    file = tmp_path / "cart.mat"
    scipy.io.savemat(file, variables)
    options = {"time": "Time_*", "q": ("a=Y_*:1", "b=Y_*:3"), "v": ("Y_*:2", "Y_*:4")}
    found = import_measured(file, test_trials="vad*", **options)
    train, test = found.parts["train"], found.parts["test"]
    assert (len(train), len(test), train.names) == (3, 1, ("a", "b"))
    assert train.ids == ("cart-id-1", "cart-id-2", "cart-id-3") and test.ids == ("cart-vad",)
    np.testing.assert_allclose(train.q[2, :50, 1], oscillator(truth["id"][2], 3)[0], rtol=1e-14)
    np.testing.assert_allclose(train.v[1, :, 0], oscillator(truth["id"][1], 1)[1], rtol=1e-14)
    parts = import_measured(file, test_trials="vad", validation_trials="id-3", **options).parts
    assert {part: len(data) for part, data in parts.items()} == {
        "train": 2, "validation": 1, "test": 1
    }  # fmt: skip
    assert parts["validation"].ids == ("cart-id-3",)
    # One variable, all of its rows, and the file's own dt instead of times.
    data = import_measured(file, q="Y_id").parts["all"]
    assert data.dim == 4 and data.time_step == pytest.approx(0.01)


def test_structs_of_a_mat_file(tmp_path):
    t = np.arange(50) * 0.1
    file = tmp_path / "s.mat"
    scipy.io.savemat(file, {"log": {"time": t, "arm": {"angle": np.sin(t)}}, "who": "me"})
    data = import_measured(file, time="log.time", q="log.arm.angle").parts["all"]
    np.testing.assert_allclose(data.q[0, :, 0], np.sin(t), atol=1e-15)


def test_markers_of_a_filmed_pendulum(tmp_path):
    data = dhn.simulate(
        "double_pendulum", trajectories=1, seed=0, params={"l2": 0.8}, time_step=0.03
    )
    theta = data.q[0]
    ends = np.cumsum(np.stack([np.sin(theta), np.cos(theta)], -1) * [[[600.0], [480.0]]][0], axis=1)
    points = 1000 + np.concatenate([np.zeros((len(theta), 1, 2)), ends], axis=1)
    columns = list(np.round(points).reshape(len(theta), 6).T)
    file = save(tmp_path / "film.csv", columns, fmt="%d", delimiter=",")
    options = {"rate": 1 / 0.03, "y_down": True}
    found = import_measured(file, markers=("1", "2", "3", "4", "5", "6"), **options)
    film = found.parts["all"]
    assert film.names == ("theta1", "theta2") and film.angles == (True, True)
    np.testing.assert_allclose(film.q[0], theta, atol=3e-3)
    assert film.params["link1_length"] == pytest.approx(600, rel=1e-3)
    assert film.units["theta1"] == "rad"
    assert film.momenta is None
    names = "pivot_x,pivot_y,joint_x,joint_y,x_tip,y_tip"
    named = save(tmp_path / "named.csv", columns, names, "%d", ",")
    other = import_measured(named, markers=("pivot", "joint", "tip"), **options).parts["all"]
    np.testing.assert_array_equal(other.q, film.q)


def test_markers_in_the_wrong_order_are_noticed(tmp_path):
    t = np.arange(100) * 0.05
    joint = np.stack([np.sin(t), -np.cos(t)])
    tip = joint + np.stack([np.sin(3 * t), -np.cos(3 * t)])
    columns = [0 * t, 0 * t, *joint, *tip]
    file = save(tmp_path / "a.txt", columns)
    right = import_measured(file, markers=tuple("123456"), rate=20)
    assert not right.report.notes
    np.testing.assert_allclose(np.diff(right.parts["all"].q[0, :, 1]), 0.15, atol=1e-8)
    wrong = import_measured(file, markers=tuple("125634"), rate=20)
    assert "link 1 changes its length" in wrong.report.notes[0]


def test_degrees_turns_and_zero(tmp_path):
    t = np.arange(400) * 0.02
    theta = 0.3 + 4 * t
    reading = (np.degrees(theta) + 180) % 360
    file = save(
        tmp_path / "a.csv",
        [1000 * t, reading, np.full(400, np.degrees(4.0))],
        "t [ms],angle (deg),rate (deg/s)",
        "%.9f",
        ",",
    )
    found = import_measured(file, q="angle", v="rate", zero=180, segment=100)
    data = found.parts["all"]
    assert data.angles == (True,) and data.units["angle"] == "rad"
    assert data.time_step == pytest.approx(0.02)
    assert not found.report.warnings
    np.testing.assert_allclose(data.v, 4.0, rtol=1e-8)
    np.testing.assert_allclose(np.diff(data.q[..., 0]), 0.08, atol=1e-8)
    assert (np.abs(data.q[:, 0]) <= np.pi).all()
    np.testing.assert_allclose(np.sin(data.q[..., 0]), np.sin(0.3 + 4 * data.times), atol=1e-8)
    wrapped = import_measured(file, q="angle", v="rate", wrapped=True).parts["all"]
    assert wrapped.q.max() <= 2 * np.pi


@pytest.mark.parametrize("codes, groups", [("own", 8), ("run", 2), ("all", 1)])
def test_segments_and_their_codes(tmp_path, codes, groups):
    files = []
    for k in range(2):
        t = np.arange(330) * 0.05
        files.append(save(tmp_path / f"run{k}.txt", [t, *oscillator(t, 1 + k)], "t q v", "%.15g"))
    found = import_measured(files, segment=128, hop=64, codes=codes)
    data = found.parts["all"]
    assert data.ids == tuple(f"run{k}/seg{j}" for k in range(2) for j in range(4))
    assert run_of("run1/seg3") == "run1" and run_of("run1") == "run1"
    assert len(set(code_rows(data))) == groups
    np.testing.assert_allclose(data.times[5], np.arange(64, 192) * 0.05)
    np.testing.assert_array_equal(data.q[5, :64], data.q[4, 64:])
    assert found.report.changes["states behind the last whole segment of a run, left out"] == 20
    # A subset and a file keep who shares with whom.
    file = tmp_path / "out.npz"
    dhn.write(data[[1, 6]], file)
    expected = {"own": [0, 1], "run": [0, 1], "all": [0, 0]}[codes]
    assert code_rows(dhn.read(file)).tolist() == expected


@pytest.mark.parametrize("ending", [".npz", ".csv"])
def test_files_of_version_0_2_keep_their_shared_codes(tmp_path, ending):
    """They have an entry "codes" in `meta` instead of `code_group`."""
    file, t = tmp_path / f"old{ending}", np.arange(4.0)
    ids = ("run0/seg0", "run0/seg1", "run1/seg0")
    q = np.arange(12.0).reshape(3, 4, 1)
    dhn.write(dhn.Trajectories(q=q, t=t, p=q, ids=ids, meta={"codes": "run", "seed": 1}), file)
    data = dhn.read(file)
    assert data.code_group == ("run0", "run0", "run1") and data.meta == {"seed": 1}


def test_parts_in_time_do_not_overlap_and_learn_nothing_from_each_other(tmp_path):
    rng = np.random.default_rng(0)
    t = np.arange(1000) * 0.02
    x = oscillator(t)[0] + 0.01 * rng.normal(size=1000)
    options = {"q": "x", "split": (0.7, 0.15, 0.15), "segment": 50, "hop": 25}
    found = import_measured(save(tmp_path / "a.txt", [t, x], "t x"), **options).parts
    ends = [(found[k].times.min(), found[k].times.max()) for k in ("train", "validation", "test")]
    assert ends[0][1] < ends[1][0] and ends[1][1] < ends[2][0]
    # Other numbers in the later parts: the training part stays the same to the last bit.
    x[710:] = rng.normal(size=290)
    other = import_measured(save(tmp_path / "b.txt", [t, x], "t x"), **options).parts
    for key in ("q", "v", "known", "noise"):
        np.testing.assert_array_equal(getattr(other["train"], key), getattr(found["train"], key))


def test_a_hole_may_begin_a_new_trial(tmp_path):
    t = np.concatenate([np.arange(100) * 0.1, 500 + np.arange(60) * 0.1])
    file = save(tmp_path / "a.txt", [t, *oscillator(t)], "t q v")
    data = import_measured(file, gap=5).parts["all"]
    assert list(data.lengths) == [100, 60] and data.known.sum() == 160


def test_dates_are_times(tmp_path):
    lines = [f"2024-03-01 12:00:{k // 10:02d}.{k % 10}00,{np.sin(k / 10)}" for k in range(100)]
    file = tmp_path / "a.csv"
    file.write_text("time,x\n" + "\n".join(lines))
    data = import_measured(file, q="x").parts["all"]
    assert data.time_step == pytest.approx(0.1) and data.states == 100


def test_a_mistaken_velocity_is_noticed(tmp_path):
    t = np.arange(300) * 0.02
    x, v = oscillator(t)
    for factor, word in ((180 / np.pi, "degrees against radians"), (-1.0, "sign"), (0.001, "ms")):
        file = save(tmp_path / "a.txt", [t, x, factor * v], "t q v", "%.12g")
        assert word in import_measured(file).report.warnings[0]
    file = save(tmp_path / "a.txt", [t, x, x], "t q v", "%.12g")
    assert "is it the right column" in import_measured(file).report.warnings[0]
