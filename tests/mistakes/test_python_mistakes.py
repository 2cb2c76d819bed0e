"""Mistakes in Python: a `UserError` of one line before any work, and nothing written."""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
import pytest

import dhn
from dhn.checks import as_path, seconds, whole
from dhn.estimator.learning import check_held_out

WRONG = [None, "x", -1, 1.5, True, np.nan, np.inf, [], {}, b"x", 10**30, object()]
"""What a careless caller gives where a number belongs."""
NO_DATA = [None, -1, 1.5, True, [], {}, b"x", object(), np.zeros((2, 3)), "nowhere.npz", "d.txt"]
pytestmark = pytest.mark.usefixtures("as_users_have_it")
NO_PATH = [None, -1, 1.5, True, [], {}, b"x", object(), "", "a\0b"]


@dataclasses.dataclass(frozen=True)
class World:
    """What the cases of a table work on."""

    network: dhn.DHN
    mechanics: dhn.Mechanics
    data: dhn.Trajectories
    runs: dhn.Trajectories

    @functools.cached_property
    def seen(self) -> dhn.Trajectories:
        return self.data[:, :16]


@pytest.fixture
def case(network, mechanics, data, runs, unchanged) -> World:
    return World(network, mechanics, data, runs)


def _fresh() -> dhn.DHN:
    return dhn.DHN(width=8, depth=1, latent_size=2, validation=0.0)


def _system(**changes) -> dhn.System:
    return dhn.System(**{"name": "s", "coordinates": ("x",), "hamiltonian": max, **changes})


def _without_momenta(path: str) -> dhn.Trajectories:
    return dhn.read(path).replace(p=None)


NUMBERS: dict[str, tuple[Callable, tuple]] = {
    # name -> (call, values that are right although they are in WRONG)
    "forecast steps": (lambda w, x: w.network.forecast(w.seen, x), ()),
    "forecast samples": (lambda w, x: w.network.forecast(w.seen, 4, samples=x), ()),
    "forecast seed": (lambda w, x: w.network.forecast(w.seen, 4, seed=x), ()),
    "complete observe": (lambda w, x: w.network.complete(w.data, x), ()),
    "interpolate factor": (lambda w, x: w.network.interpolate(w.data.resample(4), x), ()),
    "score observe": (lambda w, x: w.network.score(w.data, observe=x), (None,)),
    "reconstruct samples": (lambda w, x: w.network.reconstruct(w.seen, samples=x), ()),
    "denoise noise": (lambda w, x: w.network.denoise(w.seen, noise=x), ()),
    "infer target": (lambda w, x: w.network.infer(w.seen, x), ()),
    "solver": (lambda w, x: w.network.reconstruct(w.seen, solver=x), ()),
    "mechanics steps": (lambda w, x: w.mechanics.forecast(w.runs, x), ()),
    "mechanics samples": (lambda w, x: w.mechanics.forecast(w.runs, 4, samples=x), ()),
    "mechanics seed": (lambda w, x: w.mechanics.forecast(w.runs, 4, seed=x), ()),
    "mechanics observe": (lambda w, x: w.mechanics.complete(w.runs, x), ()),
    "mechanics budget": (
        lambda w, x: dhn.Mechanics().fit(w.runs, budget=x), (None, 1.5)),
    "fit steps": (lambda w, x: _fresh().fit(w.data, steps=x), (None,)),
    "fit budget": (lambda w, x: _fresh().fit(w.data, budget=x), (None, 1.5)),
    "simulate trajectories": (lambda w, x: dhn.simulate("mass_spring", trajectories=x), ()),
    "simulate seed": (lambda w, x: dhn.simulate("mass_spring", 2, seed=x), ()),
    "simulate steps": (lambda w, x: dhn.simulate("mass_spring", 2, steps=x), (None,)),
    "resample": (lambda w, x: w.data.resample(x), (True,)),
    "preset": (lambda w, x: dhn.DHN(x), ()),
    "width": (lambda w, x: dhn.DHN(width=x), (True,)),
    "learning rate": (lambda w, x: dhn.DHN(learning_rate=x), (True, 1.5, 10**30)),
}  # fmt: skip
DATA: dict[str, Callable] = {
    "forecast": lambda w, x: w.network.forecast(x, 2),
    "reconstruct": lambda w, x: w.network.reconstruct(x),
    "complete": lambda w, x: w.network.complete(x, 2),
    "interpolate": lambda w, x: w.network.interpolate(x, 2),
    "denoise": lambda w, x: w.network.denoise(x),
    "encode": lambda w, x: w.network.encode(x),
    "infer": lambda w, x: w.network.infer(x, "l"),
    "score": lambda w, x: w.network.score(x),
    "fit": lambda w, x: _fresh().fit(x, steps=1),
    "dhn.fit": lambda w, x: dhn.fit(x),
    "mechanics forecast": lambda w, x: w.mechanics.forecast(x, 2),
    "mechanics fit": lambda w, x: dhn.Mechanics().fit(x),
    "write": lambda w, x: dhn.write(x, "o.npz"),
}
PATHS: dict[str, Callable] = {
    "read": lambda w, x: dhn.read(x),
    "write": lambda w, x: dhn.write(w.data, x),
    "load": lambda w, x: dhn.load(x),
    "save": lambda w, x: w.network.save(x),
    "mechanics save": lambda w, x: w.mechanics.save(x),
    "fit directory": lambda w, x: _fresh().fit(w.data, steps=1, directory=x),
    "mechanics directory": lambda w, x: dhn.Mechanics().fit(w.runs, directory=x),
}


