"""Data that is good, and data that is wrong in one way each."""

import io
import warnings
import zipfile
from pathlib import Path

import numpy as np

import dhn
from dhn.trajectories.container import Trajectories


def pendulums() -> Trajectories:
    """Eight pendulums with 41 states, closed form for small angles."""
    rng = np.random.default_rng(0)
    length = rng.uniform(0.5, 1.0, (8, 1))
    frequency, phase = np.sqrt(0.981 / length), rng.uniform(0, 6, (8, 1))
    t = 0.1 * np.arange(41)
    q, p = np.cos(frequency * t + phase), -frequency * np.sin(frequency * t + phase)
    params = {"l": length[:, 0], "g": np.full(8, 0.981)}
    return Trajectories(
        q=q[..., None], p=p[..., None], t=t, names=("theta",), angles=(True,), params=params
    )


def oscillator_runs() -> Trajectories:
    """Positions of a damped oscillator, as an instrument gives them."""
    t = 0.05 * np.arange(160)
    noise = 1e-3 * np.random.default_rng(0).normal(size=160)
    return Trajectories(q=(0.5 * np.exp(-0.02 * t) * np.cos(3 * t) + noise)[None, :, None], t=t)


def write_data(folder: Path) -> None:
    """Every file that the tables name."""
    good = pendulums()
    few = good[:2]
    nothing = np.full_like(few.q, np.nan)
    half = np.where(np.arange(2)[:, None, None] == 0, np.nan, few.q)
    two = np.concatenate([few.q, few.p], axis=-1)
    uneven = np.sort(np.random.default_rng(0).uniform(0, 3, 41))
    made = {
        "d": good,
        "pos": oscillator_runs(),
        "short": few[:, :4],
        "one": good[:1, :1],
        "nan": few.replace(q=nothing, p=nothing, known=np.zeros((2, 41), bool)),
        "half": few.replace(q=half, p=half, known=np.isfinite(half[..., 0])),
        "double": Trajectories(q=two, p=two, t=few.t, names=("a", "b")),
        "coarse": good.resample(4),
        "other-step": good.replace(t=0.033 * np.arange(41)),
        "huge": few.replace(q=few.q * 1e200),
        "long-times": few.replace(t=few.t * 1e12),
        "uneven": few.replace(t=uneven),
        "still": good.replace(q=np.ones_like(good.q), p=np.zeros_like(good.q)),
        "positions": few.replace(p=None),
        "lost": few.replace(q=nothing, p=None, known=np.zeros((2, 41), bool)),
    }
    for name, data in made.items():
        dhn.write(data, folder / f"{name}.npz")
    t = good.t
    arrays = {
        "complex": {"q": few.q + 1j, "t": t},
        "letters": {"q": np.array([["a"]]), "t": t},
        "unfit": {"q": few.q, "t": t[:5]},
        "backwards": {"q": few.q, "t": t[::-1]},
        "timeless": {"q": few.q, "t": np.full(41, np.nan)},
        "none": {"q": np.zeros((0, 41, 1)), "t": t},
        "four-axes": {"q": few.q[..., None], "t": t},
        "stray": {"q": few.q, "t": t, "../x": t},
    }
    for name, held in arrays.items():
        np.savez(folder / f"{name}.npz", **held)
    np.savez(folder / "objects.npz", q=np.array([{}], dtype=object))
    with zipfile.ZipFile(folder / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        header = io.BytesIO()
        shape = {"descr": "<f8", "fortran_order": False, "shape": (10**10,)}
        np.lib.format.write_array_header_1_0(header, shape)
        archive.writestr("q.npy", header.getvalue() + bytes(10**6))
    signal = np.cos(t)
    np.savez(folder / "rate-huge.npz", q=signal, fs=1e300)
    np.savez(folder / "rate-tiny.npz", q=signal, fs=1e-300)
    with zipfile.ZipFile(folder / "twin.npz", "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the second name, which is meant
        for name in ("t.npy", "q.npy", "q.npy"):
            array = io.BytesIO()
            np.save(array, t)
            archive.writestr(name, array.getvalue())
    for link, target in (("loop1", "loop2"), ("loop2", "loop1"), ("link.npz", "d.npz")):
        (folder / link).symlink_to(target)
    raw = {
        "empty.npz": b"", "empty.csv": b"", "text.npz": b"hello", "binary.csv": bytes(range(256)),
        "header.csv": b"trajectory,t,q\n", "noending": b"x", "a.txt": b"1 2 3\n",
        "words.csv": b"t,q\n0,a\n1,b\n", "ragged.csv": b"t,q\n0,1\n1\n",
        "twice.csv": b"t,t,q\n0,0,1\n", "back.csv": b"t,q\n1,0\n0,1\n",
        "syntax.py": b"def f(\n", "missing.py": b"import nothere_at_all\n", "exits.py": b"exit()\n",
        "object.py": b"x = 1\n", "list.toml": b"steps = [1, 2]\n", "bad.toml": b"steps = \n",
        "unknown.toml": b"stepz = 3\n", "twice.toml": b"steps = 1\nsteps = 2\n",
        "wide.toml": "steps = 1".encode("utf-16"), "table.toml": b"[steps]\na = 1\n",
        "date.toml": b"steps = 1979-05-27\n", "deep.toml": b"a = " + b"[" * 5000 + b"]" * 5000,
        "place.toml": b"system = 'x'\n", "itself.toml": b"config = 'itself.toml'\n",
        "endless.toml": b"steps = 1e400\n", "fewer.toml": b"trajectories = -5\n",
        "names.toml": b"set = ['width']\n",
        "wide.csv": "t,q\n0,1\n1,2\n".encode("utf-16-le"), "zeros.mat": bytes(2000),
        "odd-wide.csv": "t,q\n0,1\n1,2\n".encode("utf-16") + b"\0",
        "half-wide.csv": b"\xff\xfet\0,\0q\0\n\0" + b"\0\xd8" * 5,
        "null.csv": b"t,q\n0,\x001\n1,2\n", "quote.csv": b't,q\n0,"1\n1,2\n',
        "endless.csv": b"t" * 200_000, "infinite.csv": b"t,q\n0,inf\n1,inf\n",
        "same.csv": b"t,q\n0,1\n0,2\n", "timeless.csv": b"q\n1\n2\n",
        "nameless.csv": b"0,1\n1,2\n2,3\n", "escape.csv": b"t,\x1b[31mq\n0,1\n1,2\n",
        "null.py": b"x = 1\0\n", "latin.py": b"x = '\xff'\n", "memory.py": b"raise MemoryError\n",
        "pos.csv": b"t,q\n" + b"".join(b"%g,%g\n" % (k / 20, np.cos(k / 7)) for k in range(100)),
        "recursive.py": b"import recursive\nrecursive.nothing\n",
        "slow.csv": b"t,q\n" + b"".join(b"%ge88,%g\n" % (5 * k, np.cos(k)) for k in range(50)),
        "markers.csv": b"t,x1,y1,x2,y2\n" + b"".join(b"%d,3,1,3,1\n" % k for k in range(9)),
        "long-name.csv": b"t," + b"q" * 1000 + b"\n0,1\n1,2\n", "pos.xlsx": b"PK\x03\x04",
        "date.csv": b"t,q\n" + b"2024-13-45 99:00:00,1\n" * 9,
        "hex.csv": b"t,q\n" + b"0x1,0x2\n" * 9,
        "page.csv": b"<!DOCTYPE html><html><body>404</body></html>\n" * 9,
        "dhn.csv": b"# dhn {}\nt,q\n0,1\n", "newer.csv": b'# dhn {"layout": 99}\nt,q\n0,1\n',
        "deep.csv": b"# dhn " + b'{"a":' * 3000 + b"1" + b"}" * 3000 + b"\nt,q\n0,1\n",
        "from.toml": b"from_ = []\n", "twin.toml": b"set = {width = 8}\nwidth = 9\n",
        "seed.toml": b"[set]\nseed = 3\n",
    }  # fmt: skip
    vector = (
        "import dhn\n"
        "s = dhn.System(name='s', coordinates=('x',), params={}, initial={},\n"
        "               hamiltonian=lambda q, p, params: p)\n"
    )
    for name, content in {**raw, "vector.py": vector.encode()}.items():
        (folder / name).write_bytes(content)


def damaged(content: bytes, how: str) -> bytes:
    """A file cut in half, with one bit flipped, with other contents, or without any."""
    flipped = bytearray(content)
    flipped[len(content) * 3 // 4] ^= 4
    return {
        "cut": content[: len(content) // 2],
        "flipped": bytes(flipped),
        "junk": b"hello world",
        "empty": b"",
    }[how]
