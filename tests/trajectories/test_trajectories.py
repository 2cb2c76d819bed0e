"""The container: what it accepts, how it is cut and joined, what it says of itself."""

import dataclasses

import numpy as np
import pytest

from dhn.errors import UserError
from dhn.trajectories import Trajectories
from dhn.trajectories.segments import code_rows


def example(n=4, T=6, d=2, **fields):
    q = np.arange(n * T * d, dtype=float).reshape(n, T, d)
    return Trajectories(q=q, t=0.25 * np.arange(T), **({"p": -q} | fields))


Q = np.zeros((2, 3, 2))
T = np.arange(3.0)
NAN = np.full((2, 3, 2), np.nan)
INF = np.where(np.arange(12).reshape(2, 3, 2) == 7, np.inf, 0.0)

INVALID = [
    (dict(q=np.zeros(3), t=T), "q must have shape (trajectories, states, coordinates)"),
    (dict(q=np.zeros((0, 3, 1)), t=T), "all at least 1; got (0, 3, 1)"),
    (dict(q=[[[1.0], [2.0]], [[1.0]]], t=T), "unequal length: use Trajectories.from_list"),
    (dict(q=Q.astype(str), t=T), "q must be an array of real numbers; got values of type <U"),
    (dict(q=Q + 1j, t=T), "q must be an array of real numbers; got values of type complex128"),
    (dict(q=Q, t=np.arange(4.0)), "t must have shape (3,), shared, or (2, 3)"),
    (dict(q=Q, t=[0, 1, 1]), "t = 1 occurs twice, the second time at state 2"),
    (dict(q=Q, t=[[0, 1, 2], [0, 2, 1]]), "goes back from 2 to 1 at state 2 of trajectory '1'"),
    (dict(q=Q, t=[0, np.nan, 2]), "the time of state 1 is missing"),
    (dict(q=Q, t=[[0, 1, 2], [0, 1, np.nan]]), "state 2 of trajectory '1' is missing, but the"),
    (dict(q=Q, t=[0, 1, np.inf]), "the time of state 2 is infinite"),
    (dict(q=Q, t=T, p=np.zeros((2, 3, 1))), "p must have the shape of q, (2, 3, 2)"),
    (dict(q=NAN, t=T), "q have no finite value at all"),
    (dict(q=INF, t=T), "q of q2 is infinite at state 0 of trajectory '1'"),
    (dict(q=Q, t=T, known=np.ones((2, 2))), "known must be true or false for each state"),
    (dict(q=Q, t=T, known=np.full((2, 3), 0.5)), "known must be true or false for each state"),
    (dict(q=NAN, t=T, known=np.eye(2, 3)), "state 0 of trajectory '0' is marked known but none"),
    (dict(q=Q, t=T, params={"l": np.ones(3)}), "parameter 'l' must have one value a trajectory"),
    (dict(q=Q, t=T, params={"l": [1, np.inf]}), "parameter 'l' is infinite"),
    (dict(q=Q, t=T, params={"t": 1.0}), "the parameter name 't' is also the name of a column"),
    (dict(q=Q, t=T, names=("a",)), "names must have 2 entries"),
    (dict(q=Q, t=T, names=("a", "a")), "'a' occurs more than once"),
    (dict(q=Q, t=T, names=("a", "p_a")), "the coordinate name 'p_a' is also the name of"),
    (dict(q=Q, t=T, names=("a", "b\n")), "printable characters without spaces around them"),
    (dict(q=Q, t=T, names="ab"), "names must be a sequence of names, not one text"),
    (dict(q=Q, t=T, angles=(True,)), "angles must have one flag a coordinate (2: q1, q2)"),
    (dict(q=Q, t=T, ids=("x", "x")), "ids must differ"),
    (dict(q=Q, t=T, code_group=("x",)), "code_group must have 2 entries"),
    (dict(q=Q, t=T, units={"theta": "rad"}), "units were given for 'theta', which is not in"),
    (dict(q=Q, t=T, noise=np.ones(2)), "noise must have shape (2, 2)"),
    (dict(q=Q, t=T, noise=np.ones((2, 3, 2))), "or (2, 3, 2, 2), one for each number; got (2, 3"),
    (dict(q=Q, t=T, noise=-np.ones((2, 2))), "standard deviations, zero or above"),
    (dict(q=Q, t=T, q_quantiles={5: Q}), "levels between 0 and 1; got 5"),
    (dict(q=Q, t=T, q_quantiles={0.5: Q[:1]}), "q_quantiles[0.5] must have the shape of q"),
    (dict(q=Q, t=T, p_quantiles={0.5: Q}), "p_quantiles were given without p or v"),
    (dict(q=Q, t=T, meta={"a": [1]}), "meta holds text, numbers and true/false"),
]


