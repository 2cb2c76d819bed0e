import jax
import jax.random as jr
import numpy as np
import pytest
from small import oscillators, prepared

from dhn.errors import UserError
from dhn.models import DHNConfig, DHNModel, NetworkConfig, WindowShape
from dhn.models.registry import draw_weights
from dhn.training.config import TrainingConfig
from dhn.training.fit import fit
from dhn.training.prepare import bucket, make_context, typical_changes
from dhn.trajectories.container import Trajectories
from dhn.trajectories.scaling import Scaler


def test_states_are_scaled_padded_and_finite():
    data = oscillators(5, 20)
    known = np.array(data.known)
    known[2, 7:9] = False
    q = np.array(data.q)
    q[2, 7:9] = np.nan
    data = data.replace(q=q, known=known)
    scaler = Scaler.fit(data)
    found = prepared(data, scaler, [WindowShape(2), WindowShape(3, 4)])
    assert found.states.q.shape == (1024, 20, 1) and found.states.q.dtype == np.float32
    assert np.isfinite(found.states.q).all() and np.isfinite(found.states.p).all()
    assert np.all(found.states.q[5:] == 0)
    np.testing.assert_allclose(found.states.q[0], scaler.transform_q(data.q)[0], rtol=1e-6)
    # 19 windows of two neighbours in each of four whole trajectories; the fifth lost three.
    assert int(found.counts[0]) == 5 * 19 - 3
    # Three states four apart reach over 9: the gap at 7, 8 forbids what touches it.
    starts = np.asarray(found.starts[1])[: int(found.counts[1])]
    touched = {start for row, start in starts if row == 2}
    assert touched == {s for s in range(12) if not {s, s + 4, s + 8} & {7, 8}}
    assert found.starts[0].shape == (1024, 2)


def test_precision_is_as_asked():
    data = oscillators(3)
    with jax.enable_x64(True):
        found = prepared(data, Scaler.fit(data), [WindowShape(2)], "float64")
        assert found.states.p.dtype == np.float64


@pytest.mark.parametrize(
    ("count", "padded"), [(1, 1024), (1024, 1024), (1025, 2048), (100_000, 131_072)]
)
def test_buckets(count, padded):
    assert bucket(count) == padded


def test_context_of_an_oscillator():
    """rms of q(t+h) - q(t) is 2 sin(wh/2) times the rms of q, for whole periods."""
    states, period = 257, 32
    t = np.arange(states) * 1.0
    phase = np.arange(8)[:, None] * 2 * np.pi / 8
    angle = 2 * np.pi * t / period + phase
    data = Trajectories(
        q=np.cos(angle)[..., None], p=-np.sin(angle)[..., None], t=t, angles=(True,)
    )
    scaler = Scaler.fit(data)
    context = make_context(data, scaler)
    expected = [2 * np.sin(np.pi * lag / period) for lag in (1, 2, 4, 8, 16)]
    # In scaled units, and the nearest power of two.
    ratio = np.array(context.changes[:5]) / (np.array(expected) / scaler.q_scale)
    assert (np.abs(np.log2(ratio)) < 1.01).all()
    # A whole period later nothing has changed; the unit of error must not become zero.
    assert set(context.changes[5:]) == {context.changes[4]}
    assert context.dim == 1 and context.time_step == 1.0 and context.angles == (True,)
    np.testing.assert_allclose(context.radian, 1 / scaler.q_scale)


def test_changes_use_known_pairs_only():
    states = np.arange(12.0).reshape(1, 12, 1)
    known = np.zeros((1, 12), bool)
    known[:, ::2] = True
    assert typical_changes(states, known) == (2.0, 2.0, 4.0, 8.0)


BAD = {
    "no momenta": (
        lambda: oscillators(p=None),
        "training needs momenta p or velocities v beside the coordinates q; these data have "
        "neither. Add columns for p or v.",
    ),
    "uneven": (
        lambda: oscillators(t=np.arange(24) ** 1.5),
        "training needs one constant time step; these data have steps from 1 to 7.11498. Regrid",
    ),
    "at rest": (
        lambda: oscillators(q=np.ones((12, 24, 1)), p=np.zeros((12, 24, 1))),
        "the states never change over time",
    ),
    "one state": (lambda: oscillators(states=1), "1 state\\(s\\) a trajectory"),
}


@pytest.mark.parametrize("case", BAD)
def test_data_that_cannot_train(case):
    make, message = BAD[case]
    data = make()
    with pytest.raises(UserError, match=message):
        make_context(data, Scaler(np.zeros(1), np.ones(1), np.ones(1)))


def test_velocities_stand_in_for_momenta():
    data = oscillators()
    as_velocity = data.replace(v=data.p, p=None)
    scaler = Scaler.fit(as_velocity)
    found = prepared(as_velocity, scaler, [WindowShape(2)])
    np.testing.assert_allclose(found.states.p[0], scaler.transform_p(data.p)[0], rtol=1e-6)


def test_segments_that_share_a_code_train_one_row():
    """Every trajectory is the same system and gets the same code."""
    data = oscillators()
    data = data.replace(code_group=("all",) * len(data))
    scaler = Scaler.fit(data)
    model = draw_weights(
        DHNModel,
        DHNConfig(network=NetworkConfig(width=8, depth=1), latent_size=2),
        make_context(data, scaler),
        jr.key(0),
    )
    result = fit(model, data, scaler, TrainingConfig(steps=5, batch_size=16), progress=False)
    assert np.ptp(result.codes, axis=0).max() == 0.0
    assert np.abs(result.codes).max() > 0.0
