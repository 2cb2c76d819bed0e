"""From a trained model to what the page computes with: plain JSON values and packed arrays.

This is the only file of the room that reads a trained model.
"""

from typing import Any, cast

import numpy as np

from dhn.codes.probe import Probe
from dhn.errors import UserError
from dhn.explorer.arrays import encode
from dhn.models.config import DHNConfig
from dhn.models.damping import LearnedDamping
from dhn.models.dhn import DHNModel
from dhn.models.networks.mlp import MLPNetwork
from dhn.models.stage import PairedStage


def export_model(trained: Any) -> dict[str, Any]:
    """Weights, units, codes and probes of a trained model.

    **Arguments:** `trained`, what `dhn.load(path).trained` holds.

    **Returns:** a JSON-able mapping; see the files in `web/` for who reads what.
    """
    config = trained.config
    check_form(config)
    model = cast(DHNModel, trained.model)
    return {
        "system": trained.system,
        "names": list(trained.names),
        "angles": list(trained.context.angles),
        "units": dict(trained.units),
        "time_step": float(trained.context.time_step),
        "scaler": trained.scaler.to_dict(),
        "form": _form(config, model),
        "codes": _codes(trained),
    }


def check_form(config: Any) -> None:
    """Refuse a model that the page cannot run: it runs MLPs that move by steps of the grid.

    **Arguments:** `config`, the configuration of a trained model of any kind.
    """
    what = _unable(config)
    if what is not None:
        raise UserError(
            f"the explorer runs a DHN with an MLP, 1 <= stride <= block_size, spacing 1 and, for "
            f"two networks, clean rounds alone; this is {what}. Train with the default preset."
        )


def can_run(model: Any) -> bool:
    """Whether the page can run this trained model."""
    return _unable(model.trained.config) is None


def _unable(config: Any) -> str | None:
    """What the page cannot run, in words; None if it can."""
    if config.kind != "dhn":
        return f"a model of kind {config.kind!r}"
    if config.network.kind != "mlp":
        return f"a scalar network of kind {config.network.kind!r}"
    if min(config.spacings) != 1:
        return f"a model whose finest stage has spacing {min(config.spacings)}"
    if not 1 <= config.stride <= config.block_size:
        return f"block size {config.block_size} with stride {config.stride}"
    if config.inference.noisy_rounds:
        return f"two networks with {config.inference.noisy_rounds} noisy rounds"
    return None


def _form(config: DHNConfig, model: DHNModel) -> dict[str, Any]:
    # Both kinds of stage have what is read here; only `left` needs two networks.
    stage = cast(PairedStage, model.finest)
    hamiltonians = [stage.right] if config.linked else [stage.right, stage.left]
    damping = None
    if config.damping == "learned":
        learned = cast(LearnedDamping, stage.damping)
        damping = {"base": float(learned.base), "slope": encode(learned.slope, "f8")}
    network = cast(MLPNetwork, stage.right.network)
    return {
        "linked": config.linked,
        "block_size": config.block_size,
        "stride": config.stride,
        "scale": float(stage.scale),
        "rounds": config.inference.clean_rounds,
        "periods": list(network.features.periods),
        "damping": damping,
        "networks": [_network(cast(MLPNetwork, h.network)) for h in hamiltonians],
    }


def _network(network: MLPNetwork) -> dict[str, Any]:
    form = network.form
    arrays = ("embed", "embed_bias", "weights", "biases", "readout")
    return {
        **{name: encode(getattr(network, name)) for name in arrays},
        "form": form and {"matrix": encode(form.matrix), "slope": encode(form.slope)},
        "activation": network.activation,
    }


def _codes(trained: Any) -> dict[str, Any]:
    """The Gaussian over codes, the training codes in its coordinates, parameters and probes."""
    prior, codes = trained.prior, np.asarray(trained.codes, np.float64)
    whitened = (codes - prior.mean) @ np.linalg.pinv(prior.basis).T
    varying, constants = {}, {}
    for name, values in trained.params.items():
        values = np.asarray(values, np.float64)
        if not np.isfinite(values).all():
            continue
        if np.ptp(values) > 1e-9 * np.abs(values).max(initial=1e-300):
            varying[name] = values
        else:
            constants[name] = float(values[0])
    return {
        "mean": encode(prior.mean, "f8"),
        "basis": encode(prior.basis, "f8"),
        "training": encode(whitened, "f8"),
        "params": {name: encode(values, "f8") for name, values in varying.items()},
        "constants": constants,
        "probes": {name: _probe(Probe.fit(codes, values)) for name, values in varying.items()},
    }


def _probe(probe: Probe) -> dict[str, Any]:
    slope = np.asarray(probe.weights / probe.scale)  # an infinite scale makes this zero
    bend = probe.bend
    return {
        "intercept": float(probe.intercept - probe.mean @ slope),
        "slope": encode(slope, "f8"),
        "error": float(probe.error),
        "bend": bend
        and {
            "centres": encode(bend.centres, "f8"),
            "weights": encode(bend.weights, "f8"),
            "width": float(bend.width),
        },
    }
