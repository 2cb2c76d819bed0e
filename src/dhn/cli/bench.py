"""`dhn bench`: how fast this machine trains, fits codes and forecasts."""

import dataclasses
from typing import Annotated, Any, final

from annotated_types import Le

from dhn.cli.arguments import Common, PositiveInt
from dhn.cli.result import Console, Result


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Time the default model on this machine: compilation, training, codes, forecast.

    Example: dhn bench --preset paper --steps 50

    The benchmarks with references to compare with are in benchmarks/; `make bench` runs them.
    """

    preset: str = "default"
    """default, paper, paired or transformer."""
    steps: Annotated[PositiveInt, Le(10**9)] = 300
    """Training steps to time."""
    trajectories: PositiveInt = 200
    """New trajectories to complete from 16 states."""


def run(args: Arguments, common: Common) -> Result:
    """Train, then complete new trajectories twice: the second time nothing is compiled."""
    import time

    from dhn.cli.asking import use_cache
    from dhn.estimator import DHN
    from dhn.systems import simulate

    use_cache()
    model = DHN(args.preset, seed=common.seed, validation=0.0)
    train = simulate("double_pendulum", trajectories=500, seed=common.seed)
    test = simulate("double_pendulum", trajectories=args.trajectories, seed=common.seed + 1)

    def timed(function):
        start = time.perf_counter()
        function()
        return time.perf_counter() - start

    first = timed(lambda: model.fit(train, steps=1))
    speed = timed(lambda: model.fit(train, steps=args.steps + 1)) - timed(
        lambda: model.fit(train, steps=1)
    )
    cold = timed(lambda: model.complete(test, 16))
    codes = timed(lambda: model.encode(test[:, :16]))
    both = timed(lambda: model.complete(test, 16))
    values: dict[str, Any] = {
        "preset": args.preset,
        "parameters": model.parameters,
        "first_step_seconds": first,
        "step_milliseconds": 1e3 * speed / args.steps,
        "windows_per_second": args.steps * model.training.batch_size / speed,
        "first_completion_seconds": cold,
        "codes_seconds": codes,
        "forecast_seconds": both - codes,
        "trajectories": args.trajectories,
        "predicted_states": test.states - 16,
    }
    return Result(values, lambda console: _draw(console, values))


def _draw(console: Console, values: dict[str, Any]) -> None:
    n, ahead = values["trajectories"], values["predicted_states"]
    console.print(
        f"{values['preset']}, {values['parameters']} parameters\n"
        f"first training step, compilation included: {values['first_step_seconds']:.1f} s\n"
        f"training step: {values['step_milliseconds']:.2f} ms, "
        f"{values['windows_per_second']:.0f} windows/s\n"
        f"completing {n} trajectories the first time: {values['first_completion_seconds']:.1f} s\n"
        f"codes of {n} trajectories: {values['codes_seconds']:.2f} s\n"
        f"{ahead} states ahead of {n} trajectories: {values['forecast_seconds']:.2f} s"
    )
