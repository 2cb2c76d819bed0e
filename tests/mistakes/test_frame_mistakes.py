"""Mistakes in DataFrames and Datasets: a `UserError` of one line before any work."""

import numpy as np
import pytest
from small_world import pendulums

import dhn

pytestmark = pytest.mark.usefixtures("as_users_have_it")
pandas = pytest.importorskip("pandas")
xarray = pytest.importorskip("xarray")


def plain(**columns):
    return pandas.DataFrame({"t": [0.0, 1.0, 2.0], "q": [1.0, 2.0, 3.0]} | columns)


def kept(**changes):
    """A frame of `to_dataframe` with other contents of `attrs`."""
    frame = pendulums().to_dataframe()
    frame.attrs["dhn"] = {**frame.attrs["dhn"], **changes}
    return frame


def lost():
    frame = plain()
    frame.attrs["dhn"] = {"a": 1}
    return frame


FRAMES = [
    (lambda: plain()[:0], {}, "no rows of data"),
    (plain, {"q": 3}, "q must be a sequence"),
    (plain, {"q": [3]}, "q must be one text or several"),
    (plain, {"time": 3}, "t must be a sequence"),
    (plain, {"time": "nope"}, "nope"),
    (plain, {"q": "nope"}, "there is no column 'nope'"),
    (plain, {"q": "q", "params": "nope"}, "there is no column 'nope'"),
    (plain, {"q": ["q", "q"]}, "the column 'q' is named twice"),
    (plain, {"p": "q"}, "name the coordinates, too"),
    (plain, {"zz": 1}, "'zz' is not a field of Trajectories"),
    (plain, {"angles": 3}, "angles must be a sequence"),
    (plain, {"angles": (True, False)}, "angles"),
    (plain, {"known": 3}, "known"),
    (lambda: plain(q=["a", "b", "c"]), {}, "'a' is not a number"),
    (lambda: plain(q=1j), {}, "is not a number"),
    (lambda: plain(q=np.inf), {}, "infinite"),
    (lambda: plain(t=[0.0, 0.0, 1.0]), {}, "occurs twice"),
    (lambda: plain(t=[1.0, 0.0, 2.0]), {}, "goes back"),
    (lambda: plain(t=["a", "b", "c"]), {}, "'a' is not a number"),
    (lambda: pandas.DataFrame(np.ones((4, 2)), columns=["q", "q"]), {}, "the same name"),
    (lambda: pandas.DataFrame(np.ones((4, 2))), {}, "no column is recognised as a coordinate"),
    (lambda: pendulums().to_dataframe().drop(columns="theta"), {}, "no such column"),
    (lambda: pendulums().to_dataframe().assign(known="maybe"), {}, "is not 1, 0, true or false"),
    (lost, {}, "is not what to_dataframe keeps there"),
    (lambda: kept(names=5), {}, "is not what to_dataframe keeps there"),
    (lambda: kept(names=[1, 2]), {}, "is not what to_dataframe keeps there"),
    (lambda: kept(units=3), {}, "is not what to_dataframe keeps there"),
    (lambda: kept(code_group=[1]), {}, "is not what to_dataframe keeps there"),
    (lambda: kept(q_levels=["a"]), {}, "is not what to_dataframe keeps there"),
    (lambda: kept(noise="x"), {}, "noise must be an array of real numbers"),
]
STATES = ("trajectory", "time", "coordinate")


def states(values=(1.0, 2.0, 3.0), time=(0.0, 1.0, 2.0), **others):
    return xarray.Dataset({"q": ("time", list(values)), **others}, {"time": list(time)})


def whole(**variables):
    return pendulums().to_xarray().assign(**variables)


DATASETS = [
    (xarray.Dataset, {}, "the Dataset has no variable 'q'; it has: none"),
    (states, {"q": 3}, "q must be a sequence"),
    (states, {"q": []}, "name the variables of the coordinates"),
    (states, {"q": None}, "q must be a sequence"),
    (states, {"q": ["q", 3]}, "q must be one text or several"),
    (states, {"v": 3}, "v must be a sequence"),
    (states, {"p": "nope"}, "the Dataset has no variable 'nope'"),
    (states, {"zz": 1}, "'zz' is not a field of Trajectories"),
    (lambda: states(("a", "b", "c")), {}, "q must be an array of real numbers"),
    (lambda: states((1j, 2, 3)), {}, "q must be an array of real numbers"),
    (lambda: states((np.inf, 2, 3)), {}, "infinite"),
    (lambda: states(time=("a", "b", "c")), {}, "t must be an array of real numbers"),
    (lambda: states(time=(2.0, 1.0, 0.0)), {}, "goes back"),
    (lambda: states().drop_vars("time"), {}, "the Dataset has no times"),
    (lambda: xarray.Dataset({"q": ("x", [1.0])}), {}, "the variable 'q' has the dimensions (x)"),
    (lambda: states(a=(STATES[:2], np.ones((2, 3)))), {"q": ["q", "a"]}, "other numbers of traj"),
    (lambda: whole(known=(STATES[:2], np.full((8, 41), "x"))), {}, "known must be an array of rea"),
    (lambda: whole(known=(STATES[:2], np.full((8, 41), np.nan))), {}, "known"),
    (lambda: whole(params=("time", np.ones(41))), {}, "expected trajectory, parameter"),
    (lambda: whole(q_quantiles=("time", np.ones(41))), {}, "expected q_level, trajectory"),
    (lambda: whole(q_noise=("time", np.ones(41)), p_noise=("time", np.ones(41))), {},
     "expected coordinate"),
    (lambda: pendulums().to_xarray().assign_coords(angle=("coordinate", ["x"])), {},
     "angle must be an array of real numbers"),
    (lambda: pendulums().to_xarray().assign_coords(trajectory=["a"] * 8), {}, "a"),
]  # fmt: skip


def check(read, make, options, message):
    with pytest.raises(dhn.UserError) as caught:
        read(make(), **options)
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("make, options, message", FRAMES, ids=range(len(FRAMES)))
def test_frames(make, options, message):
    check(dhn.from_dataframe, make, options, message)


@pytest.mark.parametrize("make, options, message", DATASETS, ids=range(len(DATASETS)))
def test_datasets(make, options, message):
    check(dhn.from_xarray, make, options, message)


def test_units_that_are_no_text_are_shown_as_text():
    dataset = pendulums().to_xarray()
    dataset["q"].attrs["units"] = 5
    assert dhn.from_xarray(dataset).units["theta"] == "5"
