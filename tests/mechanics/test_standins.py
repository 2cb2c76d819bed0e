"""The whole way from a file to forecasts on made-up recordings with the faults of measured ones."""

import pytest
from scipy.stats import binom
from standins import rotary_arm, write

import dhn
from dhn.evaluation.trial import horizons, try_out
from dhn.evaluation.uncertainty import BANDS, coverage
from dhn.files.foreign import import_measured


@pytest.mark.slow
def test_an_arm_with_dry_friction_recorded_to_a_hundredth(tmp_path):
    path = write(tmp_path / "arm.csv", "t [s],angle [rad]", rotary_arm(3))
    parts = import_measured(path, q="theta=angle", angles="all", split=(0.7, 0.15, 0.15)).parts
    model = dhn.Mechanics().fit(parts["train"], validation=parts["validation"])
    friction = {x["term"]: x["value"] for x in model.physics()["systems"][0]["friction"]}
    assert friction["dry"] == pytest.approx(0.25, rel=0.1)
    assert friction["viscous"] == pytest.approx(0.12, rel=0.1)
    trial = try_out(
        model, parts["test"], train=parts["train"], validation=parts["validation"], observe=32
    )
    assert trial.winner is None
    half = next(x for x in horizons(trial) if x["ahead"] == "0.5 period")
    assert all(half["forecast"] < 0.9 * half[x.name] for x in trial.others)
    # Errors of 0.01 rad / sqrt(12) are all there is, nearly independent from state to state.
    for name, share in coverage(trial.prediction, trial.truth).items():
        level = BANDS[name][1] - BANDS[name][0]
        low, high = binom.interval(0.99, parts["test"].states, level)
        assert low <= share * parts["test"].states <= high
