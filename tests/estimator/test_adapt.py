"""What the data decide about the default model."""

import numpy as np
import pytest

import dhn
from dhn.estimator import estimator
from dhn.estimator.adapt import NOISY, adapted_preset, noise_per_step


def data(noise: float):
    return dhn.simulate("mass_spring", trajectories=8, seed=0, noise=noise)


def test_noise_is_measured_in_steps():
    train = data(0.05)
    assert train.noise is not None
    states = np.concatenate([train.q, train.momenta], axis=2)
    spread = np.concatenate([train.noise[0], train.noise[1]])
    change = np.sqrt(np.mean(np.diff(states, axis=1) ** 2))
    # Scales and changes are rounded to powers of two, each by a factor of at most sqrt(2).
    expected = spread.max() / change
    assert expected / 3 < noise_per_step(train) < 3 * expected
    assert noise_per_step(data(0.0)) == 0.0


@pytest.mark.parametrize(("noise", "linked"), [(0.0, True), (0.05, False)])
def test_noisy_data_take_two_networks(noise, linked):
    train = data(noise)
    assert adapted_preset(train) == ("linked" if linked else "paired", {})
    model = dhn.DHN(width=8, depth=1, latent_size=1)
    said = model.adapt(train)
    assert model.config.linked is linked and model.config.network.width == 8
    assert (said is None) is linked


def test_measured_data_are_trained_along_paths(tmp_path):
    t = 0.05 * np.arange(400)
    np.savetxt(tmp_path / "a.csv", np.stack([t, np.cos(2 * t)], -1), header="t,x", delimiter=",")
    train = dhn.read(tmp_path / "a.csv", q="x", time="t")
    preset, options = adapted_preset(train)
    assert preset == "measured" and options["path"] == pytest.approx(0.75 * np.pi / 0.05, abs=2)
    model = dhn.DHN(width=8)
    said = model.adapt(train)
    assert said is not None and "paths of" in said
    assert model.config.damping == "learned" and model.config.network.width == 8
    assert adapted_preset(train[:, :12]) == ("linked", {})


def test_fit_takes_the_whole_recipe_of_what_the_data_decide(tmp_path, monkeypatch):
    """Also batch and learning rate, without a call of `adapt` beforehand."""
    t = 0.05 * np.arange(400)
    np.savetxt(tmp_path / "a.csv", np.stack([t, np.cos(2 * t)], -1), header="t,x", delimiter=",")
    seen = []

    def stop(model, data, scaler, training, **options):
        seen.append(training)
        raise KeyboardInterrupt

    monkeypatch.setattr(estimator, "fit_along_paths", stop)
    with pytest.raises(KeyboardInterrupt):
        dhn.DHN(seed=3).fit(dhn.read(tmp_path / "a.csv", q="x", time="t"), steps=7)
    expected = dhn.DHN("measured", seed=3).training
    assert seen == [expected.model_copy(update={"steps": 7})]


def test_what_was_said_is_not_changed():
    train = data(0.05)
    assert noise_per_step(train) > NOISY
    for model in (dhn.DHN(linked=True), dhn.DHN("linked"), dhn.DHN("paper"), dhn.DHN(stride=1)):
        before = model.config
        assert model.adapt(train) is None
        assert model.config == before
