"""Damaged and hostile files: one line from `read` and from `import`, no crash, nothing followed."""

import io
import struct
import zipfile
import zlib

import h5py
import netCDF4
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import scipy.io

from dhn.errors import UserError
from dhn.files import read, write
from dhn.files.foreign import import_measured
from dhn.trajectories import Trajectories

T = np.arange(20) * 0.1


def bytes_of(content):
    return lambda path: path.write_bytes(content)


def npy(shape, data=b"", dtype="<f8"):
    """An array file whose header may promise more than there is."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    return file.getvalue() + data


def npz(compression=zipfile.ZIP_STORED, **members):
    def make(path):
        with zipfile.ZipFile(path, "w", compression) as archive:
            for name, content in members.items():
                archive.writestr(f"{name}.npy", content)

    return make


def hdf5(change):
    def make(path):
        with h5py.File(path, "w") as file:
            file["t"] = T
            change(file, path)

    return make


def _external_storage(file, path):
    T.tofile(path.with_name("secret.bin"))
    external = [(str(path.with_name("secret.bin")), 0, T.nbytes)]
    file.create_dataset("q", shape=T.shape, dtype="f8", external=external)


def _external_link(file, path):
    with h5py.File(path.with_name("other.h5"), "w") as other:
        other["x"] = T
    file["q"] = h5py.ExternalLink(str(path.with_name("other.h5")), "/x")


def _soft_link_outside(file, path):
    _external_link(file, path)
    file["a"] = h5py.SoftLink("/q")


def _virtual(file, path):
    _external_link(file, path)
    del file["q"]
    layout = h5py.VirtualLayout(T.shape, "f8")
    layout[:] = h5py.VirtualSource(str(path.with_name("other.h5")), "x", shape=T.shape)
    file.create_virtual_dataset("q", layout)


def _huge(file, path):
    file.create_dataset("q", shape=(10**7,), dtype="f8", chunks=(100,), compression="gzip")


def parquet(rows):
    def make(path):
        same = pyarrow.DictionaryArray.from_arrays(np.zeros(rows, np.int8), np.array([1.0]))
        table = pyarrow.table({"t": same, "q": same})
        pyarrow.parquet.write_table(table, path, store_schema=False)

    return make


def mat(variables, change=lambda x: x, compress=False):
    def make(path):
        scipy.io.savemat(path, variables, do_compression=compress)
        path.write_bytes(change(path.read_bytes()))

    return make


def dims(old, new):
    """Other dimensions in the tag of a variable."""

    def change(content):
        old_bytes, new_bytes = (struct.pack("<IIii", 5, 8, *x) for x in (old, new))
        assert old_bytes in content
        return content.replace(old_bytes, new_bytes, 1)

    return change


def bomb(content):
    """A compressed variable that unpacks to far more than its tag declares."""
    body = struct.pack("<II", 14, 80) + bytes(50 * 10**6)
    packed = zlib.compress(body)
    return content[:128] + struct.pack("<II", 15, len(packed)) + packed


def big_tag(content):
    packed = zlib.compress(struct.pack("<II", 14, 2**31) + bytes(80))
    return content[:128] + struct.pack("<II", 15, len(packed)) + packed


def nested_cells(levels):
    value = np.array([1.0])
    for _ in range(levels):
        outer = np.empty((1, 1), object)
        outer[0, 0] = value
        value = outer
    return value


ONES = npy((20,), T.tobytes())
STRUCT = {"t": T, "s": {"a": T}, "c": np.array([T, T[:3]], object), "w": "text"}
# name, ending, how to make it, what the message must hold
CASES = [
    ("zip bomb", ".npz", npz(zipfile.ZIP_DEFLATED, t=ONES, q=npy((10**6,), bytes(8 * 10**6))),
     "its arrays would need about 8 MB of memory, and 1 MB are free"),
    ("24 GB in a header", ".npz", npz(t=ONES, q=npy((3 * 10**9,), T.tobytes())),
     "array 'q' declares 24000000000 bytes but holds 160"),
    ("negative shape", ".npz", npz(t=ONES, q=npy((-20,), T.tobytes())), "declares -160 bytes"),
    ("overflowing shape", ".npz", npz(t=ONES, q=npy((2**40, 2**40), b"")), "but holds 0"),
    ("objects", ".npz", npz(t=ONES, q=npy((1,), bytes(8), "|O")), "holds Python objects"),
    ("no array inside", ".npz", npz(t=b"x"), "cannot be read as NumPy .npz"),
    ("archive of other files", ".npz", lambda p: zipfile.ZipFile(p, "w").writestr("a.txt", "x"),
     "an archive without arrays"),
    ("deep header", ".npz", npz(t=b"\x93NUMPY\x01\0" + struct.pack("<H", 6000) + b"(" * 6000),
     "cannot be read as NumPy .npz"),
    ("text as npz", ".npz", bytes_of(b"hello"), "cannot be read as NumPy .npz"),
    ("text as parquet", ".parquet", bytes_of(b"hello"), "cannot be read as Parquet"),
    ("text as netcdf", ".nc", bytes_of(b"hello"), "cannot be read as NetCDF"),
    ("text as hdf5", ".h5", bytes_of(b"hello"), "cannot be read as HDF5"),
    ("text as mat", ".mat", bytes_of(b"hello" * 99), "cannot be read as MATLAB .mat"),
    ("npz called mat", ".mat", npz(t=ONES), "its contents look like NumPy .npz, not MATLAB .mat"),
    ("rows without bytes", ".parquet", parquet(10**6), "its columns would need about 16 MB"),
    ("external storage", ".h5", hdf5(_external_storage), "'q' keeps its numbers in another file"),
    ("external link", ".h5", hdf5(_external_link), "'q' is a link to another file"),
    ("soft link to outside", ".h5", hdf5(_soft_link_outside), "'q' is a link to another file"),
    ("virtual dataset", ".h5", hdf5(_virtual), "'q' keeps its numbers in another file"),
    ("external storage", ".nc", hdf5(_external_storage), "'q' keeps its numbers in another file"),
    ("external link", ".nc", hdf5(_external_link), "'q' is a link to another file"),
    ("virtual dataset", ".nc", hdf5(_virtual), "'q' keeps its numbers in another file"),
    ("declared size", ".h5", hdf5(_huge), "its datasets would need about 80 MB"),
    ("declared size", ".nc", hdf5(_huge), "its datasets would need about 80 MB"),
    ("huge cell", ".mat", mat(STRUCT, dims((1, 2), (1 << 15, 1 << 15))), "cell or struct of"),
    ("huge struct", ".mat", mat({"s": {"a": T}}, dims((1, 1), (1 << 30, 1))), "of 1073741824"),
    ("struct without fields", ".mat",
     mat({"s": {}}, dims((1, 1), (1 << 30, 1))), "struct array of 1073741824"),
    ("long text", ".mat", mat({"w": "text"}, dims((1, 4), (1, 1 << 30))), "with [4] values"),
    ("long numbers", ".mat", mat({"t": T}, dims((1, 20), (20, 20))), "with [20] values"),
    ("wide sparse", ".mat",
     mat({"s": scipy.sparse.eye(3).tocsc()}, dims((3, 3), (3, 1 << 30))), "with [4] values"),
    ("deep cells", ".mat", mat({"c": nested_cells(60)}), "nested more than 50 levels"),
    ("bomb", ".mat", mat({"t": T}, bomb), "does not have the size that its tag declares"),
    ("declared size", ".mat", mat({"t": T}, big_tag), "its variables would need about 2.15 GB"),
    ("matlab 4", ".mat", lambda p: scipy.io.savemat(p, {"t": T}, format="4"), "a MATLAB 4 file"),
    ("matlab 7.3 without contents", ".mat",
     bytes_of(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(512)),
     "cannot be read as MATLAB .mat"),
    ("deep JSON", ".csv", bytes_of(b"# dhn " + b'{"a":' * 10**4 + b"\nt,q\n0,1\n"),
     "its field 'dhn' (names, ids"),
    ("large text", ".csv", bytes_of(b"t,q\n" + b"0,1\n" * 10**5), "its cells would need"),
]  # fmt: skip


@pytest.mark.parametrize("entry", [read, lambda x: import_measured(x, time="t", q="q")])
@pytest.mark.parametrize("name, ending, make, message", CASES, ids=[f"{c[0]}{c[1]}" for c in CASES])
def test_one_line_and_no_work(tmp_path, little_memory, entry, name, ending, make, message):
    path = tmp_path / f"file{ending}"
    make(path)
    with pytest.raises(UserError) as caught:
        entry(path)
    said = str(caught.value)
    assert message in said and said.startswith(str(path)) and said.count(str(path)) == 1
    assert "\n" not in said and len(said) < 400


@pytest.mark.parametrize(
    "content",
    ["t,q\n0,1\n1,2\n".encode("utf-16")[:-1], b"\xff\xfe\x00\xd8\x00\xd8", b"\xfe\xff\xd8"],
)
def test_odd_utf16_is_one_line(tmp_path, content):
    path = tmp_path / "file.txt"
    path.write_bytes(content)
    with pytest.raises(UserError, match="UTF-16 text that is cut off or damaged"):
        import_measured(path, time="t", q="q")


@pytest.mark.parametrize("ending", [".npz", ".mat", ".h5", ".parquet", ".nc"])
def test_import_of_a_file_cut_anywhere_is_refused(tmp_path, ending):
    path = tmp_path / f"file{ending}"
    q = np.arange(40.0).reshape(2, 20, 1)
    write(Trajectories(q=q, t=T, v=q), path)
    whole = path.read_bytes()
    for length in np.linspace(1, len(whole) - 1, 12).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(UserError) as caught:
            import_measured(path)
        assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:overflow encountered")  # damaged numbers may be 1e300
@pytest.mark.parametrize("compressed", [False, True])
def test_random_damage_of_nested_mat_files_is_refused_or_harmless(tmp_path, compressed):
    path = tmp_path / "file.mat"
    mat(STRUCT, compress=compressed)(path)
    whole, rng = path.read_bytes(), np.random.default_rng(1)
    for _ in range(150):
        k, size = int(rng.integers(128, len(whole))), int(rng.integers(1, 12))
        path.write_bytes((whole[:k] + rng.bytes(size) + whole[k + size :])[: len(whole)])
        try:
            import_measured(path, time="t", q="s.a")
        except UserError as error:
            assert "\n" not in str(error)


def columns_of(**arrays):
    return lambda path: pyarrow.parquet.write_table(pyarrow.table(arrays), path)


def text(content):
    return lambda path: path.write_text(content)


def rows(form):
    return text("t,q\n" + "".join(form.format(k) + "\n" for k in range(12)))


def netcdf(path):
    with netCDF4.Dataset(str(path), "w") as file:
        file.createDimension("n", None)
        for name in "tq":
            file.createVariable(name, "f8", ("n",))


def odd_hdf5(file, path):
    file.create_dataset("v", (3,), dtype=h5py.vlen_dtype("f8"))
    file["empty"], file["compound"] = h5py.Empty("f8"), np.zeros(3, [("a", "f8")])
    file["nowhere"] = h5py.SoftLink("/none")


def savez(**arrays):
    return lambda path: np.savez(path, **arrays)


STAMPS = pyarrow.array([0, 1], pyarrow.timestamp("s"))
ODD = {
    "long cell.csv": text("t,q\n" + "1" * 200_000 + ",2\n"),
    "empty header.csv": text("# dhn null\nt,q\n0,1\n"),
    "infinite layout.csv": text('# dhn {"layout":1e999}\nt,q\n0,1\n'),
    "old Mac.csv": text("t,q\r0,1\r1,2\r"),
    "no dates.csv": text("t,q\n" + "NaT,1\n" * 9),
    "1e300.csv": rows("{0},1e3{0:02}"),
    "times of 1e308.csv": rows("{0}e307,{0}"),
    "times of 5e-324.csv": rows("{0}e-323,{0}"),
    "infinite.csv": rows("{0},inf"),
    "never moves.csv": rows("{0},1"),
    "superscripts.csv": rows("{0},²"),
    "integers of 400 digits.csv": rows("1" + "0" * 400 + "{0},1"),
    "scalars.npz": savez(t=1.0, q=2.0),
    "nothing.npz": savez(t=np.empty(0), q=np.empty((0, 1))),
    "text.npz": savez(t=np.array(["a", "b"]), q=T),
    "dates.npz": savez(t=T.astype("datetime64[s]"), q=T),
    "compound.npz": savez(t=T, q=np.zeros(20, [("a", "f8")])),
    "five axes.npz": savez(t=T, q=np.zeros((1, 1, 20, 1, 1))),
    "header is text.npz": savez(dhn=np.array("x"), q=T, t=T),
    "header is NaN.npz": savez(dhn=np.array([np.nan]), q=T, t=T),
    "no rows.parquet": columns_of(t=np.empty(0), q=np.empty(0)),
    "no columns.parquet": columns_of(),
    "lists.parquet": columns_of(t=[0.0, 1.0], q=[[1.0], [2.0]]),
    "dates.parquet": columns_of(t=STAMPS, q=[1.0, 2.0]),
    "nulls.parquet": columns_of(t=[0.0, 1.0], q=pyarrow.nulls(2)),
    "bytes.parquet": columns_of(t=[0.0, 1.0], q=pyarrow.array([b"\xff", b"2"])),
    "no records.nc": netcdf,
    "odd kinds.h5": hdf5(odd_hdf5),
}
ENTRIES = {
    "read": read,
    "import": import_measured,
    "columns": lambda x: import_measured(x, time="t", q="q"),
    "own times": lambda x: import_measured(x, time="1", q="2"),
    "markers": lambda x: import_measured(x, rate=1, markers=("1", "2"), pivot="fit"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ODD)
def test_odd_files_are_read_or_one_line(tmp_path, name):
    path = tmp_path / name
    ODD[name](path)
    refused = 0
    for entry in ENTRIES.values():
        try:
            entry(path)
        except UserError as error:
            assert str(error).isprintable() and len(str(error)) < 400
            refused += 1
    assert refused >= 1
