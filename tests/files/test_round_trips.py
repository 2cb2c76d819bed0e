"""Whatever the container accepts comes back from every kind of file, bit for bit."""

import os

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis.extra import numpy as hnp

from dhn.errors import UserError
from dhn.files import FORMATS, read, write
from dhn.trajectories import Trajectories

# Beartype picks the items of a container that it checks with `random`.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module")

LABEL = st.one_of(
    st.sampled_from(["theta1", "θ", "x,y", 'say "x"', "#1", "007", "1e5", "q", "a b", "nan", "p"]),
    st.sampled_from(["=1+1", "+x", "@a", "-cmd", "-5", "'=x", "''+y", "'a", "="]),
    st.text(min_size=1, max_size=6).filter(lambda x: x.isprintable() and x == x.strip()),
)
# Control characters are taken out when a file is read.
TEXT = st.text(
    st.characters(exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp"), include_characters="\n\t"),
    max_size=8,
)
LEVEL = st.one_of(st.sampled_from([0.05, 0.5, 0.95, 0.025]), st.floats(1e-12, 1, exclude_max=True))
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
DTYPE = st.sampled_from([np.float64, np.float32, np.int16])


@st.composite
def arrays(draw, shape, gaps, elements=NUMBER):
    dtype = draw(DTYPE)
    if dtype is np.int16:
        array = draw(hnp.arrays(dtype, shape))
    else:
        width = 64 if dtype is np.float64 else 32
        array = draw(
            hnp.arrays(
                dtype, shape, elements=st.floats(width=width, allow_nan=False, allow_infinity=False)
            )
        )
    return np.where(gaps[..., None], np.nan, array) if gaps.any() else array


@st.composite
def times(draw, n, T):
    """Shared or own; own times may end early, even before they begin."""
    rows = [
        np.sort(draw(st.lists(st.floats(-1e6, 1e6), min_size=T, max_size=T, unique=True)))
        for _ in range(1 if draw(st.booleans()) else n)
    ]
    if len(rows) == 1:
        return rows[0] if n > 1 or draw(st.booleans()) else rows[0][None]
    for row in rows:
        row[draw(st.integers(0, T)) :] = np.nan
    return np.stack(rows)


@st.composite
def trajectories(draw):
    n, T, d = (draw(st.integers(1, k)) for k in (3, 5, 3))
    t = draw(times(n, T))
    untimed = np.broadcast_to(np.isnan(t), (n, T))
    gaps = draw(hnp.arrays(bool, (n, T))) | untimed
    known = draw(hnp.arrays(bool, (n, T))) & ~gaps
    parts = {k: draw(arrays((n, T, d), gaps)) for k in ("p", "v") if draw(st.booleans())}
    levels = st.lists(LEVEL, max_size=2, unique=True)
    quantiles = {"q_quantiles": {x: draw(arrays((n, T, d), gaps)) for x in draw(levels)}}
    if parts:
        quantiles["p_quantiles"] = {x: draw(arrays((n, T, d), untimed)) for x in draw(levels)}
    names = tuple(draw(st.lists(LABEL, min_size=d, max_size=d, unique=True)))
    params = draw(st.lists(LABEL, max_size=2, unique=True))
    value = st.one_of(NUMBER, st.just(np.nan))
    deviation = st.floats(0, 1e300) | st.just(np.nan)
    shape = draw(st.sampled_from([(2, d), (n, T, 2, d)]))
    noise = hnp.arrays(float, shape, elements=deviation)
    unit_keys = st.sampled_from(["t", *names, f"p_{names[0]}", *params])
    meta = st.one_of(TEXT, st.integers(-(2**60), 2**60), NUMBER, st.booleans())
    try:
        return Trajectories(
            q=draw(arrays((n, T, d), gaps)),
            t=t,
            known=known,
            params={k: draw(hnp.arrays(float, n, elements=value)) for k in params},
            names=names,
            angles=draw(st.tuples(*[st.booleans()] * d)),
            units=draw(st.dictionaries(unit_keys, TEXT, max_size=3)),
            ids=tuple(draw(st.lists(LABEL, min_size=n, max_size=n, unique=True))),
            code_group=draw(st.just(()) | st.tuples(*[LABEL] * n)),
            system=draw(st.none() | TEXT),
            noise=draw(st.none() | noise),
            meta=draw(st.dictionaries(TEXT, meta, max_size=3)),
            **parts,
            **quantiles,
        )
    except UserError as error:
        assert "is also the name of" in str(error)  # the only thing this may draw wrongly
        reject()


@pytest.mark.parametrize("ending", [x for x in FORMATS if x != ".hdf5"])
@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(data=trajectories())
def test_every_format_returns_what_it_was_given(tmp_path_factory, ending, data):
    path = tmp_path_factory.getbasetemp() / f"round_trip{ending}"
    write(data, path)
    again = read(path)
    assert data.equals(again)
    assert data.fingerprint() == again.fingerprint()


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(data=trajectories(), choice=st.data())
def test_selection_agrees_with_numpy(data, choice):
    n, T, _ = data.q.shape
    rows = np.array(choice.draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=4)))
    states = choice.draw(hnp.arrays(bool, T))
    states[choice.draw(st.integers(0, T - 1))] = True
    part = data[rows, states]
    np.testing.assert_array_equal(part.q, data.q[rows][:, states])
    np.testing.assert_array_equal(part.times, data.times[rows][:, states])
    np.testing.assert_array_equal(part.known, data.known[rows][:, states])
    for name, values in data.params.items():
        np.testing.assert_array_equal(part.params[name], values[rows])
    assert len(set(part.ids)) == len(rows)
    assert data[:].equals(data)


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(data=trajectories())
def test_single_trajectories_concatenate_to_the_whole(data):
    joined = Trajectories.concatenate(list(data))
    np.testing.assert_array_equal(joined.q, data.q)
    np.testing.assert_array_equal(joined.known, data.known)
    # Padding may have got the times of the longest trajectory; no state with a value moved.
    timed = np.isfinite(data.times)
    np.testing.assert_array_equal(joined.times[timed], data.times[timed])
    assert joined.ids == data.ids and joined.units == data.units


@pytest.mark.parametrize("ending", [".npz", ".csv", ".h5"])
def test_the_same_data_make_the_same_bytes(tmp_path, ending):
    data = Trajectories(np.arange(12.0).reshape(2, 3, 2), np.arange(3.0))
    contents = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}{ending}"
        write(data, path)
        contents.append(path.read_bytes())
        os.utime(path, (0, 0))
    assert contents[0] == contents[1]
