"""The identified physics as formulas that a person can read."""

from typing import Any

import numpy as np

TERMS: dict[str, str] = {
    "sine": "sin({q})", "cosine": "cos({q})", "sine2": "sin(2 {q})", "cosine2": "cos(2 {q})",
    "force": "1", "square": "{q}²", "cube": "{q}³",
    "link_square": "({q} - {before})²", "link_cube": "({q} - {before})³",
    "viscous": "d{q}/dt", "dry": "sign(d{q}/dt)", "slant": "sin²({q}) sign(d{q}/dt)",
    "stribeck": "sign(d{q}/dt) near rest", "drag": "d{q}/dt |d{q}/dt|",
}  # fmt: skip
"""Term of the equations of motion -> the function that its coefficient multiplies."""
READING: dict[str, str] = {
    "even": "(cos({q}) - 1)", "odd": "sin({q})", "even2": "(cos(2 {q}) - 1)", "odd2": "sin(2 {q})",
    "even3": "(cos(3 {q}) - 1)", "odd3": "sin(3 {q})", "even4": "(cos(4 {q}) - 1)",
    "odd4": "sin(4 {q})", "marker_even": "(cos({q} - {before}) - 1)",
    "marker_odd": "sin({q} - {before})",
}  # fmt: skip
"""Term of the sensor -> what its coefficient multiplies in the reading of an angle."""
LENGTHS = {"even": 2, "odd": 3, "even2": 4, "odd2": 5}
"""The same of other coordinates: powers of the distance from the mean over its spread."""
GRAVITY = 9.81  # m/s^2
DRIVEN = 0.2
"""Unexplained forces that change the velocity in a period by more than this share of its root mean
square. Free motions on record have less than 0.07, an oscillator driven by noise has 0.8."""


def lines(physics: dict[str, Any], names: list[str] | None = None) -> list[str]:
    """One line for each group of coefficients, with standard errors.

    Arguments:
        physics: As `MechanicalModel.describe` returns it.
        names: Coordinate names; q1, q2, ... by default.

    Returns:
        Lines of plain text.
    """
    found = []
    for system in physics["systems"]:
        known = names or _names(system)
        if len(physics["systems"]) > 1:
            found.append(f"{system['name']}:")
        head = physics["convention"].split(":")[0]
        if system["parameters"]:
            found.append(f"{head}: " + _joined(_parameter(x) for x in system["parameters"]))
        else:
            masses = [_mass(entry, known) for entry in system["mass"] if entry["error"] > 0]
            if len(known) > 1:
                found.append(f"mass matrix ({head}): " + _joined(masses))
            found.append("forces: " + _joined(_term(x, known) for x in system["potential"]))
            middles = zip(known, system["origin"], strict=True)
            moved = [f"{name} from {middle:.5g}" for name, middle in middles if middle != 0]
            if moved:
                found.append("in these forces coordinates count from their mean: " + _joined(moved))
        found += _pendulum(system)
        found.append("friction: " + _joined(_term(x, known) for x in system["friction"]))
        if system["sensor"]:
            found.append("sensor: " + "; ".join(_sensor(system, known)))
        still = (f"{name} = {x:.4g}" for name, x in zip(known, system["rest"], strict=True))
        found.append("at rest: " + _joined(still))
        per = ", ".join(f"{x:.4g}" for x in system["frequencies"])
        found.append(f"frequencies of small motions, per unit of time: {per or 'none'}")
        noise = [_noise(x, known) for x in system["noise"]]
        found.append("measurement noise: " + ", ".join(noise))
        found += _unexplained(system, known)
    if physics["friction_spread"]:
        found.append(
            f"friction of the moment: its factor varies by {physics['friction_spread']:g}, and "
            f"forecasts take the one that the observed positions tell"
        )
    found.append("learned rest: " + _rest(physics, names))
    kept = [stage["name"] for stage in physics["stages"] if stage["kept"]]
    left = dict.fromkeys(x["name"] for x in physics["stages"] if x["name"] not in kept)
    found.append(
        f"kept: {', '.join(kept) or 'none'}; tried and left out: {', '.join(left) or 'none'}"
    )
    found.append(f"{physics['valid_until']['sentence']} (on the validation part)")
    return found