@pytest.mark.parametrize("fields, message", INVALID, ids=[m[:40] for _, m in INVALID])
def test_invalid_data_are_named(fields, message):
    with pytest.raises(UserError) as caught:
        Trajectories(**fields)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_defaults_are_filled_in():
    data = Trajectories(q=np.array([[[1.0], [np.nan]]]), t=[0, 1], params={"g": 9.81})
    assert data.names == ("q",) and data.ids == ("0",) and data.angles == (False,)
    assert data.known.tolist() == [[True, False]]
    assert data.params["g"].tolist() == [9.81]
    assert data.momenta is None and example().momenta is not None


def test_arrays_are_read_only_but_the_callers_are_not():
    q = np.zeros((1, 2, 1))
    data = Trajectories(q=q, t=[0, 1])
    with pytest.raises(ValueError, match="read-only"):
        data.q[0, 0, 0] = 1.0
    q[0, 0, 0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.q = q  # type: ignore[misc]


def test_a_diverged_forecast_may_be_infinite_where_it_is_not_known():
    q = np.array([[[0.0], [np.inf]]])
    data = Trajectories(q=q, t=[0, 1], known=[[True, False]])
    assert data.has_value.tolist() == [[True, False]]


def test_selection_keeps_all_axes():
    data = example(params={"l": np.arange(4.0)})
    assert data[3].q.shape == (1, 6, 2) and data[3].ids == ("3",)
    assert data[:, :3].t.tolist() == [0, 0.25, 0.5]
    assert data[1:, 2].q.shape == (3, 1, 2)
    assert data[[2, 0]].params["l"].tolist() == [2, 0]
    assert data[np.array([True, False, False, True])].ids == ("0", "3")
    assert data[:, np.arange(6) % 2 == 0].q.shape == (4, 3, 2)
    assert data["2"].equals(data[2]) and data[["2", "0"]].equals(data[[2, 0]])
    assert data[-1].equals(data[3])
    assert data[[1, 1]].ids == ("1", "1-2")
    assert [x.ids[0] for x in data] == list(data.ids) and len(data) == 4


@pytest.mark.parametrize(
    "key, message",
    [
        (7, "there are 4 trajectories; index 7 is out of range"),
        ((0, 9), "there are 6 states; index 9 is out of range"),
        (slice(4, None), "the selection contains no trajectories"),
        ([], "the selection contains no trajectories"),
        ((0, slice(None, None, -1)), "in the order of time"),
        ((0, [1, 1]), "in the order of time"),
        ([True, False], "a boolean mask over trajectories must have 4 entries; got 2"),
        ("x", "no trajectory with the id 'x'; ids run from '0' to '3'"),
        (1.5, "selected by an int, a slice"),
        ((0, 0, 0), "index with data[trajectories] or data[trajectories, states]"),
    ],
)
def test_wrong_selections_are_named(key, message):
    with pytest.raises(UserError) as caught:
        example()[key]
    assert message in str(caught.value)


def test_time_step_of_even_grids():
    assert example().time_step == 0.25 and example().is_uniform
    # One step for all, though the trajectories start at different times and end early.
    t = np.array([[0, 0.5, 1.0], [7, 7.5, np.nan]])
    q = np.zeros((2, 3, 1))
    q[1, 2] = np.nan
    assert Trajectories(q=q, t=t).time_step == 0.5
    # Seconds since 1970 cannot be spaced more evenly than float64 allows.
    late = Trajectories(q=np.zeros((1, 100, 1)), t=1.7e9 + 0.01 * np.arange(100))
    assert late.time_step == pytest.approx(0.01, rel=1e-6)


@pytest.mark.parametrize("t", [[0, 1, 2.00001], [[0, 1, 2], [0, 2, 4]]])
def test_uneven_grids_have_no_time_step(t):
    data = Trajectories(q=np.zeros((2, 3, 1)), t=t)
    assert not data.is_uniform
    with pytest.raises(UserError, match="not evenly spaced: steps range from"):
        _ = data.time_step


def test_a_single_state_has_no_time_step():
    with pytest.raises(UserError, match="a single state has no time step"):
        _ = example(T=1).time_step


def test_lengths_count_gaps_but_not_padding():
    q = np.zeros((3, 5, 2))
    q[0, 2] = q[1, 3:] = q[2] = np.nan
    data = Trajectories(q=q, t=np.arange(5))
    assert data.lengths.tolist() == [5, 3, 0]
    assert data.known.sum() == 7


def test_split_is_a_partition_and_repeatable():
    data = example(n=10)
    for parts, sizes in (
        (0.8, [8, 2]),
        ((0.5, 0.3, 0.2), [5, 3, 2]),
        (7, [7, 3]),
        ((1, 9), [1, 9]),
    ):
        split = data.split(parts, seed=3)
        assert [len(x) for x in split] == sizes
        ids = [i for x in split for i in x.ids]
        assert sorted(ids) == sorted(data.ids)
        assert all(a.equals(b) for a, b in zip(split, data.split(parts, seed=3), strict=True))
    assert data.split(0.5, seed=0)[0].ids != data.split(0.5, seed=1)[0].ids


@pytest.mark.parametrize(
    "parts, message",
    [
        (0.0, "must be positive numbers"),
        (0.99, "leaves a part with 0 trajectories"),
        (1.5, "leaves a part with"),
        ((0.5, 0.4), "fractions of a split must add up to 1"),
        ((5, 4), "must add up to the 10 trajectories; [5, 4] make 9"),
        (10, "leaves a part with 0 trajectories"),
        ((), "must be positive numbers"),
    ],
)
def test_wrong_splits_are_named(parts, message):
    with pytest.raises(UserError) as caught:
        example(n=10).split(parts, seed=0)
    assert message in str(caught.value)


def test_concatenate_pads_and_keeps_ids_apart():
    a, b = example(meta={"seed": 1, "g": 2}), example(n=2, T=4, meta={"seed": 2, "g": 2})
    both = Trajectories.concatenate([a, b])
    assert both.q.shape == (6, 6, 2) and both.ids == tuple("012345")
    assert both.t.ndim == 1 and both.lengths.tolist() == [6] * 4 + [4] * 2
    assert both.meta == {"g": 2}
    assert not both.known[4:, 4:].any()
    later = example(n=1, T=4).replace(t=5 + np.arange(4.0), ids=("x",))
    mixed = Trajectories.concatenate([later, later, a])
    assert mixed.t.shape == (6, 6) and mixed.ids[:3] == ("x", "x-2", "0")
    assert np.isnan(mixed.t[0, 4:]).all()


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(names=("a", "b")), "names differ"),
        (dict(params={"l": 1.0}), "params differ, [] and ['l']"),
        (dict(p=None), "only some parts have p"),
        (dict(units={"t": "ms"}), "the unit of 't' is 's' and 'ms'"),
    ],
)
def test_concatenate_names_what_does_not_fit(change, message):
    a = example(units={"t": "s"})
    with pytest.raises(UserError) as caught:
        Trajectories.concatenate([a, a.replace(**change)])
    assert message in str(caught.value)


