"""Networks that fill gaps, asked as the interpolation experiment asks them."""

import numpy as np
import pytest

import dhn
from dhn.reproduction.baselines.splines import linear_interpolation
from dhn.reproduction.baselines.upsampler import as_upsampler
from dhn.reproduction.estimators import make_estimator
from dhn.reproduction.rolling import upsample


@pytest.mark.parametrize("kind", ["cnn", "neighbour"])
def test_what_was_learned_is_far_better_than_straight_lines(kind):
    """Codes of sparse trajectories are fitted on the grid that the model was trained on."""
    train, test = (
        dhn.simulate("single_pendulum", n, seed=n, steps=64, params={"l": (0.2, 1.5)})
        for n in (40, 8)
    )
    model = make_estimator(kind, "default", {"width": 16, "batch_size": 32, "seed": 0})
    trained = model.fit(train, steps=200).trained
    sparse = test.resample(4)
    upsampler = as_upsampler(trained.model)
    assert upsampler is not None
    found, lines = upsample(trained, upsampler, sparse, 4), linear_interpolation(sparse, 4)
    np.testing.assert_array_equal(found.q[:, ::4], test.q[:, ::4])

    def error(x):
        return np.mean((x.q - test.q) ** 2)

    assert error(found) < 0.1 * error(lines)
