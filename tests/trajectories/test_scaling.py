"""Scaling keeps the symplectic structure, the zeros that mean something, and nothing unseen."""

import json

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import dhn
from dhn.errors import UserError
from dhn.trajectories import Scaler, Trajectories


def random_data(seed=0, d=3, n=4, T=20, **fields):
    rng = np.random.default_rng(seed)
    size = 10 ** rng.uniform(-6, 6, d)
    q = rng.normal(rng.normal(size=d), 1, (n, T, d)) * size
    p = rng.normal(0.5, 1, (n, T, d)) * 10 ** rng.uniform(-6, 6, d)
    return Trajectories(q=q, t=np.arange(T), **({"p": p} | fields))


@settings(max_examples=50)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 5))
def test_scaling_is_conformally_symplectic(seed, d):
    """J^T Ω J = c Ω for the Jacobian J of (q, p) -> (q', p')."""
    scaler = Scaler.fit(random_data(seed, d))
    J = np.diag(np.concatenate([1 / scaler.q_scale, 1 / scaler.p_scale]))
    omega = np.block([[np.zeros((d, d)), np.eye(d)], [-np.eye(d), np.zeros((d, d))]])
    np.testing.assert_allclose(J.T @ omega @ J * scaler.action_scale, omega, rtol=1e-14)


@settings(max_examples=50)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 5))
def test_scaled_data_are_of_order_one_and_invert(seed, d):
    data = random_data(seed, d)
    scaler = Scaler.fit(data)
    q, p = scaler.transform(data)
    np.testing.assert_allclose(q.mean((0, 1)), 0, atol=1e-8)
    # The nearest power of two is at most a factor sqrt(2) away; p inherits both roundings.
    assert (np.abs(np.log2(q.std((0, 1)))) <= 0.5 + 1e-9).all()
    assert abs(np.log2(np.sqrt(np.mean(p**2)))) <= 1.0 + 1e-9
    q, p = scaler.inverse(q, p)
    np.testing.assert_allclose(q, data.q, rtol=1e-12, atol=1e-12 * np.abs(data.q).max())
    np.testing.assert_array_equal(p, data.p)


def test_scales_are_powers_of_two():
    scaler = Scaler.fit(random_data(d=4))
    for scale in (*scaler.q_scale, *scaler.p_scale, scaler.action_scale):
        assert np.log2(scale) == round(np.log2(scale))


def test_one_coordinate_has_both_scales_free():
    data = random_data(d=1)
    scaler = Scaler.fit(data)
    assert 0.5 <= scaler.p_scale[0] / np.sqrt(np.mean(data.p**2)) <= 2.0


def test_angles_and_momenta_keep_their_zero():
    data = random_data(angles=(True, False, True))
    scaler = Scaler.fit(data)
    assert scaler.q_shift[0] == scaler.q_shift[2] == 0 and scaler.q_shift[1] != 0
    assert 0.7 < scaler.q_scale[0] / np.sqrt(np.mean(data.q[..., 0] ** 2)) < 1.42
    assert (scaler.transform_p(np.zeros((1, 3))) == 0).all()


def test_only_known_states_count():
    data = random_data()
    q, p, known = data.q.copy(), data.p.copy(), data.known.copy()
    q[1, 5:] = p[1, 5:] = np.nan
    q[2, 7:], p[2, 7:] = 1e12, 1e12
    known[1, 5:] = known[2, 7:] = False
    seen = Trajectories(q=q, t=data.t, p=p, known=known)
    again = Trajectories(q=np.where(known[..., None], q, -3e9), t=data.t, p=p, known=known)
    assert Scaler.fit(seen) == Scaler.fit(again)
    assert np.isfinite(Scaler.fit(seen).q_scale).all()


def test_constant_coordinates_and_resting_data_survive():
    q = np.broadcast_to([0.1, 0.0, 2.0], (2, 4, 3))
    data = Trajectories(q=q, t=np.arange(4), p=np.zeros((2, 4, 3)), angles=(False, True, True))
    scaler = Scaler.fit(data)
    assert scaler.q_scale.tolist() == [1, 1, 2] and scaler.action_scale == 1
    q, p = scaler.transform(data)
    assert np.isfinite(q).all() and np.isfinite(p).all()


