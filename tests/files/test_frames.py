"""pandas, xarray, dicts and paths: one door, nothing lost, one line for what does not fit."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import dhn
from dhn.errors import UserError
from dhn.files import as_trajectories


@pytest.fixture(scope="module")
def data():
    """Gaps, a lost angle, noise, units, parameters, uneven lengths."""
    found = dhn.simulate("double_pendulum", trajectories=3, seed=0, steps=12)
    q, p = np.array(found.q), np.array(found.p)
    q[0, 4], p[0, 4], q[1, 5, 0], q[2, 9:], p[2, 9:] = np.nan, np.nan, np.nan, np.nan, np.nan
    return found.replace(
        q=q, p=p, known=np.isfinite(q).any(-1), noise=np.full((2, 2), 0.1), meta={},
        units={"theta1": "rad", "theta2": "deg", "t": "s", "l2": "m"},
        q_quantiles={0.05: q - 1, 0.95: q + 1},
    )  # fmt: skip


def same(a, b):
    """All fields but `meta`, which says where the data came from."""
    assert a.replace(meta={}).equals(b.replace(meta={})), (a, b)


def test_a_frame_comes_back_as_it_went(data):
    same(as_trajectories(data.to_dataframe()), data)


def test_a_dataset_comes_back_as_it_went(data):
    found = data.to_xarray()
    assert found["q"].dims == ("trajectory", "time", "coordinate")
    assert found["q"].attrs["units"] == ["rad", "deg"]
    assert found["time"].attrs["units"] == "s"
    same(as_trajectories(found), data)
    same(as_trajectories(found.transpose()), data)


def test_times_of_each_trajectory_come_back(data):
    own = data.replace(t=data.times + np.arange(3.0)[:, None])
    same(as_trajectories(own.to_dataframe()), own)
    same(as_trajectories(own.to_xarray()), own)


def test_noise_of_each_number_comes_back(data):
    noise = np.random.default_rng(0).uniform(size=(3, data.states, 2, 2))
    varied = data.replace(noise=noise)
    assert "noise_p_theta1" in varied.to_dataframe()
    same(as_trajectories(varied.to_dataframe()), varied)
    same(as_trajectories(varied.to_xarray()), varied)
    same(as_trajectories(varied.to_xarray().transpose()), varied)


def test_groups_that_share_a_code_come_back(data):
    grouped = data.replace(code_group=("a", "b", "a"))
    frame = grouped.to_dataframe()
    same(as_trajectories(frame), grouped)
    same(as_trajectories(grouped.to_xarray()), grouped)
    last = as_trajectories(frame[frame.trajectory != "0"])
    assert last.code_group == ("b", "a")


def test_paths_dicts_and_lists(data, tmp_path):
    dhn.write(data, tmp_path / "data.npz")
    same(as_trajectories(tmp_path / "data.npz"), data)
    same(as_trajectories(str(tmp_path / "data.npz")), data)
    same(as_trajectories([data[0], data[1], data[2]]), data)
    found = as_trajectories({"t": data.t, "q": data.q, "p": data.p, "m": [1.0, 2.0, 3.0]})
    np.testing.assert_array_equal(found.q, data.q)
    np.testing.assert_array_equal(found.known, data.known)
    assert list(found.params["m"]) == [1.0, 2.0, 3.0]


def frame():
    return pd.DataFrame(
        {
            "run": ["a", "a", "b", "b", "b"],
            "when": [0.0, 0.1, 0.0, 0.1, 0.2],
            "angle": [1.0, np.nan, 3.0, 4.0, 5.0],
            "omega": [0.1, 0.2, 0.3, 0.4, 0.5],
            "length": [2.0, 2.0, 3.0, 3.0, 3.0],
        }
    )


NAMED = {"trajectory": "run", "time": "when", "q": ["angle"], "v": ["omega"], "params": ["length"]}


def test_columns_by_name():
    found = dhn.from_dataframe(frame(), **NAMED, angles=(True,))
    assert found.ids == ("a", "b") and found.names == ("angle",) and found.angles == (True,)
    np.testing.assert_array_equal(found.q[..., 0], [[1.0, np.nan, np.nan], [3.0, 4.0, 5.0]])
    assert found.known.tolist() == [[True, True, False], [True, True, True]]  # omega was measured
    assert list(found.params["length"]) == [2.0, 3.0]
    assert found.v is not None and found.p is None


def test_index_levels_nullable_numbers_and_dates_are_understood():
    plain = dhn.from_dataframe(frame(), **NAMED)
    levels = frame().convert_dtypes().set_index(["run", "when"])
    same(dhn.from_dataframe(levels, **NAMED), plain)
    dated = frame()
    dated["when"] = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(dated["when"], unit="s")
    np.testing.assert_allclose(dhn.from_dataframe(dated, **NAMED).t, plain.t, atol=1e-9)


def test_columns_may_be_dropped_from_a_frame_of_ours(data):
    less = data.to_dataframe().drop(columns=["p_theta1", "p_theta2", "l2", "known"])
    found = as_trajectories(less)
    assert found.p is None and "l2" not in found.params and found.names == data.names
    np.testing.assert_array_equal(found.q, data.q)


def test_a_dataset_of_others():
    times = np.arange(4) * 0.5
    found = dhn.from_xarray(
        xr.Dataset(
            {"x": ("time", times**2, {"units": "m"}), "y": ("time", times)}, {"time": times}
        ),
        q=["x", "y"],
    )
    assert found.names == ("x", "y") and found.q.shape == (1, 4, 2) and found.units == {"x": "m"}
    np.testing.assert_array_equal(found.q[0, :, 0], times**2)


BAD = {
    "a number": (lambda: as_trajectories(3), r"got int\. Arrays need names"),
    "an array": (lambda: as_trajectories(np.zeros(3)), r"got ndarray\. Arrays need names"),
    "a list": (lambda: as_trajectories([1, 2]), "got list"),
    "no times": (lambda: as_trajectories({"q": np.zeros((1, 3, 1))}), "it has no times"),
    "text": (lambda: as_trajectories({"t": [0, 1], "q": ["a", "b"]}), "q must be an array of real"),
    "unequal": (
        lambda: as_trajectories({"t": [0.0, 1.0], "q": [[1.0], [1.0, 2.0]]}),
        "unequal length: use Trajectories.from_list",
    ),
    "no file": (lambda: as_trajectories("nowhere.npz"), "there is no file nowhere.npz"),
    "no column": (
        lambda: dhn.from_dataframe(frame(), time="when", q="angel"),
        r"no column 'angel' \(did you mean 'angle'\?\)",
    ),
    "nothing recognised": (lambda: as_trajectories(frame()[["when"]]), "no column is recognised"),
    "two roles": (
        lambda: dhn.from_dataframe(frame(), time="when", q="angle", v="angle"),
        "'angle' is named twice",
    ),
    "no coordinates": (lambda: dhn.from_dataframe(frame(), v="omega"), "name the coordinates"),
    "not constant": (
        lambda: dhn.from_dataframe(frame(), **(NAMED | {"params": "omega", "v": ()})),
        "row 2, column 'omega': 0.2 after 0.1",
    ),
    "no field": (lambda: dhn.from_dataframe(frame(), **NAMED, angels=1), "'angels' is not a field"),
    "no variable": (lambda: dhn.from_xarray(xr.Dataset()), "has no variable 'q'; it has: none"),
    "dimensions": (
        lambda: dhn.from_xarray(xr.Dataset({"q": ("x", [1.0])})),
        r"has the dimensions \(x\); expected time",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_does_not_fit_gets_one_line(case):
    act, message = BAD[case]
    with pytest.raises(UserError, match=message) as caught:
        act()
    assert "\n" not in str(caught.value)


def test_a_missing_package_is_named(data, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "xarray", None)
    with pytest.raises(UserError, match=r'xarray is not installed: pip install "dhn\[xarray\]"'):
        data.to_xarray()
