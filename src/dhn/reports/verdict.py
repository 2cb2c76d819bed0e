"""The verdict in plain words: how far ahead a forecast is accurate, and where rivals are better."""

import numpy as np

from dhn.evaluation.rivals import Rival, lead
from dhn.evaluation.trial import Trial
from dhn.evaluation.uncertainty import BANDS, coverage
from dhn.reports.html import number

TRUSTED = 0.1  # of the motion's standard deviation
FEW = 3
"""Up to this many stretches are listed one by one."""
HONEST = 0.1
"""Largest difference between the coverage of a band and its nominal level."""


def sentences(trial: Trial) -> list[str]:
    """A few sentences a person can act on."""
    found = [] if (first := warning(trial)) is None else [first]
    found += [_reach(trial), *(_against(trial, rival) for rival in trial.others)]
    if trial.prediction.q_quantiles:
        found.append(_bands(trial))
    if (valid := trial.valid_until()) is not None:
        found.append("V" + valid["sentence"][1:] + ".")
    if trial.poor:
        found.append(
            f"The model explains {trial.poor} of {len(trial.truth)} observed trajectories badly; "
            "do not trust their forecasts. More varied training data would help."
        )
    if trial.left_out:
        found.append(
            f"{trial.left_out} trajectories are left out here: beyond the first "
            f"{len(trial.truth)}, or with a gap where the forecast starts."
        )
    return found


def _reach(trial: Trial) -> str:
    share = trial.relative_errors()
    until, steps = int(np.argmax(np.append(share, np.inf) >= TRUSTED)), len(share)
    size = f"{TRUSTED:.0%} of the test motion's standard deviation"
    if until == 0:
        return f"Already the first forecast state is wrong by more than {size} on average."
    if until == steps:
        return f"The error stays below {size} for all {_ahead(trial, steps)}."
    return f"The error stays below {size} for {_ahead(trial, until)}, and grows beyond it after."


def warning(trial: Trial) -> str | None:
    """What to use instead, if a rival was better on the validation part."""
    rival = trial.winner
    if rival is None:
        return None
    return (
        f"Use {rival.name} ({rival.how}) instead: up to half a period its error on the validation "
        f"part is {number(rival.validation)}, that of this model {number(trial.validation)}."
    )


def _against(trial: Trial, rival: Rival) -> str:
    found = lead(trial.metrics, rival.metrics)
    if not found.worse:
        return f"It beats {rival.name} at all {_ahead(trial, found.steps)}."
    if found.behind == found.steps:
        return f"It never beats {rival.name}: use that instead, or train longer or on more data."
    if len(found.worse) <= FEW:
        where = " and ".join(_stretch(trial, *ends) for ends in found.worse)
        return f"It beats {rival.name} except {where}."
    first = found.worse[0][0]
    return (
        f"It beats {rival.name} at {found.steps - found.behind} of {found.steps} states; the first "
        f"where it does not is {_ahead(trial, first)}."
    )


def _stretch(trial: Trial, first: int, last: int) -> str:
    step = trial.truth.usual_step
    if first == last:
        return f"at state {first} ahead ({number(first * step)} {trial.unit}".strip() + ")"
    times = f"{number(first * step)} to {number(last * step)} {trial.unit}".strip()
    return f"from {first} to {last} states ahead ({times})"


def _bands(trial: Trial) -> str:
    shares = coverage(trial.prediction, trial.truth)
    parts, honest = [], True
    for name, share in shares.items():
        low, high = BANDS[name]
        honest &= abs(share - (high - low)) <= HONEST
        parts.append(f"the {name} band holds {share:.0%}")
    words = " and ".join(parts)
    if honest:
        return f"Its error bars mean what they say: {words} of the measured states."
    narrow = all(share < BANDS[name][1] - BANDS[name][0] for name, share in shares.items())
    kind = "too narrow" if narrow else "off"
    return f"Its error bars are {kind}: {words} of the measured states."


def _ahead(trial: Trial, steps: int) -> str:
    time = f"{number(steps * trial.truth.usual_step)} {trial.unit}".strip()
    periods = ""
    if trial.period is not None:
        periods = f", {number(steps * trial.truth.usual_step / trial.period)} periods"
    return f"{steps} states ahead ({time}{periods})"
