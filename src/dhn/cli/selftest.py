"""The self-test of `dhn doctor`: `python -m dhn.cli.selftest SEED` prints one JSON line a step."""

import json
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

STEPS = ("simulate", "train", "forecast", "two threads")
TRAINING_STEPS = 20
"""Enough to run every compiled program of a training; the model is not meant to be good."""


def main(seed: int) -> None:
    """Run the steps; an exception ends the process and is reported by the caller."""
    from dhn.cli.asking import use_cache

    use_cache()
    import numpy as np

    from dhn.estimator import DHN
    from dhn.systems import simulate

    warnings.simplefilter("ignore")  # about forecasts of a model that is hardly trained
    steps = iter(STEPS)
    begun = time.perf_counter()

    def done(ok: bool, result: str) -> None:
        nonlocal begun
        now = time.perf_counter()
        line = {"step": next(steps), "ok": ok, "result": f"{result}, {now - begun:.1f} s"}
        print(json.dumps(line), flush=True)
        begun = now

    data = simulate("mass_spring", trajectories=16, seed=seed, steps=32)
    # The closed form: energy p²/2m + kx²/2 stays as it was.
    assert data.p is not None  # a simulation has momenta
    x, p = data.q[..., 0], data.p[..., 0]
    k, m = (data.params[name][:, None] for name in ("k", "m"))
    energy = p**2 / (2 * m) + k * x**2 / 2
    drift = float(np.abs(energy / energy[:, :1] - 1).max())
    done(drift < 1e-6, f"energy kept to {drift:.1e}")

    model = DHN(width=8, depth=1, latent_size=2, validation=0.0, seed=seed)
    model.fit(data, steps=TRAINING_STEPS)
    finite = bool(np.isfinite(model.trained.codes).all())
    done(finite, f"{TRAINING_STEPS} steps, {model.parameters} weights")

    forecast = model.forecast(data[:, :16], 16)
    done(bool(np.isfinite(forecast.q).all()), "16 states ahead of 16 trajectories")

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: model.forecast(data[:, :16], 16).q, range(2))
    same = np.array_equal(first, forecast.q) and np.array_equal(second, forecast.q)
    done(same, "equal forecasts" if same else "the forecasts of two threads differ")


if __name__ == "__main__":
    main(int(sys.argv[1]))
