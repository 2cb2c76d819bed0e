"""Every damaged or mislabelled file gets one line that names the place and the way out."""

import builtins
import json
import os
import zipfile

import numpy as np
import pytest
import scipy.io

from dhn.errors import UserError
from dhn.files import read, write
from dhn.trajectories import Trajectories

GOOD = "trajectory,t,q,p,length\na,0,1,2,1\na,1,2,3,1\nb,0,1,2,3\nb,1,2,3,3\n"


def text(content):
    return lambda path: path.write_text(content)


def edit(old, new):
    assert old in GOOD
    return text(GOOD.replace(old, new, 1))


def npz(**arrays):
    return lambda path: np.savez(path, **arrays)


def mat(**arrays):
    return lambda path: scipy.io.savemat(path, arrays)


def own(change=lambda content: content):
    """One of our own files, with its bytes changed."""

    def make(path):
        q = np.arange(24.0).reshape(2, 6, 2)
        write(Trajectories(q=q, t=np.arange(6.0), p=q, params={"l": [1.0, 2.0]}), path)
        path.write_bytes(change(path.read_bytes()))

    return make


def without(name):
    """One of our own .npz files with an array taken out."""

    def make(path):
        own()(path)
        arrays = dict(np.load(path))
        del arrays[name]
        np.savez(path, **arrays)

    return make


def header(**changes):
    """One of our own .npz files with other entries in its header."""

    def make(path):
        own()(path)
        arrays = dict(np.load(path))
        values = json.loads(arrays["dhn"].tobytes()) | changes
        arrays["dhn"] = np.frombuffer(json.dumps(values).encode(), np.uint8)
        np.savez(path, **arrays)

    return make


def cut(content):
    return content[: len(content) // 2]


def flip(content):
    """One wrong bit in the middle, which the checksum must notice."""
    k = len(content) // 3
    return content[:k] + bytes([content[k] ^ 1]) + content[k + 1 :]


def cut_rows(content):
    return b"\n".join(content.split(b"\n")[:6]) + b"\n"


def parquet(**columns):
    def make(path):
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), path)

    return make


def hdf5(**arrays):
    def make(path):
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file[name] = array

    return make


Q, T = np.zeros((2, 3, 1)), np.arange(3.0)
COLUMNS = {"theta": "q", "omega": "v"}