def test_noise_of_each_number_is_cut_and_joined_with_its_numbers():
    noise = np.random.default_rng(0).uniform(1, 2, (4, 6, 2, 2))
    data = example(noise=noise)
    np.testing.assert_array_equal(data[[2, 0], 1:4].noise, noise[[2, 0], 1:4])
    np.testing.assert_allclose(data.typical_noise, np.sqrt(np.mean(noise**2, axis=(0, 1))))
    shared = example(n=1, T=4, noise=np.array([[0.1, 0.2], [0.3, np.nan]]))
    both = Trajectories.concatenate([data, shared, example(n=1)])
    np.testing.assert_array_equal(both.noise[:4], noise)
    np.testing.assert_array_equal(both.noise[4, 3], shared.noise)
    assert np.isnan(both.noise[4, 4:]).all() and np.isnan(both.noise[5]).all()
    assert Trajectories.concatenate([shared, shared]).noise.shape == (2, 2)
    assert data.fingerprint() != example(noise=noise[0, 0]).fingerprint()


def test_trajectories_of_one_group_share_a_code_however_they_are_cut_and_joined():
    assert code_rows(example()).tolist() == [0, 1, 2, 3]
    data = example(code_group=("a", "b", "a", "c"))
    assert code_rows(data).tolist() == [0, 1, 0, 2]
    assert code_rows(data[[3, 2, 0]]).tolist() == [0, 1, 1]
    both = Trajectories.concatenate([data, example(n=2), data[:1]])
    assert both.code_group == ("a", "b", "a", "c", "4", "5", "a")
    # What shares a code decides training; notes in `meta` do not.
    assert data.fingerprint() != example().fingerprint()
    assert code_rows(example(meta={"codes": "all"})).tolist() == [0, 1, 2, 3]


