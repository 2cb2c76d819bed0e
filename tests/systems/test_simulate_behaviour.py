"""`simulate`: seeds, precision, given values, damping, measurement faults, clear errors."""

import hashlib
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from dhn.checks import whole
from dhn.errors import UserError
from dhn.systems import simulate

# One shape for all simulations of this file, so that it is compiled once.
SHAPE = {"trajectories": 8, "steps": 40, "time_step": 0.1}


def run(**options):
    return simulate("mass_spring", **{**SHAPE, **options})


def digest(data):
    values = [data.q, data.p, data.t, *(data.params[k] for k in sorted(data.params))]
    return hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in values)).hexdigest()


def test_the_same_seed_gives_the_same_bytes():
    options = {"noise": 0.1, "gaps": 0.2, "subsample": 0.5, "damping": (0.0, 0.2)}
    assert digest(run(seed=5, **options)) == digest(run(seed=5, **options))
    assert digest(run(seed=5)) != digest(run(seed=6))


def test_bytes_do_not_depend_on_jax_default_precision():
    flag = "0" if jax.config.jax_enable_x64 else "1"
    code = (
        "import hashlib, numpy as np, jax, jax.numpy as jnp\n"
        "from dhn.systems import simulate\n"
        f"assert jnp.ones(1).dtype == ('float64' if {flag} else 'float32')\n"
        "d = simulate('mass_spring', 8, steps=40, time_step=0.1)\n"
        "x = [d.q, d.p, d.t, *(d.params[k] for k in sorted(d.params))]\n"
        "print(hashlib.sha256(b''.join(np.ascontiguousarray(y).tobytes() for y in x)).hexdigest())"
    )
    env = {**os.environ, "JAX_ENABLE_X64": flag}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert out.stdout.strip() == digest(run()), out.stderr


def test_more_trajectories_begin_with_the_same_ones():
    few, many = run(), run(trajectories=7)
    np.testing.assert_array_equal(few.params["k"][:7], many.params["k"])
    np.testing.assert_allclose(few.q[:7], many.q, rtol=0, atol=1e-13)


def test_given_values_ranges_and_arrays_are_used():
    data = run(params={"m": 2.0, "k": (3.0, 4.0)}, initial={"x": np.arange(8.0), "p_x": (0.5, 0.6)})
    assert np.all(data.params["m"] == 2.0)
    assert np.all((data.params["k"] >= 3) & (data.params["k"] <= 4))
    assert len(set(data.params["k"])) == 8
    np.testing.assert_array_equal(data.q[:, 0, 0], np.arange(8.0))
    assert np.all((data.p[:, 0] >= 0.5) & (data.p[:, 0] <= 0.6))
    assert data.system == "mass_spring" and data.names == ("x",) and data.meta["seed"] == 0


def test_velocities_given_become_momenta():
    data = run(params={"m": 2.0}, initial={"v_x": 0.25})
    np.testing.assert_array_equal(data.p[:, 0], 0.5)


def test_times_may_differ_between_trajectories():
    times = np.sort(np.random.default_rng(0).uniform(0, 4, (8, 41)), axis=1)
    data = run(times=times, steps=None, time_step=None)
    k, m, since = data.params["k"][:, None], data.params["m"][:, None], times - times[:, :1]
    w = np.sqrt(k / m)
    exact = data.q[:, :1, 0] * np.cos(w * since) + data.p[:, :1, 0] / (m * w) * np.sin(w * since)
    np.testing.assert_allclose(data.q[..., 0], exact, atol=1e-9)


def test_damping_is_the_textbook_damped_oscillator():
    data = run(damping=(0.1, 0.5))
    gamma, k, m = (data.params[name][:, None] for name in ("gamma", "k", "m"))
    assert len(set(gamma.ravel())) == 8 and gamma.min() >= 0.1 and gamma.max() <= 0.5
    w = np.sqrt(k / m - gamma**2 / 4)
    q0, v0 = data.q[:, :1, 0], data.p[:, :1, 0] / m
    sine = (v0 + gamma * q0 / 2) / w
    exact = np.exp(-gamma * data.t / 2) * (q0 * np.cos(w * data.t) + sine * np.sin(w * data.t))
    np.testing.assert_allclose(data.q[..., 0], exact, atol=1e-9)
    assert "gamma" not in run().params


def test_noise_is_the_fraction_asked_for_and_is_recorded():
    clean, noisy = run(), run(noise=0.1)
    np.testing.assert_allclose(noisy.noise[0], 0.1 * clean.q.std(axis=(0, 1)))
    np.testing.assert_allclose(noisy.noise[1], 0.1 * clean.p.std(axis=(0, 1)))
    # 328 samples: their spread is known within about 4 %.
    np.testing.assert_allclose((noisy.q - clean.q).std(), noisy.noise[0, 0], rtol=0.2)
    named = run(noise={"x": 0.3})
    np.testing.assert_array_equal(named.noise, [[0.3], [0.0]])
    np.testing.assert_array_equal(named.p, clean.p)
    assert clean.noise is None


def test_gaps_are_missing_and_not_known():
    data = run(gaps=0.25)
    missing = ~data.known
    np.testing.assert_array_equal(missing.sum(axis=1), round(0.25 * 41))
    assert np.isnan(data.q[missing]).all() and np.isnan(data.p[missing]).all()
    np.testing.assert_array_equal(data.q[data.known], run().q[data.known])
    assert len({tuple(row) for row in missing}) > 1