# name, ending, how to make it, columns, what the message must say
CASES = [
    # Not a file, or not that kind of file
    ("missing file", ".csv", lambda path: None, None, "there is no file"),
    ("folder", ".csv", lambda path: path.mkdir(), None, "is a folder; give the name of a file"),
    ("unknown ending", ".xlsx", text("x"), None, "the ending '.xlsx' is not one of .npz, .csv"),
    ("no ending", "", text("x"), None, "the ending '' is not one of .npz, .csv"),
    ("zero bytes", ".npz", text(""), None, "is empty (0 bytes); write or download it again"),
    ("text as npz", ".npz", text("hello"), None, "cannot be read as NumPy .npz"),
    ("text as mat", ".mat", text("hello" * 99), None, "cannot be read as MATLAB .mat"),
    ("text as hdf5", ".h5", text("hello"), None, "cannot be read as HDF5"),
    ("text as parquet", ".parquet", text("hello"), None, "cannot be read as Parquet"),
    ("text as netcdf", ".nc", text("hello"), None, "cannot be read as NetCDF"),
    ("npz called csv", ".csv", lambda p: os.rename(_npz(p), p), None,
     "its contents look like NumPy .npz, not CSV; rename it to end in .npz"),
    ("bare array", ".npz", lambda p: _bare(p), None, "one bare array, not an .npz archive"),
    # Damaged, truncated
    ("truncated npz", ".npz", own(cut), None, "cannot be read as NumPy .npz"),
    ("flipped bit npz", ".npz", own(flip), None, "Bad CRC-32 for file"),
    ("truncated mat", ".mat", own(cut), None, "it is damaged or not what its ending says"),
    ("truncated hdf5", ".h5", own(cut), None, "it is damaged or not what its ending says"),
    ("truncated parquet", ".parquet", own(cut), None, "it is damaged or not what its ending says"),
    ("truncated netcdf", ".nc", own(cut), None, "it is damaged or not what its ending says"),
    ("truncated in a row", ".csv", own(cut), None,
     "its last, is incomplete; it was cut off"),
    ("truncated at a row", ".csv", own(cut_rows), None,
     "it has 4 rows of data but was written with 12"),
    ("changed number", ".mat", own(lambda x: x.replace(np.float64(7).tobytes(), b"\0" * 8)), None,
     "its contents are not what was written; it is damaged"),
    ("changed digit", ".csv", own(lambda x: x.replace(b",12.0,13.0,", b",12.5,13.0,", 1)), None,
     "its numbers are not those that were written; mend it, or delete the header"),
    ("own array missing", ".npz", without("p"), None, "its array 'p' is missing"),
    ("own shape wrong", ".npz", header(shape=[2, 5, 2]), None,
     "its array 'q' should have shape (2, 5, 2) but has (2, 6, 2)"),
    ("header damaged", ".npz", header(layout="?"), None, "its field 'dhn' (names, ids"),
    ("header entry gone", ".npz", header(names=None), None, "its field 'dhn' (names, ids, units"),
    ("newer layout", ".npz", header(layout=99), None, "written by a newer dhn (layout 99"),
    ("own column renamed", ".csv", own(lambda x: x.replace(b"p_q1", b"p_x")), None,
     "its column 'p_q1' is missing"),
    ("own id renamed", ".csv", own(lambda x: x.replace(b"\n1,0.0", b"\nx,0.0")), None,
     "its trajectory 'x' does not fit its header"),
    ("own times differ", ".csv", own(lambda x: x.replace(b"\n1,5.0", b"\n1,6.0")), None,
     "line 14: t differs from the times of the first trajectory"),
    # Empty
    ("only comments", ".csv", text("# one\n\n# two\n"), None, "it is empty; expected column names"),
    ("only names", ".csv", text("t,q,p\n"), None, "no rows of data below the column names"),
    # Names
    ("no names", ".csv", text("0,1,2\n1,2,3\n"), None,
     "line 1 holds numbers where the column names should be"),
    ("nameless column", ".csv", edit("length", ""), None, "line 1: column 5 has no name"),
    ("duplicate name", ".csv", edit("length", "q"), None, "line 1: two columns are called 'q'"),
    ("no times", ".csv", edit(",t,", ",time,"), None, "no column of times: call it 't'"),
    ("no coordinates", ".csv", text("t,theta,omega\n0,1,2\n"), None,
     "no column is recognised as a coordinate; map them"),
    ("momentum missing", ".csv", text("t,x,p_x,q\n0,1,2,3\n"), None,
     "every coordinate (x, q) needs its momentum column or none; missing: p_q"),
    ("mapped name missing", ".csv", text("t,Theta,omega\n0,1,2\n"), COLUMNS,
     "there is no column 'theta' (did you mean 'Theta'?); it has t, Theta, omega"),
    ("unknown role", ".csv", edit("length", "size"), {"size": "radius"},
     "columns maps 'size' to 'radius'; a role is 't', 'trajectory'"),
    ("two times", ".csv", edit("length", "time"), {"t": "t", "time": "t"},
     "columns names two of them 't'"),
    ("too few velocities", ".csv", text("t,a,b,w\n0,1,2,3\n"), {"a": "q", "b": "q", "w": "v"},
     "needs its velocity column or none; 1 given for 2 coordinates"),
    ("quantile missing", ".csv", text("t,a,b,v_a,v_b,a_q05\n0,1,2,3,4,5\n"), None,
     "the quantile column 'b_q05' is missing"),
    ("reserved parameter", ".csv", edit("length", "v_q"), {"v_q": "param", "q": "q", "p": "p"},
     "the parameter name 'v_q' is also the name of a column"),
    # Cells
    ("text in a number", ".csv", edit("b,0,1,2", "b,0,one,2"), None,
     "line 4, column 'q': 'one' is not a number; correct it or leave the cell empty"),
    ("decimal comma", ".csv", text("t;q;p\n0;1,5;2\n"), None,
     "line 2, column 'q': '1,5' is not a number; correct it with a decimal point"),
    ("underscore", ".csv", edit("b,0,1,2", "b,0,1_0,2"), None, "line 4, column 'q': '1_0' is not"),
    ("short row", ".csv", edit("b,0,1,2,3", "b,0,1,2"), None,
     "line 4 has 4 cells but there are 5 columns; complete the line or remove it"),
    ("long row", ".csv", edit("b,0,1,2,3", "b,0,1,2,3,4"), None,
     "line 4 has 6 cells but there are 5 columns"),
    ("open quote", ".csv", edit("b,0,1,2,3", 'b,0,1,2,"3'), None, "mend the quotes"),
    ("no label", ".csv", edit("b,0,1,2,3", ",0,1,2,3"), None,
     "line 4, column 'trajectory': the label is empty"),
    ("known maybe", ".csv", text("t,q,known\n0,1,maybe\n"), None,
     "line 2, column 'known': 'maybe' is not 1, 0, true or false"),
    ("infinite", ".csv", edit("b,0,1,2", "b,0,inf,2"), None,
     "q of q is infinite at state 0 of trajectory 'b'; write NaN"),
    ("latin-1", ".csv", lambda p: p.write_bytes("t,q,é\n0,1,2\n".encode("latin-1")), None,
     "it is not text in UTF-8"),
    ("utf-16", ".csv", lambda p: p.write_bytes(GOOD.encode("utf-16")), None, "not text in UTF-8"),
    ("binary", ".csv", lambda p: p.write_bytes(b"t,q\n0,\0\n"), None, "it holds binary data"),
    # Times
    ("duplicate time", ".csv", edit("b,1,", "b,0,"), None,
     "t = 0 occurs twice, the second time at line 5; times must strictly increase"),
    ("time goes back", ".csv", edit("b,1,", "b,-1,"), None,
     "t goes back from 0 to -1 at line 5; times must strictly increase: sort the rows by time."),
    ("runs not told apart", ".csv", text("t,q\n0,1\n1,2\n0,1\n1,2\n"), None,
     "at line 4; times must strictly increase: sort the rows by time, or add a column"),
    ("time missing", ".csv", edit("b,0,", "b,,"), None, "the time of line 4 is missing"),
    ("time infinite", ".csv", edit("b,1,", "b,inf,"), None, "the time of line 5 is infinite"),
    # Values
    ("all missing", ".csv", text("t,q,p\n0,,\n1,nan,NA\n"), None, "have no finite value at all"),
    ("parameter changes", ".csv", edit("a,1,2,3,1", "a,1,2,3,1.5"), None,
     "line 3, column 'length': 1.5 after 1 in trajectory 'a'; a parameter is constant"),
    ("known but missing", ".csv", text("t,q,known\n0,1,1\n1,,1\n"), None,
     "state 1 of trajectory '0' is marked known but none of its numbers is finite"),
    ("parquet text", ".parquet", parquet(t=[0.0, 1.0], q=["1", "x"]), None,
     "row 2, column 'q': 'x' is not a number"),
    ("parquet null time", ".parquet", parquet(t=[0.0, None], q=[1.0, 2.0]), None,
     "the time of row 2 is missing"),
    # Arrays
    ("object array", ".npz", npz(q=np.array([None, 1], object), t=T), None,
     "its array 'q' holds Python objects, which are never loaded"),
    ("no t", ".npz", npz(q=Q, p=Q), None, "it has no times: name a variable 't'"),
    ("no q", ".npz", npz(x=Q, t=T), None, "no variable is recognised as a coordinate"),
    ("q does not fit t", ".npz", npz(q=np.zeros((2, 4, 1)), t=T), None,
     "'q' has shape (2, 4, 1), which does not fit 3 times"),
    ("p does not fit q", ".npz", npz(q=Q, p=np.zeros((2, 3, 2)), t=T), None,
     "p must have the shape of q, (2, 3, 1); got (2, 3, 2)"),
    ("square", ".npz", npz(q=np.zeros((3, 3)), t=T), None,
     "'q' has shape (3, 3), which may mean trajectories or coordinates"),
    ("stray array", ".npz", npz(q=Q, t=T, image=np.zeros((5, 5))), None,
     "the variable 'image' of shape (5, 5) is neither q, p, v, t, known nor a parameter with 2"),
    ("different widths", ".npz", npz(a=np.zeros((2, 3)), b=np.zeros((2, 3, 2)), t=T),
     "several coordinates were named, so each must be a (3,) or (n, 3) array; 'b' has shape"),
    ("text array", ".npz", npz(q=np.full((2, 3, 1), "x"), t=T), None,
     "q must be an array of real numbers; got values of type <U1"),
    ("complex array", ".npz", npz(q=Q + 1j, t=T), None,
     "q must be an array of real numbers; got values of type complex128"),
    ("matlab cell", ".mat", mat(q=np.array([T, T], object), t=T), None,
     "its variable 'q' is a cell, struct or text; store a plain numeric array"),
    ("matlab text", ".mat", mat(note="hello"), None, "it has no numeric variables"),
    ("hdf5 duplicate time", ".h5", hdf5(q=Q, t=np.array([0.0, 1, 1])), None,
     "t = 1 occurs twice, the second time at state 2"),
]  # fmt: skip


