"""What leaves a trained model for the page: exact weights, one line for what it cannot run."""

import json
import re
from importlib import resources

import numpy as np
import pytest

import dhn
from dhn.cli import main
from dhn.explorer import build_page, write_explorer
from dhn.explorer.arrays import decode, encode
from dhn.explorer.export import check_form, export_model
from dhn.explorer.page import SCRIPTS, build_payload
from dhn.models import DenoisingConfig, DHNConfig
from dhn.models.presets import get_preset
from dhn.reproduction.baselines.config import HNNConfig


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_arrays_survive_the_round_trip_bit_for_bit(dtype):
    array = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(dtype)
    packed = json.loads(json.dumps(encode(array)))
    assert packed["dtype"] == dtype
    np.testing.assert_array_equal(decode(packed), array)


@pytest.mark.parametrize("form", ["one network", "two networks", "damped, with a quadratic form"])
def test_weights_are_exported_exactly(trained, form):
    model, _ = trained(form)
    payload = json.loads(json.dumps(export_model(model.trained), allow_nan=False))
    network = model.trained.model.finest.right.network
    exported = payload["form"]["networks"][0]
    for name in ("embed", "embed_bias", "weights", "biases", "readout"):
        np.testing.assert_array_equal(decode(exported[name]), getattr(network, name))
    assert len(payload["form"]["networks"]) == (1 if model.config.linked else 2)
    assert (payload["form"]["damping"] is None) == (model.config.damping == "none")
    assert (exported["form"] is None) == (not model.config.network.quadratic)


def test_training_codes_come_back_from_their_whitened_coordinates(trained):
    model, _ = trained("one network")
    codes = export_model(model.trained)["codes"]
    back = decode(codes["mean"]) + decode(codes["training"]) @ decode(codes["basis"]).T
    np.testing.assert_allclose(back, model.trained.codes, atol=1e-7)
    assert set(codes["params"]) == {"l"} and set(codes["constants"]) == {"m", "g"}


@pytest.mark.parametrize(
    "config, what",
    [
        (get_preset("paper")[0], "a scalar network of kind 'transformer'"),
        (DHNConfig(block_size=2, spacings=(4, 2)), "a model whose finest stage has spacing 2"),
        (DHNConfig(stride=2), "block size 1 with stride 2"),
        (DHNConfig(stride=0), "block size 1 with stride 0"),
        (
            DHNConfig(
                linked=False, denoising_weight=1.0, inference=DenoisingConfig(noisy_rounds=10)
            ),
            "two networks with 10 noisy rounds",
        ),
        (HNNConfig(), "a model of kind 'hnn'"),
    ],
)
def test_a_form_that_the_page_cannot_run_is_refused_in_one_line(config, what):
    with pytest.raises(dhn.UserError) as error:
        check_form(config)
    assert str(error.value) == (
        "the explorer runs a DHN with an MLP, 1 <= stride <= block_size, spacing 1 and, for two "
        f"networks, clean rounds alone; this is {what}. Train with the default preset."
    )


def test_the_page_is_one_file_without_an_outside_address(trained, tmp_path):
    model, data = trained("one network")
    size = write_explorer(tmp_path / "page.html", model, data[:3], train=data, title="A <b>")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert size == len(text.encode()) < 400_000
    assert "@@" not in text
    assert "<h1>A &lt;b&gt;</h1>" in text
    assert not re.search(r"https?://|src=|@import|url\(", text)


def test_without_data_training_trajectories_and_codes_come_from_the_model(trained):
    model, data = trained("one network")
    runs = build_payload(model)["runs"]
    assert len(runs) == len(data)
    for run in runs:
        row = data.ids.index(run["id"])
        np.testing.assert_allclose(decode(run["q"]), data.q[row], atol=1e-5)
        np.testing.assert_allclose(decode(run["p"]), data.p[row], atol=1e-5)
        np.testing.assert_array_equal(decode(run["code"]), model.trained.codes[row])
        assert run["params"]["l"] == data.params["l"][row]


def test_every_script_is_in_the_page_and_short():
    folder = resources.files("dhn.explorer") / "web"
    names = {file.name for file in folder.iterdir()}
    assert names == {f"{name}.js" for name in SCRIPTS} | {"index.html", "style.css"}
    lengths = {name: len((folder / name).read_text().splitlines()) for name in names}
    assert max(lengths.values()) <= 400, lengths


def test_an_id_cannot_end_the_script_that_holds_the_model(trained):
    model, data = trained("one network")
    renamed = data[:1].replace(ids=("</script><script>alert(1)",))
    assert "</script><script>alert" not in build_page(model, renamed)


def test_the_command_writes_a_page_and_says_what_is_missing(trained, tmp_path, capsys):
    model, data = trained("one network")
    model.save(tmp_path / "run")
    dhn.write(data[:4], tmp_path / "new.npz")
    assert main(["explore", str(tmp_path / "run"), str(tmp_path / "new.npz")]) == 0
    out = capsys.readouterr().out
    assert str(tmp_path / "run" / "explorer.html") in out
    assert "the run's training data were not found" in out
    assert main(["explore", str(tmp_path / "run"), "-o", str(tmp_path / "no" / "x.html")]) == 2
    assert "does not exist" in capsys.readouterr().err