def _unexplained(system: dict[str, Any], names: list[str]) -> list[str]:
    """A line if the motion is not that of the formulas alone."""
    pushes = {names[x["coordinate"]]: x["push"] for x in system["noise"] if x["push"] > DRIVEN}
    if not pushes:
        return []
    sizes = " and ".join(f"the velocity of {name} by {x:.0%}" for name, x in pushes.items())
    return [
        f"driven: forces that the formulas do not explain change {sizes} of its usual size in a "
        f"period. Is there a drive from outside, or a part that was not measured? These mechanics "
        f"have no driving force, and forecasts cannot last"
    ]


def _rest(physics: dict[str, Any], names: list[str] | None) -> str:
    """Whether a force without a name was added to the formulas, and how large it is."""
    tried = [x for x in physics["stages"] if x["name"].startswith("learned rest")]
    if not tried:
        return (
            "not tried (only for one or two coordinates, with time left, where forecasts err by "
            "more than the sensor)"
        )
    stage = next((x for x in reversed(tried) if x["kept"]), tried[-1])
    if stage["error"] is None:
        return "left out (the training data do not call for it)"
    change = f"validation error {stage['error']:.3g} with it, {stage['before']:.3g} without"
    if not stage["kept"]:
        return f"left out ({change})"
    first = physics["systems"][0]
    sizes = zip(names or _names(first), first["learned_rest"]["force"], strict=True)
    forces = ", ".join(f"{size:.2g} on {name}" for name, size in sizes)
    return f"kept ({change}): {first['learned_rest']['weights']} weights, a usual force of {forces}"


def _names(system: dict[str, Any]) -> list[str]:
    count = len(system["rest"])
    return ["q"] if count == 1 else [f"q{i + 1}" for i in range(count)]


def _value(entry: dict[str, Any]) -> str:
    return f"{entry['value']:.5g} ± {entry['error']:.2g}"


def _noise(entry: dict[str, Any], names: list[str]) -> str:
    slow = ""
    if "slow" in entry:
        slow = f" and a slow error of {entry['slow']:.2g} over {entry['slow_time']:.2g}"
    return f"{names[entry['coordinate']]} {entry['white']:.2g}{slow}"


def _mass(entry: dict[str, Any], names: list[str]) -> str:
    i, j = entry["i"], entry["j"]
    angle = "" if entry["depends"] == "constant" or i == j else f" cos({names[i]} - {names[j]})"
    return f"M{i + 1}{j + 1} = {_value(entry)}{angle}"


def _parameter(entry: dict[str, Any]) -> str:
    if entry["note"] == "held":
        return f"{entry['name']} = {entry['value']:.5g} (held)"
    return f"{entry['name']} = {_value(entry)}" + (f" ({entry['note']})" if entry["note"] else "")


def _term(entry: dict[str, Any], names: list[str]) -> str:
    if entry["term"] == "stiffness":
        i, j = names[entry["i"]], names[entry["j"]]
        return f"({_value(entry)}) {i if i == j else f'{i} {j}'} (stiffness)"
    at = entry["coordinate"]
    term = str(entry["term"])
    pattern = TERMS[term] if term in TERMS else term + " of {q}"
    shape = pattern.format(q=names[at], before=names[max(at - 1, 0)])
    return f"({_value(entry)}) {shape}"


def _pendulum(system: dict[str, Any]) -> list[str]:
    """The length of a pendulum, which is what most people know of it."""
    pull = {x["term"]: x["value"] for x in system["potential"]}
    if system["turning"] != [True] or system["parameters"] or not {"sine", "cosine"} <= set(pull):
        return []
    length = GRAVITY / float(np.hypot(pull["sine"], pull["cosine"]))
    return [
        f"a point mass on a light rod of {length:.4g} m swings so (g = {GRAVITY}, time in seconds)"
    ]


def _sensor(system: dict[str, Any], names: list[str]) -> list[str]:
    """What each coordinate's instrument reads, slow error and noise left out."""
    found: list[str] = []
    for k, name in enumerate(names):
        terms = {x["term"]: _value(x) for x in system["sensor"] if x["coordinate"] == k}
        if "phase" in terms:
            found.append(f"the axis of inertia of {name} is turned by {terms.pop('phase')}")
        if "zero" in terms:
            found.append(f"the zero of {name} is at {terms.pop('zero')}")
        z = f"(({name} - mean)/spread)"
        shapes = READING if system["turning"][k] else {x: f"{z}^{n}" for x, n in LENGTHS.items()}
        before = names[max(k - 1, 0)]
        bend = [f"({x}) {shapes[term].format(q=name, before=before)}" for term, x in terms.items()]
        if bend:
            found.append(f"reading of {name} = {name} + " + " + ".join(bend))
    return found


def _joined(parts: Any) -> str:
    return ", ".join(parts) or "none"
