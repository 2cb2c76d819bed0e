"""Verdicts follow from the numbers: separated, overlapping, reversed, missing."""

import pytest

from dhn.reproduction.claims import (
    FAILS,
    FORMS,
    HOLDS,
    NO_BLOCKS,
    NOISE,
    NOT_RUN,
    Sample,
    claims,
    compare,
)
from dhn.reproduction.contests import contests


def cell(experiment, model, kind, seed, system="double_pendulum", task="", b=0, **metrics):
    return {
        "experiment": experiment, "model": model, "kind": kind, "seed": seed, "system": system,
        "task": task, "block_size": b, "metrics": metrics,
    }  # fmt: skip


def seeds(values, *args, metric="mse", **kwargs):
    return [cell(*args, i, **kwargs, **{metric: value}) for i, value in enumerate(values)]


def verdict(rows, name, form=None):
    (row,) = [row.row() for row in rows if row.id == name and form in (None, row.form)]
    return row


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((1.0, 1.2, 1.4), (1.5, 2.0, 3.0), HOLDS),
        ((1.0, 1.2, 1.6), (1.5, 2.0, 3.0), NOISE),
        ((4.0, 5.0), (1.5, 2.0, 3.0), FAILS),
        ((1.0,), (2.0,), NOISE),  # single runs differ by so much anyway
        ((1.0,), (3.1,), HOLDS),
        ((3.1,), (1.0,), FAILS),
        ((1.0, 2.0), (float("inf"), float("inf")), HOLDS),
    ],
)
def test_comparison(a, b, expected):
    assert compare(Sample("a", a), Sample("b", b)) == expected


def test_by_far_needs_the_factor():
    a, b = Sample("a", (1.0, 1.1)), Sample("b", (2.0, 2.1))
    assert compare(a, b) == HOLDS
    assert compare(a, b, factor=3.0) != HOLDS


def test_nothing_run_is_no_verdict():
    rows = [row.row() for row in (*claims([]), *contests([]))]
    judged = [(row["id"], row["form"]) for row in rows][: 8 * len(FORMS)]
    assert judged == [(f"C{i}", form) for i in range(1, 9) for form in FORMS]
    empty = {(row["id"], row["form"]) for row in rows if row["verdict"] != NOT_RUN}
    assert empty == {("C4", "Default"), ("C6", "Default")}
    assert {row["verdict"] for row in rows} == {NOT_RUN, NO_BLOCKS}


def test_forms_are_judged_by_their_own_numbers():
    """The default may win where the paper's form loses against the same rival."""
    rival = seeds((1e-5, 2e-5), "completion", "ResNet 2", "vanilla")
    ours = {"Paper b=2": (1e-2, 2e-2), "Blocks b=2": (1e-5, 3e-5), "Default": (1e-8, 2e-8)}
    cells = rival + [x for m, v in ours.items() for x in seeds(v, "completion", m, "dhn")]
    found = {form: verdict(claims(cells), "C3", form)["verdict"] for form in FORMS}
    assert found == {"Paper": FAILS, "Blocks": NOISE, "Default": HOLDS}


def completion(dhn, vanilla):
    return [
        *seeds(dhn, "completion", "Blocks b=2", "dhn", b=2),
        *seeds(vanilla, "completion", "ResNet 2", "vanilla"),
        *seeds((9.0, 9.0), "completion", "ResNet 1", "vanilla"),
    ]


@pytest.mark.parametrize(
    ("dhn", "vanilla", "expected"),
    [
        ((1e-6, 2e-6, 3e-6), (1e-5, 2e-5, 3e-5), HOLDS),
        ((1e-5, 2e-5, 3e-5), (1e-6, 2e-6, 3e-6), FAILS),
        ((1e-6, 2e-6, 3e-5), (1e-5, 2e-5, 3e-5), NOISE),
    ],
)
def test_c3_compares_with_the_best_vanilla_network(dhn, vanilla, expected):
    row = verdict(claims(completion(dhn, vanilla)), "C3", "Blocks")
    assert row["verdict"] == expected
    assert "ResNet 2" in row["why"] and "ResNet 1" not in row["why"]
    assert row["measured"]["completion, double_pendulum: ResNet 2"] == pytest.approx(
        vanilla[0] ** (1 / 3) * vanilla[1] ** (1 / 3) * vanilla[2] ** (1 / 3)
    )


def test_one_system_against_the_claim_is_enough():
    cells = [
        *completion((1e-6, 2e-6), (1e-5, 2e-5)),
        *seeds((1e-4, 2e-4), "completion", "Blocks b=2", "dhn", system="single_pendulum"),
        *seeds((1e-6, 2e-6), "completion", "ResNet 2", "vanilla", system="single_pendulum"),
    ]
    assert verdict(claims(cells), "C3", "Blocks")["verdict"] == FAILS


def test_a_missing_number_is_infinitely_bad():
    cells = completion((1e-6, 2e-6), (1e-5, 2e-5))
    for c in cells:
        if c["model"] == "Blocks b=2":
            c["metrics"]["mse"] = None
    assert verdict(claims(cells), "C3", "Blocks")["verdict"] == FAILS


def test_c6_judges_strides_within_a_block_size():
    common = {"metric": "probe_mse", "b": 4}
    cells = [
        *seeds((1e-6, 2e-6), "representation", "Blocks b=4", "dhn", **common),
        *seeds((1e-5, 2e-5), "representation", "Blocks b=4 s=1", "dhn", **common),
    ]
    assert verdict(claims(cells), "C6", "Blocks")["verdict"] == HOLDS
    better = seeds((1e-8, 2e-8), "representation", "Blocks b=4 s=3", "dhn", **common)
    assert verdict(claims(cells + better), "C6", "Blocks")["verdict"] == FAILS


def test_c7_is_content_with_a_tie():
    where = {"task": "same start"}
    cells = [
        *seeds((1e-6, 2e-6), "interpolation", "Blocks b=2", "dhn", **where),
        *seeds((1e-6, 3e-6), "interpolation", "CNN", "cnn", **where),
    ]
    assert verdict(claims(cells), "C7", "Blocks")["verdict"] == HOLDS


def test_the_ceiling_is_no_rival_and_longer_is_better_for_valid_times():
    where = {"task": "f chaos", "metric": "valid_time"}
    cells = [
        *seeds((90.0, 95.0), "stress", "Default", "dhn", **where),
        *seeds((60.0, 64.0), "stress", "ResNet 2", "vanilla", **where),
        *seeds((112.0,), "stress", "True system fitted", "parametric", **where),
    ]
    assert verdict(contests(cells), "Sf")["verdict"] == HOLDS


def test_standing_still_does_not_win_the_energy():
    where = {"task": "d long horizon", "metric": "energy_mse_median"}
    cells = [
        *seeds((1e-5, 2e-5), "stress", "Default", "dhn", **where),
        *seeds((1e-3, 2e-3), "stress", "HNN", "hnn", **where),
        *seeds((0.0,), "stress", "Persistence", "persistence", **where),
    ]
    assert verdict(contests(cells), "Sd")["verdict"] == HOLDS
