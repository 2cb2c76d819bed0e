"""Files that somebody else made: by name, or with a word about what is what."""

import numpy as np
import pytest
import scipy.io

from dhn.errors import UserError
from dhn.files import read, write
from dhn.files.foreign import import_measured
from dhn.trajectories import Trajectories


def table(tmp_path, content, columns=None, **fields):
    path = tmp_path / "table.csv"
    path.write_text(content)
    return read(path, columns, **fields)


def test_names_tell_coordinates_momenta_and_parameters(tmp_path):
    data = table(tmp_path, "trajectory,t,theta,p_theta,length\na,0,1,2,5\na,1,3,4,5\nb,0,5,6,7\n")
    assert data.names == ("theta",) and data.ids == ("a", "b")
    assert data.q[0, :, 0].tolist() == [1, 3] and data.p[1, 0, 0] == 6
    assert data.params["length"].tolist() == [5, 7]
    assert data.t.tolist() == [0, 1] and data.lengths.tolist() == [2, 1]


def test_q1_p1_and_semicolons(tmp_path):
    data = table(tmp_path, "t;q1;q2;p1;p2\r\n0;1;2;3;4\r\n\r\n1;5;;7;8\r\n")
    assert data.names == ("q1", "q2") and data.p[0, 0].tolist() == [3, 4]
    assert data.known.all() and data.complete.tolist() == [[True, False]]


def test_a_mapping_names_foreign_columns_and_leaves_out_the_rest(tmp_path):
    content = "run,time,angle,omega,temperature,len\n7,0,1,2,20,3\n7,1,2,3,21,3\n9,5,1,2,22,4\n"
    columns = {"run": "trajectory", "time": "t", "angle": "q:theta", "omega": "v", "len": "param:l"}
    data = table(tmp_path, content, columns, angles=(True,), system="pendulum")
    assert data.names == ("theta",) and data.ids == ("7", "9") and data.angles == (True,)
    assert data.v[0, :, 0].tolist() == [2, 3] and data.p is None
    assert data.params["l"].tolist() == [3, 4] and data.system == "pendulum"
    assert data.t.shape == (2, 2)


def test_noise_columns_belong_to_their_numbers(tmp_path):
    content = "t,theta,v_theta,noise_theta,l\n0,1,2,0.1,3\n1,2,3,,3\n"
    data = table(tmp_path, content)
    np.testing.assert_array_equal(data.noise[0, :, 0, 0], [0.1, np.nan])
    assert np.isnan(data.noise[:, :, 1]).all() and list(data.params) == ["l"]
    columns = {"t": "t", "theta": "q:a", "v_theta": "v", "l": "noise:v_a"}
    assert table(tmp_path, content, columns).noise[0, :, 1, 0].tolist() == [3, 3]
    with pytest.raises(UserError, match="'l' is the noise of 'b', which is not there"):
        table(tmp_path, content, columns | {"l": "noise:b"})


def test_velocities_pair_by_order_or_by_name(tmp_path):
    content = "t,a,b,wb,wa\n0,1,2,20,10\n"
    by_order = {"a": "q", "b": "q", "wa": "v", "wb": "v"}
    by_name = {"wb": "v:b", "wa": "v:a", "a": "q", "b": "q"}
    for columns in (by_order, by_name):
        assert table(tmp_path, content, columns).v[0, 0].tolist() == [10, 20]


def test_rows_of_trajectories_may_alternate(tmp_path):
    data = table(tmp_path, "trajectory,t,q\nb,0,1\na,0,2\nb,1,3\na,1,4\n")
    assert data.ids == ("b", "a") and data.q[..., 0].tolist() == [[1, 3], [2, 4]]


def test_a_column_can_be_left_out(tmp_path):
    content = "t,q,p,note\n0,1,2,good\n1,2,3,bad\n"
    with pytest.raises(UserError, match="line 2, column 'note': 'good' is not a number"):
        table(tmp_path, content)
    assert not table(tmp_path, content, {"note": None}).params


def test_quantile_columns_are_recognised(tmp_path):
    data = table(tmp_path, "t,x,v_x,x_q05,x_q95,v_x_q50\n0,1,2,0.5,1.5,2\n")
    assert list(data.q_quantiles) == [0.05, 0.95] and list(data.p_quantiles) == [0.5]
    assert data.q_quantiles[0.95][0, 0, 0] == 1.5


def test_unequal_runs_on_one_grid_share_their_times(tmp_path):
    data = table(tmp_path, "trajectory,t,q\na,0,1\na,1,2\na,2,3\nb,0,4\n")
    assert data.t.tolist() == [0, 1, 2] and data.lengths.tolist() == [3, 1]


def test_a_byte_order_mark_does_not_hide_the_first_column(tmp_path):
    path = tmp_path / "excel.csv"
    path.write_bytes(b"\xef\xbb\xbft,q\r\n0,1\r\n")
    assert read(path).names == ("q",)