def one_line(call: Callable, *arguments) -> str:
    with pytest.raises(dhn.UserError) as caught:
        call(*arguments)
    text = str(caught.value)
    assert text and "\n" not in text
    return text


@pytest.mark.parametrize("name", NUMBERS)
def test_no_number_where_a_number_belongs(case, name):
    call, right = NUMBERS[name]
    for value in WRONG:
        if not any(value is x or (type(value) is type(x) and value == x) for x in right):
            one_line(call, case, value)


@pytest.mark.parametrize("name", DATA)
def test_no_trajectories_where_trajectories_belong(case, name):
    for value in NO_DATA:
        one_line(DATA[name], case, value)


@pytest.mark.parametrize("name", PATHS)
def test_no_path_where_a_path_belongs(case, name):
    for value in NO_PATH:
        if not (name.endswith("directory") and value is None):
            one_line(PATHS[name], case, value)


OTHERS = [
    (lambda w: w.network.forecast("double.npz", 2), r"2 \(a, b\). Use data of the same system"),
    (lambda w: w.network.forecast("nan.npz", 2), "trajectory '0' has no known number"),
    (lambda w: w.network.forecast("half.npz", 2), "trajectory '0' has no known number"),
    (lambda w: w.network.forecast("huge.npz", 2), "times as large as in training"),
    (lambda w: w.network.forecast(w.seen, 10**9), "GB of memory|TB of memory"),
    (lambda w: w.network.forecast(w.seen, 2, samples=10**10), "samples of each would need"),
    (lambda w: w.network.complete(w.data, 41), "observe must lie between 1 and 40"),
    (lambda w: w.network.interpolate(w.data, 4), r"these data have 0.1 / 4"),
    (lambda w: w.network.interpolate("uneven.npz", 4), "not evenly spaced"),
    (lambda w: w.network.interpolate(w.data[:, :1], 4), "a single state has no time step"),
    (lambda w: w.network.denoise(w.seen), "denoising needs the noise of the measurements"),
    (lambda w: w.network.denoise(w.seen, noise=np.ones(3)), r"noise must have shape \(2, 1\)"),
    (lambda w: w.network.denoise(w.seen, noise=-np.ones((2, 1))), "zero or above"),
    (lambda w: w.network.denoise(w.seen, noise=np.full((2, 1), np.inf)), "standard deviations"),
    (lambda w: w.network.infer(w.seen, "nope"), "no parameter 'nope' to learn from"),
    (lambda w: w.network.infer(w.seen, "g"), "g is 0.981 in all training data"),
    (lambda w: w.network.reconstruct(w.seen, solver="foo"), "solver must be 'smooth' or 'denoise'"),
    (lambda w: w.network.reconstruct(w.seen, solver="denoise", samples=2), "draws no samples"),
    (lambda w: w.network.reconstruct("uneven.npz", solver="denoise"), "on the model's time grid"),
    (lambda w: w.network.fit(w.data, steps=1), "was loaded from a file, and fit would replace"),
    (lambda w: w.mechanics.fit(w.runs), "was loaded from a file, and fit would replace"),
    (lambda w: w.mechanics.forecast(w.data, 2), r"these data have \(True,\)"),
    (lambda w: w.mechanics.forecast("double.npz", 2), r"fitted to 1 coordinates \(q\)"),
    (lambda w: w.mechanics.forecast(w.runs, 10**9), "of memory, and"),
    (lambda w: w.mechanics.forecast(w.runs[:, :1], 2), "fewer than two known positions"),
    (lambda w: dhn.DHN().forecast(w.seen, 2), "has not been trained; call fit"),
    (lambda w: dhn.DHN().save("new"), "has not been trained; call fit"),
    (lambda w: dhn.DHN().record, "has not been trained; call fit"),
    (lambda w: dhn.Mechanics().forecast(w.runs, 2), "has not been fitted; call fit"),
    (lambda w: dhn.Mechanics().record, "has not been fitted; call fit"),
    (lambda w: dhn.Mechanics().physics(), "has not been fitted; call fit"),
    (lambda w: _fresh().fit(w.data, steps=1, budget=1), "give steps or budget, not both"),
    (lambda w: _fresh().fit(w.data, steps=1, resume=True), "resume needs the directory"),
    (lambda w: _fresh().fit(w.data, directory="new", resume=True), "no training has begun in new"),
    (lambda w: dhn.write(w.data, "foreign.zarr"), "holds no trajectories of dhn; name another"),
    (lambda w: dhn.DHN(batch_size=10**9).fit(w.data, steps=1), "windows would need about"),
    (lambda w: _fresh().fit(w.data, steps=1, directory="run"), "holds a trained model already"),
    (lambda w: _fresh().fit(w.data, steps=1, directory="d.npz"), "d.npz is a file"),
    (lambda w: _fresh().fit(w.data, steps=1, directory="/proc/x"), "/proc/x cannot be made"),
    (lambda w: _fresh().fit(w.data, steps=2**31), "steps should be less than or equal"),
    (lambda w: _fresh().fit("still.npz", steps=1), "the states never change over time"),
    (lambda w: _fresh().fit(w.data[:, :4].replace(p=None), steps=1), "need at least 7 states"),
    (lambda w: _fresh().fit(_without_momenta("still.npz"), steps=1), "momenta cannot be found"),
    (lambda w: _fresh().fit(_without_momenta("half.npz"), steps=1), "no known number of theta"),
    (lambda w: _fresh().fit(_without_momenta("uneven.npz"), steps=1), "one constant time step"),
    (lambda w: _fresh().fit("uneven.npz", steps=1), "one constant time step"),
    (lambda w: _fresh().fit("nan.npz", steps=1), "scaling needs known numbers"),
    (lambda w: dhn.Mechanics().fit(w.runs, directory="mech"), "holds a trained model already"),
    (lambda w: dhn.Mechanics().fit(w.runs, directory="d.npz"), "d.npz is a file"),
    (lambda w: dhn.Mechanics().fit(w.runs, validation="double.npz"), "they must be alike"),
    (lambda w: dhn.Mechanics().fit("still.npz"), "never changes"),
    (lambda w: dhn.Mechanics().fit("short.npz"), "at least 16 measured values"),
    (lambda w: w.network.save("d.npz"), "d.npz is a file; name a folder"),
    (lambda w: w.network.save("/proc/x"), "/proc/x cannot be made"),
    (lambda w: dhn.load("d.npz"), "d.npz is not a folder"),
    (lambda w: dhn.load("run-flipped"), "is damaged"),
    (lambda w: dhn.load("mech-cut"), "is damaged"),
    (lambda w: dhn.DHN(widht=8), "unknown option 'widht'. Did you mean 'width'?"),
    (lambda w: dhn.DHN(block_size=0), "block_size should be greater than or equal to 1"),
    (lambda w: dhn.DHN(validation=1.0), "validation should be less than 1"),
    (lambda w: dhn.DHN(network="foo"), "network.kind should be 'mlp' or 'transformer'"),
    (lambda w: dhn.DHN(spacings=[]), "spacings should have at least 1 item"),
    (lambda w: dhn.DHN(seed=2**63), "seed should be less than"),
    (lambda w: dhn.DHN(depth=1001), "network.depth should be less than or equal to 1000"),
    (lambda w: dhn.simulate("nope"), "there is no system 'nope'"),
    (lambda w: dhn.simulate("mass_spring", 10**12), "of memory, and"),
    (lambda w: dhn.simulate("mass_spring", 2, noise=-1), "noise"),
    (lambda w: dhn.simulate("mass_spring", 2, params={"zz": 1}), "has no parameter 'zz'"),
    (lambda w: dhn.simulate("mass_spring", 2, params=[1]), "params must map names to values"),
    (lambda w: dhn.simulate("mass_spring", 2, times=[1, 0]), "strictly increasing"),
    (lambda w: dhn.simulate("mass_spring", 2, times=[0, 1], steps=2), "not both"),
    (lambda w: dhn.simulate("mass_spring", 2, rtol=-1), "rtol must be finite and above 0; got -1"),
    (lambda w: dhn.simulate("mass_spring", 2, atol="x"), "atol must be a number; got 'x'"),
    (lambda w: dhn.simulate("mass_spring", 2, times="x"), "times must be numbers; got 'x'"),
    (lambda w: dhn.simulate("mass_spring", 2, time_step="x"), "time_step must be a number"),
    (lambda w: dhn.simulate("mass_spring", 2, damping=-1), "damping must not be negative; got -1"),
    (lambda w: dhn.simulate("mass_spring", 2, initial={"x": 1e300}), "must be between"),
    (lambda w: dhn.simulate(["mass_spring"]), "there is no system"),
    (lambda w: dhn.register(3), "only a dhn.System can be registered; got int"),
    (lambda w: dhn.System(name=3, coordinates=("x",)), "a system needs a name, as text; got 3"),
    (lambda w: dhn.from_dataframe(None), "expected a pandas DataFrame; got NoneType"),
    (lambda w: dhn.from_dataframe("d.npz"), "expected a pandas DataFrame; got str"),
    (lambda w: dhn.from_xarray(None), "expected an xarray Dataset; got NoneType"),
    (lambda w: dhn.from_xarray(w.data), "expected an xarray Dataset; got Trajectories"),
    (lambda w: dhn.pretrained(3), "there is no pretrained model 3"),
    (lambda w: w.data.replace(angles=("x",)), "angles must be true or false for each coordinate"),
    (lambda w: w.data.replace(noise=-np.ones((2, 1))), "noise"),
    (lambda w: w.data.replace(params={"l": [1, 2]}), "l"),
    (lambda w: w.data.replace(ids=("a",) * 8), "a"),
    (lambda w: w.data[[]], "the selection contains no trajectories"),
    (lambda w: w.mechanics.interpolate(w.runs, 0), "factor"),
    (lambda w: w.network.denoise(w.seen, noise="a"), "noise"),
    (lambda w: check_held_out(w.data, w.data.replace(p=None)), "other momenta or velocities"),
    (lambda w: check_held_out(w.data, w.data.resample(2)), "time step 0.2 instead of 0.1"),
    (lambda w: whole("n", 3, most=2), "n must be at most 2; got 3"),
    (lambda w: seconds("budget", "5 minutes"), "text such as 90s, 5m or 1h; got '5 minutes'"),
    (lambda w: w.network.track(noise="a"), "noise must be an array of real numbers"),
    (lambda w: w.network.track(noise=-np.ones((2, 1))), "zero or above"),
    (lambda w: w.network.track().update("a", 1.0), "t must be an array of real numbers"),
    (lambda w: w.network.track().update(np.inf, 1.0), "times must increase; got inf"),
    (lambda w: w.network.track().update(0.0, "a"), "q must be an array of real numbers"),
    (lambda w: w.network.track().update(0.0, [1.0, 2.0]), r"q must have shape \(1,\); got \(2,\)"),
    (lambda w: w.network.track().update(0.0, np.nan), "tracking begins with a measurement"),
    (lambda w: w.network.track().update(0.0, 1e300), "times as large as in training"),
    (lambda w: w.network.track().update(0.0, 1.0, "p"), "p must be an array of real numbers"),
    (lambda w: w.network.track().update(0.0, 1.0, noise="a"), "noise must be an array"),
    (lambda w: w.network.denoise(w.data, noise=np.full((2, 1), 1e300)), "the noise of these data"),
    (lambda w: w.mechanics.denoise(w.runs, noise=np.ones((2, 1))), "the noise of their sensor"),
    (lambda w: _fresh().fit(w.data, start=3), "can begin with a trained network; got int"),
    (lambda w: _fresh().fit(w.data, start="run"), "can begin with a trained network; got str"),
    (lambda w: dhn.Mechanics("single_pendulum", params=3), "params must map names to values"),
    (lambda w: dhn.write(w.data, "pipe.npz"), "pipe.npz is a device or pipe"),
    (lambda w: w.data.replace(names=3), "names must be a sequence, such as a tuple; got 3"),
    (lambda w: w.data.replace(ids=3), "ids must be a sequence"),
    (lambda w: w.data.replace(angles=3), "angles must be a sequence"),
    (lambda w: w.data.replace(code_group=3), "code_group must be a sequence"),
    (lambda w: w.data.replace(params=3), "params must map names to values; got 3"),
    (lambda w: w.data.replace(units=3), "units must map names to values"),
    (lambda w: w.data.replace(meta=3), "meta must map names to values"),
    (lambda w: w.data.replace(q_quantiles=3), "q_quantiles must map names to values"),
    (lambda w: w.data.replace(zz=1), "Trajectories have no field 'zz'"),
    (lambda w: w.data.split((0.5, 0.5), seed=0.5), "seed must be a whole number"),
    (lambda w: w.data.split("half", seed=0), "the parts of a split must be a sequence"),
    (lambda w: w.data.split(("a", "b"), seed=0), "the parts of a split must be positive numbers"),
    (lambda w: dhn.Trajectories.concatenate(3), "parts must be a sequence"),
    (lambda w: dhn.Trajectories.concatenate([3]), "only Trajectories can be joined; got int"),
    (lambda w: dhn.from_dataframe("t,q"), "expected a pandas DataFrame; got str"),
    (lambda w: _system(coordinates=3), "coordinates must be a sequence"),
    (lambda w: _system(coordinates=(1, 2)), "needs names of coordinates, as text"),
    (lambda w: _system(angles=3), "angles must be a sequence"),
    (lambda w: _system(params=3), "params must map names to values"),
    (lambda w: _system(units=3), "units must map names to values"),
    (lambda w: _system(invariants={"I": 3}), "'I' of system 's' must be a function of .*; got 3"),
    (
        lambda w: _system(hamiltonian=3),
        "'hamiltonian' of system 's' must be a function of .*; got 3",
    ),
    (lambda w: _system(time_step="a"), "time_step must be an array of real numbers"),
    (lambda w: _system(time_step=np.inf), "needs a finite time_step > 0; got inf"),
    (lambda w: _system(steps=1.5), "steps must be a whole number of at least 1; got 1.5"),
    (lambda w: dhn.get_system("mass_spring").energy("a", "b"), "q must be an array of real numb"),
    (lambda w: dhn.get_system("mass_spring").energy([1.0], [1.0], 3), "params must map names"),
    (lambda w: as_path(3), "expected the name of a file or folder; got 3"),
    (lambda w: as_path("x" * 300), "is no usable file name: File name too long"),
    (lambda w: dhn.write(w.data, "x" * 300 + ".npz"), "File name too long"),
    (lambda w: dhn.read("\ud800.npz"), "is no usable file name"),
    (lambda w: dhn.load("x" * 300), "File name too long"),
    (lambda w: dhn.load("loop1"), "Too many levels of symbolic links"),
    (lambda w: w.network.save("x" * 300), "File name too long"),
    (lambda w: _fresh().fit(w.data, steps=1, directory="x" * 300), "File name too long"),
    (lambda w: dhn.read("d.npz", columns=3), "columns must map names to values; got 3"),
    (lambda w: dhn.read("d.npz", columns={1: 2}), "there is no variable 1"),
    (lambda w: dhn.read("pos.csv", q="q", missing=object()), "must be one item or a sequence"),
    (lambda w: dhn.read("pos.csv", q="q", zero=[None]), "zero.0"),
    (lambda w: dhn.read("pos.csv", q="q", dt=np.nan), "dt should be a finite number"),
    (lambda w: dhn.read("pos.csv", q="q", rate=10**400), "rate should be a"),
    (lambda w: dhn.read([3], q="q"), "expected the name of a file or folder; got 3"),
    (lambda w: dhn.read(None, q="q"), "files must be a sequence"),
    (lambda w: dhn.read([], q="q"), "there is nothing to import"),
    (lambda w: w.network.track(noise=np.full((2, 1), np.inf)), "finite and zero or above"),
    (lambda w: w.network.track(noise=np.full((2, 1), 1e300)), "noise is more than 1e.08 times"),
    (lambda w: w.network.track().update(0.0, 1.0, noise=np.full((2, 1), np.nan)), "finite"),
    (lambda w: w.network.track().update(0.0, np.inf), "a measurement is more than 1e.08 times"),
    (lambda w: w.network.track(lag=3), "lag must be a whole number of at least 4"),
    (lambda w: w.data.replace(q_quantiles={"a": w.data.q}), "keyed by levels between 0 and 1"),
    (lambda w: w.data.replace(q_quantiles={"0.5": w.data.q}), "keyed by levels between 0 and 1"),
    (lambda w: w.data.replace(q_quantiles={(0.5, 1): w.data.q}), "keyed by levels between 0 and"),
    (lambda w: w.data["a"], ""),
    (lambda w: w.data[:, 99:], ""),
    (lambda w: dhn.DHN().set_params(zz=1), "zz"),
    (lambda w: dhn.DHN().set_params(width=9, depth=-1), "depth should be greater than"),
    (lambda w: dhn.DHN().set_params(preset=3), "3"),
    (lambda w: dhn.DHN(block_size=10**30), "block_size"),
    (lambda w: dhn.DHN(network=3), "network"),
    (lambda w: dhn.DHN("x" * 10**6), "unknown preset"),
    (lambda w: dhn.pretrained("../../etc"), "there is no pretrained model '../../etc'"),
    (lambda w: dhn.simulate("mass_spring", 2, times=[[0, 1]]), "times"),
    (lambda w: dhn.simulate("mass_spring", 2, params={"k": (1, 2, 3)}), "k"),
    (lambda w: dhn.simulate("mass_spring", 2, gaps=np.nan), "gaps"),
]


@pytest.mark.parametrize("call, message", OTHERS, ids=[message for _, message in OTHERS])
def test_other_mistakes_are_one_line(case, call, message):
    import re

    assert re.search(message, one_line(call, case))


def test_durations_are_read_alike():
    assert [seconds("b", x) for x in (90, "90", "90s", "1.5m", "2h")] == [90, 90, 90, 90, 7200]


def test_there_are_enough_mistakes():
    tables = len(NUMBERS) * len(WRONG) + len(DATA) * len(NO_DATA) + len(PATHS) * len(NO_PATH)
    assert tables + len(OTHERS) > 500