def test_velocities_stand_in_for_momenta():
    data = random_data()
    as_velocity = data.replace(v=data.p, p=None)
    assert Scaler.fit(data) == Scaler.fit(as_velocity)
    np.testing.assert_array_equal(
        Scaler.fit(data).transform(as_velocity)[1], Scaler.fit(data).transform(data)[1]
    )
    assert Scaler.fit(data.replace(p=None)).action_scale == 1


def test_energies_are_physical_after_the_inverse():
    """Oscillator m = 2, k = 3: H(q, p) = p²/4 + 3q²/2, from scaled variables and back."""
    data = random_data(d=1)
    scaler = Scaler.fit(data)
    q, p = scaler.inverse(*scaler.transform(data))
    energy = p**2 / 4 + 3 * q**2 / 2
    np.testing.assert_allclose(energy, data.p**2 / 4 + 3 * data.q**2 / 2, rtol=1e-10)


def test_noise_scales_like_differences():
    scaler = Scaler.fit(random_data())
    noise = np.array([[1.0, 2, 3], [4, 5, 6]])
    step_q = scaler.transform_q(noise[:1]) - scaler.transform_q(np.zeros((1, 3)))
    np.testing.assert_allclose(scaler.scaled_noise(noise)[0], step_q[0], rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(scaler.scaled_noise(noise)[1], scaler.transform_p(noise[1:])[0])


def test_json_keeps_every_bit():
    scaler = Scaler.fit(random_data())
    again = Scaler.from_dict(json.loads(json.dumps(scaler.to_dict())))
    assert again == scaler and hash(again) == hash(scaler)
    assert again != Scaler.fit(random_data(seed=1))


def test_jax_arrays_pass_through():
    import jax
    import jax.numpy as jnp

    scaler = Scaler.fit(random_data())
    x = jnp.linspace(-1, 1, 6).reshape(2, 3)
    result = jax.jit(lambda x: scaler.inverse_q(scaler.transform_q(x)))(x)
    assert isinstance(result, jax.Array)
    spread = scaler.q_scale + np.abs(scaler.q_shift)
    np.testing.assert_allclose(result, x, atol=1e-6 * spread.max() + 1e-6)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda s, x: Scaler.fit(x.replace(known=np.zeros((4, 20)))),
            "needs known numbers",
        ),
        (lambda s, x: s.transform(x.replace(p=None)), "neither momenta nor velocities"),
        (
            lambda s, x: s.transform(random_data(d=2)),
            "fitted on 3 coordinates, but these data have 2",
        ),
        (lambda s, x: Scaler.from_dict({"q_shift": [0.0]}), "a scaling has the fields"),
        (lambda s, x: Scaler.from_dict(s.to_dict() | {"q_scale": [1, 0, 1]}), "scales positive"),
        (lambda s, x: Scaler.from_dict(s.to_dict() | {"p_scale": [1.0]}), "p_scale must have one"),
    ],
)
def test_mistakes_are_named(call, message):
    data = random_data()
    with pytest.raises(UserError) as caught:
        call(Scaler.fit(data), data)
    assert message in str(caught.value)


def test_quarter_turns_are_the_units_of_the_paper():
    """Angles over pi/2; the largest momentum of a trajectory is 1 on average over the set."""
    data = dhn.simulate("double_pendulum", 5, seed=0, steps=20)
    assert data.p is not None
    found = Scaler.fit(data, "quarter-turn")
    np.testing.assert_array_equal(found.q_shift, 0.0)
    np.testing.assert_allclose(found.q_scale, np.pi / 2)
    np.testing.assert_allclose(found.p_scale, np.abs(data.p).max((1, 2)).mean())
    # Coordinates that are not angles keep their spread, and all share one unit of action.
    springs = dhn.simulate("elastic_pendulum", 5, seed=0, steps=20)
    mixed = Scaler.fit(springs, "quarter-turn")
    turning = np.asarray(springs.angles)
    np.testing.assert_allclose(mixed.q_scale[turning], np.pi / 2)
    np.testing.assert_array_equal(mixed.q_scale[~turning], Scaler.fit(springs).q_scale[~turning])
    np.testing.assert_allclose(mixed.q_scale * mixed.p_scale, mixed.action_scale)
