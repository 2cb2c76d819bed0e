"""The grid is one table: every cell once, split without loss, named by what decides its result."""

import pytest

from dhn.errors import UserError
from dhn.reproduction.cell import Cell
from dhn.reproduction.claims import FORMS
from dhn.reproduction.grid import groups, make_grid, only, shard
from dhn.reproduction.presets import EXPERIMENTS, PRESETS


@pytest.mark.parametrize("preset", PRESETS)
def test_names_are_unique_and_make_folders(preset):
    names = [cell.name for cell in make_grid(preset)]
    assert len(names) == len(set(names)) > 50
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-%") for name in names)
    assert max(map(len, names)) < 200


@pytest.mark.parametrize("preset", PRESETS)
def test_every_experiment_has_a_dhn_a_baseline_and_a_sanity_check(preset):
    for experiment in EXPERIMENTS:
        kinds = {cell.kind for cell in make_grid(preset, [experiment])}
        assert "dhn" in kinds
        assert kinds & {"hnn", "vanilla", "cnn", "neighbour"}
        assert experiment == "representation" or kinds & {"persistence", "spline"}


def test_ranked_models_have_three_seeds_where_claims_are_made():
    cells = make_grid("quick", ["completion"])
    seeds = {c.seed for c in cells if c.model == "Paper b=2" and c.data.system == "double_pendulum"}
    assert seeds == {0, 1, 2}


def test_every_figure_has_all_three_forms():
    for experiment in ("fit", "completion", "representation", "interpolation"):
        forms = {c.model.split()[0] for c in make_grid("quick", [experiment]) if c.kind == "dhn"}
        assert forms == set(FORMS)
    probed = make_grid("quick", ["representation"])
    for form in ("Paper", "Blocks"):
        strides = {b: set() for b in (2, 4, 8)}
        for c in probed:
            if c.model.startswith(form):
                strides[c.block_size].add(c.stride)
        assert strides == {2: {1}, 4: {1, 2, 3}, 8: set(range(1, 8))}


def test_the_paper_grid_has_the_paper_exactly():
    cells = [c for c in make_grid("paper", ["completion"]) if c.model == "Paper b=2"]
    assert {(c.preset, c.seed, c.training.steps) for c in cells} == {("paper", 0, 6432)}
    assert {tuple(c.options) for c in cells} == {("block_size", "stride")}
    assert all(c.match is None for c in cells)


def test_a_changed_configuration_is_another_cell():
    cell = make_grid("quick", ["completion"])[0]
    wider = cell.model_copy(update={"options": {**cell.options, "width": 64}})
    assert wider.name != cell.name and wider.model_key != cell.model_key
    again = Cell.model_validate_json(cell.model_dump_json())
    assert again.name == cell.name


def test_what_is_measured_does_not_change_what_is_trained():
    """Fit and completion look at the same model, and so do all integrators of an HNN."""
    cells = make_grid("quick", ["fit", "completion"])
    keys = {c.model_key for c in cells if c.model == "Default" and c.seed == 0}
    assert len(keys) == 2  # one a system
    rollouts = {c.model for c in cells if c.kind == "hnn" and c.model.startswith("HNN Euler")}
    assert len(rollouts) == 5
    assert len({c.model_key for c in cells if c.model in rollouts}) == 2


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_shards_partition_the_grid(parts):
    grid = make_grid("quick")
    shards = [shard(grid, f"{i + 1}/{parts}") for i in range(parts)]
    names = [cell.name for part in shards for cell in part]
    assert sorted(names) == sorted(cell.name for cell in grid)
    keys = [{c.model_key for c in part if c.trained} for part in shards]
    assert sum(map(len, keys)) == len(set().union(*keys))  # no model is trained twice


def test_groups_hold_every_cell_once():
    grid = make_grid("smoke")
    assert sum(map(len, groups(grid))) == len(grid)


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0"])
def test_a_bad_shard_is_told(text):
    with pytest.raises(UserError, match="a shard is i/n with 1 <= i <= n"):
        shard(make_grid("smoke"), text)


def test_only_takes_parts_of_names_and_wildcards():
    grid = make_grid("smoke")
    assert {c.experiment for c in only(grid, "completion.")} == {"completion"}
    assert all(c.name.startswith("fit.") for c in only(grid, "fit.*persistence*"))
    with pytest.raises(UserError, match="no cell matches 'xyz'"):
        only(grid, "xyz")


def test_unknown_names_are_told():
    with pytest.raises(UserError, match="unknown experiment 'fitt'; expected one of fit, compl"):
        make_grid("smoke", ["fitt"])
    with pytest.raises(UserError, match="unknown preset 'fast'; expected one of smoke"):
        make_grid("fast")