def _npz(path):
    np.savez(path.with_suffix(".npz"), q=Q, t=T)
    return path.with_suffix(".npz")


def _bare(path):
    with open(path, "wb") as file:
        np.save(file, Q)


CASES = [c if len(c) == 5 else (*c[:3], {"a": "q", "b": "q"}, c[3]) for c in CASES]


@pytest.mark.parametrize("name, ending, make, columns, message", CASES, ids=[c[0] for c in CASES])
def test_one_line_names_the_place(tmp_path, name, ending, make, columns, message):
    path = tmp_path / f"file{ending}"
    make(path)
    with pytest.raises(UserError) as caught:
        read(path, columns)
    said = str(caught.value)
    assert message in said
    assert "\n" not in said and len(said) < 400
    assert str(path) in said


def test_there_are_enough_cases_and_the_good_file_is_good(tmp_path):
    assert len(CASES) >= 25
    text(GOOD)(tmp_path / "good.csv")
    data = read(tmp_path / "good.csv")
    assert data.q.shape == (2, 2, 1) and data.params["length"].tolist() == [1, 3]


def test_an_unreadable_file_is_named(tmp_path, monkeypatch):
    path = tmp_path / "file.csv"
    text(GOOD)(path)

    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(builtins, "open", denied)
    with pytest.raises(UserError, match="Permission denied"):
        read(path)


