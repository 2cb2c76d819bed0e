"""scikit-learn's conventions, held by scikit-learn itself; data of every kind."""

import jax
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

import dhn
from dhn.errors import UserError
from dhn.models.presets import get_preset

TINY = {"width": 8, "depth": 1, "latent_size": 2, "batch_size": 32, "validation": 0.0}


@pytest.fixture(scope="module")
def data():
    return dhn.simulate("mass_spring", trajectories=8, seed=0, steps=24)


@pytest.fixture(scope="module")
def model(data):
    with jax.enable_x64(False):
        return dhn.DHN(**TINY).fit(data, steps=60)


def test_the_constructor_keeps_what_it_was_given():
    assert dhn.DHN().get_params() == {"preset": "default"}
    model = dhn.DHN("paper", width=8, seed=3)
    assert model.get_params() == {"preset": "paper", "width": 8, "seed": 3}
    assert repr(model) == "DHN(preset='paper', width=8, seed=3)"


def test_parameters_can_be_changed_by_name():
    model = dhn.DHN(width=8)
    assert model.set_params(width=16, learning_rate=0.01) is model
    assert model.config == dhn.DHN(width=16).config
    assert model.training.learning_rate == 0.01
    with pytest.raises(UserError, match=r"unknown option 'widht'\. Did you mean 'width'"):
        model.set_params(widht=3)
    assert model.get_params() == {"preset": "default", "width": 16, "learning_rate": 0.01}


def test_scikit_learn_clones_it(model):
    for one in (model, dhn.DHN("paper", width=8), dhn.DHN(get_preset("paper")[0], steps=3)):
        copy = clone(one)
        assert copy is not one and copy.fitted is None
        assert (copy.config, copy.training) == (one.config, one.training)
        assert copy.get_params() == one.get_params()


def test_a_loaded_model_trains_as_it_did(model, tmp_path):
    model.save(tmp_path)
    loaded = dhn.load(tmp_path)
    assert type(loaded) is dhn.DHN
    copy = clone(loaded)
    assert (copy.config, copy.training) == (model.config, model.trained.training)


def test_a_loaded_baseline_is_a_baseline(data, tmp_path):
    from dhn.reproduction.estimators import Baseline

    with jax.enable_x64(False):
        Baseline("vanilla", width=8, depth=1, validation=0.0).fit(data, steps=2).save(tmp_path)
    loaded = dhn.load(tmp_path)
    assert type(loaded) is Baseline and loaded.config.kind == "vanilla"


def test_the_score_is_the_r2_of_completion(data, model):
    found = model.complete(data, 6)
    error = np.sum((found.q[:, 6:] - data.q[:, 6:]) ** 2)
    spread = np.sum((data.q[:, 6:] - data.q[:, 6:].mean()) ** 2)
    np.testing.assert_allclose(model.score(data), 1 - error / spread)
    with pytest.raises(UserError, match="no state after the first 6 is known"):
        model.score(data.replace(known=data.known & (np.arange(data.states) < 6)))


def test_a_notebook_shows_a_table(model):
    text = model._repr_html_()
    assert "<caption>DHN</caption>" in text and "8 trajectories" in text
    assert "trained on" not in dhn.DHN()._repr_html_()


def test_every_question_takes_every_kind_of_data(data, model, tmp_path):
    seen = data[:, :12]
    want = model.forecast(seen, 3).q
    dhn.write(seen, tmp_path / "seen.npz")
    arrays = {"t": seen.t, "q": seen.q, "p": seen.p}
    for given in (seen.to_dataframe(), seen.to_xarray(), tmp_path / "seen.npz", arrays):
        np.testing.assert_allclose(model.forecast(given, 3).q, want)
    frame = seen.to_dataframe()
    np.testing.assert_array_equal(model.reconstruct(frame).codes, model.reconstruct(seen).codes)
    np.testing.assert_array_equal(model.infer(frame, "k"), model.infer(seen, "k"))
    np.testing.assert_array_equal(model.complete(frame, 6).q, model.complete(seen, 6).q)
    with pytest.raises(UserError, match="expected Trajectories, a DataFrame"):
        model.encode(seen.q)


def test_fit_takes_a_frame(data):
    with jax.enable_x64(False):
        frame, plain = (dhn.DHN(**TINY).fit(x, steps=3) for x in (data.to_dataframe(), data))
    np.testing.assert_array_equal(frame.trained.codes, plain.trained.codes)


@pytest.mark.slow
def test_a_grid_search_prefers_a_trained_model_to_an_untrained_one():
    """Twelve training trajectories a fold: with four, the ranking depends on the split."""
    data = dhn.simulate("mass_spring", trajectories=24, seed=0, steps=48)
    tiny = dhn.DHN(**(TINY | {"batch_size": 64}), warmup=10)
    with jax.enable_x64(False):
        search = GridSearchCV(tiny, {"steps": [1, 400]}, cv=KFold(2), n_jobs=1).fit(data)
    untrained, trained = search.cv_results_["mean_test_score"]
    assert untrained < 0 < 0.5 < trained
    assert search.best_params_ == {"steps": 400}
    assert search.best_estimator_.trained.summary["trajectories"] == 24