def test_from_list_pads_unequal_trajectories():
    q = [np.ones((3, 2)), np.ones((5, 2))]
    shared = Trajectories.from_list(q, np.arange(9.0), p=q, ids=("a", "b"))
    assert shared.t.tolist() == [0, 1, 2, 3, 4] and shared.lengths.tolist() == [3, 5]
    own = Trajectories.from_list([np.ones(2), np.ones(3)], [[0, 1], [0, 2, 4]])
    assert own.t.shape == (2, 3) and own.dim == 1 and np.isnan(own.t[0, 2])
    for arguments, message in (
        (([np.ones((3, 2)), np.ones((3, 1))], T), "q[1] has 1 coordinates but q[0] has 2"),
        ((q, [0.0, 1.0]), "t has 2 times but the longest trajectory has 5 states"),
        ((q, [T, T]), "t[1] must have shape (5,) to fit q[1]"),
        ((q, T, q[:1]), "t has 3 times but the longest"),
        ((q, np.arange(5.0), q[:1]), "p must have 2 trajectories like q; got 1"),
        (([], T), "needs at least one trajectory"),
    ):
        with pytest.raises(UserError) as caught:
            Trajectories.from_list(*arguments)
        assert message in str(caught.value)


def test_resample_takes_every_kth_state():
    data = example(T=7).resample(every=3)
    assert data.t.tolist() == [0, 0.75, 1.5] and data.time_step == 0.75
    np.testing.assert_array_equal(data.q, example(T=7).q[:, ::3])
    for every in (0, 7, 1.5):
        with pytest.raises(UserError, match="every must be a whole number from 1 to 6"):
            example(T=7).resample(every=every)  # type: ignore[arg-type]


def test_fingerprint_sees_data_but_not_where_they_came_from():
    data = example()
    assert data.fingerprint() == data.replace(meta={"seed": 1}).fingerprint()
    q = data.q.copy()
    q[0, 0, 0] = np.nextafter(q[0, 0, 0], 1)
    others = [
        data.replace(q=q),
        data.replace(ids=tuple("abcd")),
        data.replace(angles=(True, False)),
    ]
    others += [data.replace(v=data.p, p=None), data[:, :5], data.replace(params={"l": 1.0})]
    assert len({x.fingerprint() for x in [data, *others]}) == 7
    assert not any(x.equals(data) for x in others)


def test_summary_tells_counts_gaps_ranges_and_noise():
    q = np.zeros((3, 5, 1))
    q[:, :, 0] = np.linspace(-1, 1, 5)
    q[0, 2] = q[1, 3:] = np.nan
    data = Trajectories(
        q=q,
        t=0.1 * np.arange(5),
        p=2 * q,
        names=("theta",),
        angles=(True,),
        system="pendulum",
        units={"theta": "rad", "t": "s"},
        params={"l": [1.0, 2, 3]},
        noise=[[0.1], [0.2]],
        meta={"seed": 7},
    )
    assert data.summary() == str(data)
    for line in (
        "3 trajectories of pendulum, 5 states, q, p of theta",
        "time       0 to 0.4 s, even step 0.1",
        "lengths    3 to 5 states (mean 4.3)",
        "states     12 of 13 known, 1 missing in gaps (1 trajectory)",
        "theta      angle, -1 to 1 rad",
        "p_theta    -2 to 2",
        "param l    1 to 3",
        "noise      std theta 0.1, p_theta 0.2",
        "meta seed  7",
    ):
        assert line in data.summary()
    assert repr(data) == "Trajectories(3 trajectories of pendulum, 5 states, q, p of theta)"
    uneven = data.replace(t=np.arange(5.0) ** 2, known=np.zeros((3, 5)))
    assert "uneven steps 1 to 7" in str(uneven) and "12 with a value but not known" in str(uneven)