def test_unknown_options_are_named(tmp_path):
    path = tmp_path / "file.csv"
    text(GOOD)(path)
    with pytest.raises(UserError, match="read does not know the option 'colour'"):
        read(path, colour=1)


@pytest.mark.parametrize(
    "ending, module, extra",
    [(".h5", "h5py", "hdf5"), (".parquet", "pyarrow", "parquet"),
     (".nc", "netCDF4", "netcdf")],
)  # fmt: skip
def test_a_missing_extra_is_named(tmp_path, monkeypatch, ending, module, extra):
    import sys

    for name in [x for x in sys.modules if x.startswith("dhn.files.formats.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    path = tmp_path / f"file{ending}"
    data = Trajectories(q=Q, t=T)
    with pytest.raises(UserError) as caught:
        write(data, path)
    assert f'pip install "dhn[{extra}]" ({module} is missing)' in str(caught.value)
    path.write_text("x")
    with pytest.raises(UserError, match="need an extra"):
        read(path)


@pytest.mark.parametrize("ending", [".npz", ".csv", ".mat", ".h5", ".parquet", ".nc"])
def test_a_file_cut_anywhere_is_refused(tmp_path, ending):
    path = tmp_path / f"file{ending}"
    own()(path)
    whole = path.read_bytes()
    for length in np.linspace(1, len(whole) - 1, 25).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(UserError):
            read(path)


@pytest.mark.parametrize("compressed", [False, True])
def test_random_damage_of_mat_files_never_crashes_nor_passes(tmp_path, compressed):
    """SciPy alone crashes the interpreter on some of these."""
    path = tmp_path / "file.mat"
    own()(path)
    data = read(path)
    scipy.io.savemat(path, {k: x for k, x in scipy.io.loadmat(path).items() if k[0] != "_"},
                     do_compression=compressed)  # fmt: skip
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    assert read(path).equals(data)
    for _ in range(200):
        k, size = int(rng.integers(128, len(whole))), int(rng.integers(1, 20))
        path.write_bytes((whole[:k] + rng.bytes(size) + whole[k + size :])[: len(whole)])
        try:
            assert read(path).equals(data)  # only padding was hit
        except UserError as error:
            assert "\n" not in str(error)


def test_a_damaged_zip_directory_is_named(tmp_path):
    path = tmp_path / "file.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("q.npy", b"not an array")
    with pytest.raises(UserError) as caught:
        read(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)