def test_subsampling_keeps_true_states_at_uneven_times():
    clean, data = run(), run(subsample=0.5)
    assert data.t.shape == (8, 20) and np.all(np.diff(data.t) > 0) and np.all(data.t[:, 0] == 0)
    assert len(np.unique(np.diff(data.t[0]).round(9))) > 1
    for i in range(8):
        index = np.searchsorted(clean.t, data.t[i])
        np.testing.assert_array_equal(data.q[i], clean.q[i, index])


ERRORS = {
    "unknown system": (
        lambda: simulate("double_pendulun"),
        r"no system 'double_pendulun'.*Did you mean 'double_pendulum'\?",
    ),
    "unknown parameter": (
        lambda: simulate("double_pendulum", params={"L2": 1.0}),
        r"'double_pendulum' has no parameter 'L2'; known are l1, l2.*Did you mean 'l2'\?",
    ),
    "unknown coordinate": (
        lambda: simulate("double_pendulum", initial={"theta": 1.0}),
        r"no coordinate, velocity or momentum 'theta'; known are theta1, .*Did you mean 'theta",
    ),
    "velocities and momenta": (
        lambda: run(initial={"v_x": 0.0, "p_x": 0.0}),
        r"initial has both velocities and momenta .*give one kind",
    ),
    "params not a mapping": (lambda: run(params=[1.0]), r"params must map names .*got \[1.0\]"),
    "array of wrong length": (
        lambda: run(params={"k": [1.0, 2.0]}),
        r"'k' must have one value for each of the 8 trajectories; got an array of shape \(2,\)",
    ),
    "range upside down": (
        lambda: run(params={"k": (2.0, 1.0)}),
        r"range of 'k' must be \(low, high\), low <= high; got \(2.0, 1.0\)",
    ),
    "not a number": (lambda: run(params={"k": "stiff"}), r"'k' must be a finite number.*'stiff'"),
    "NaN": (lambda: run(initial={"x": np.nan}), r"'x' must be a finite number"),
    "times decreasing": (
        lambda: run(times=[0.0, 1.0, 0.5], steps=None, time_step=None),
        r"times must be finite and strictly increasing; they are not at position 2",
    ),
    "times of wrong shape": (
        lambda: run(times=np.zeros((3, 4)), steps=None, time_step=None),
        r"times must have shape \(T,\) or \(8, T\).*got \(3, 4\)",
    ),
    "times and steps": (lambda: run(times=[0.0, 1.0]), r"give times, or time_step and steps"),
    "time step": (
        lambda: run(time_step=-0.1),
        r"time_step must be between .*; got -0.1",
    ),
    "no trajectories": (
        lambda: run(trajectories=0),
        r"trajectories must be a whole number of at least 1; got 0",
    ),
    "negative seed": (lambda: run(seed=-1), r"seed must be a whole number of at least 0; got -1"),
    "noise name": (lambda: run(noise={"y": 1.0}), r"noise names 'y', .*known are x, p_x"),
    "noise shape": (lambda: run(noise=[0.1, 0.1]), r"array of shape \(2, 1\).*got shape \(2,\)"),
    "noise negative": (lambda: run(noise=-0.1), r"noise must be finite and not negative"),
    "gaps": (lambda: run(gaps=1.0), r"gaps must be a fraction in \[0, 1\) of the states; got 1"),
    "subsample": (lambda: run(subsample=0.0), r"subsample must be a fraction in \(0, 1\]"),
    "too long": (
        lambda: run(time_step=1e5),
        r"over a time of 4e\+06 would need about 3e\+07 steps of the solver, and at most 1000000",
    ),
    "blows up": (
        lambda: run(params={"k": np.r_[np.ones(6), -1e6, -1e6]}),
        r"2 of 8 trajectories of 'mass_spring' could not be solved, first number 6 .*k=-1e\+06",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_mistakes_are_answered_in_one_clear_line(case):
    call, message = ERRORS[case]
    with pytest.raises(UserError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


SIZES = [
    ({"trajectories": 10**9}, "simulating 1000000000 trajectories of 41 states of 'mass_spring'"),
    ({"steps": 10**12}, "simulating 8 trajectories of 1000000000001 states"),
    ({"trajectories": 10**18}, "simulating 1" + 18 * "0" + " trajectories"),
]


@pytest.mark.parametrize("options, message", SIZES, ids=["trajectories", "steps", "beyond"])
def test_what_does_not_fit_is_refused_before_any_work(options, message):
    with pytest.raises(UserError) as caught:
        run(**options)
    text = str(caught.value)
    assert text.startswith(message) and "would need about" in text
    assert text.endswith("are free here; simulate fewer or shorter trajectories.")


@pytest.mark.parametrize("value", ["3", None, float("inf"), 2.5, True, -1, [3]], ids=repr)
def test_counts_are_whole_numbers(value):
    with pytest.raises(UserError, match="trajectories must be a whole number of at least 1; got"):
        whole("trajectories", value)
    assert whole("trajectories", np.int64(3)) == 3


def test_progress_counts_trajectories():
    seen = []
    run(progress=lambda done, total: seen.append((done, total)))
    assert seen == [(8, 8)]