def test_our_csv_stays_readable_as_a_plain_table(tmp_path):
    q = np.random.default_rng(0).normal(size=(2, 3, 2))
    data = Trajectories(q=q, t=[0, 0.1, 0.3], p=q + 1, params={"l": [1, 2]}, names=("x", "y"))
    path = tmp_path / "ours.csv"
    write(data, path)
    lines = path.read_text().splitlines(keepends=True)
    assert lines[0].startswith("# dhn {")
    assert lines[1] == "trajectory,t,x,y,p_x,p_y,known,l\n"
    path.write_text("".join(lines[1:]))
    assert read(path).equals(data)


@pytest.mark.parametrize(
    "q, t, shape",
    [
        (np.zeros((4, 5, 2)), np.arange(5.0), (4, 5, 2)),
        (np.zeros((5, 2)), np.arange(5.0), (1, 5, 2)),
        (np.zeros((4, 5)), np.arange(5.0), (4, 5, 1)),
        (np.zeros(5), np.arange(5.0), (1, 5, 1)),
        (np.zeros((5, 5)), np.tile(np.arange(5.0), (5, 1)), (5, 5, 1)),
        (np.zeros((4, 5), np.float32), np.arange(5), (4, 5, 1)),
    ],
)
@pytest.mark.parametrize("ending", [".npz", ".mat", ".h5"])
def test_plain_arrays_of_any_customary_shape(tmp_path, ending, q, t, shape):
    path = tmp_path / f"plain{ending}"
    arrays = {"q": q, "p": q + 1, "t": t, "g": 9.81}
    if ending == ".npz":
        np.savez(path, **arrays)
    elif ending == ".mat":
        scipy.io.savemat(path, arrays)
    else:
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file[name] = array
    if ending == ".mat" and q.ndim == 1:
        q = q[None]  # MATLAB has no vectors: a row means one trajectory of one coordinate
    data = read(path)
    assert data.q.shape == shape and (data.p == 1).all()
    assert data.params["g"].tolist() == [9.81] * shape[0]


def test_variables_can_be_mapped_one_a_coordinate(tmp_path):
    path = tmp_path / "plain.mat"
    time = np.arange(5.0)
    arrays = {"Time": time[:, None], "x": time, "y": 2 * time, "dx": time + 1, "dy": time + 2}
    scipy.io.savemat(path, arrays | {"comment": "measured on a Tuesday"})
    columns = {"Time": "t", "x": "q", "y": "q:height", "dx": "v:x", "dy": "v:height"}
    data = read(path, columns)
    assert data.names == ("x", "height") and data.q[0, 2].tolist() == [2, 4]
    assert data.v[0, 0].tolist() == [1, 2]


def test_a_mapping_overrides_what_our_own_file_says(tmp_path):
    q = np.ones((1, 2, 1))
    path = tmp_path / "ours.csv"
    write(Trajectories(q=q, t=[0, 1], p=q, names=("x",), params={"l": [3.0]}), path)
    data = read(path, {"x": "q:y"})
    assert data.names == ("y",) and data.p is None and not data.params


def matlab73(path):
    """As MATLAB writes it: axes reversed, cells as references, structs as groups."""
    h5py = pytest.importorskip("h5py")
    time, y = np.arange(30.0)[None], np.stack([np.sin(np.arange(30)), np.cos(np.arange(30))])
    with h5py.File(path, "w", userblock_size=512) as file:
        refs = file.create_group("#refs#")

        def put(group, name, value, kind=b"double"):
            group[name] = value.T
            group[name].attrs["MATLAB_class"] = kind

        put(file, "t", time)
        put(file, "q", y[:1])
        put(file, "note", np.array([[104, 105]], np.uint16), b"char")
        put(file, "none", np.zeros((1, 2), np.uint64))
        file["none"].attrs["MATLAB_empty"] = 1
        put(file.create_group("log"), "Y", y)
        file["log"].attrs["MATLAB_class"] = b"struct"
        for k in range(2):
            put(refs, f"t{k}", time[:, : 30 - k])
            put(refs, f"y{k}", k + y[:, : 30 - k])
        for name in ("t", "y"):
            cells = np.array([[refs[f"{name}{k}"].ref] for k in range(2)], dtype=h5py.ref_dtype)
            file.create_dataset(f"{name}_id", data=cells, dtype=h5py.ref_dtype)
            file[f"{name}_id"].attrs["MATLAB_class"] = b"cell"
    content = bytearray(path.read_bytes())
    content[:128] = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    path.write_bytes(content)
    return y


def test_matlab_73_files_are_read_and_imported(tmp_path):
    path = tmp_path / "new.mat"
    y = matlab73(path)
    data = read(path, {"q": "q", "t": "t"})
    np.testing.assert_array_equal(data.q[0, :, 0], y[0])
    struct = import_measured(path, time="t", q="log.Y").parts["all"]
    np.testing.assert_array_equal(struct.q[0], y.T)
    cells = import_measured(path, time="t_id", q="y_id:2").parts["all"]
    assert list(cells.lengths) == [30, 29]
    np.testing.assert_array_equal(cells.q[1, :29, 0], 1 + y[1, :29])
