"""Results as `dhn reproduce` would write them, from formulas instead of trainings."""

from typing import Any

import numpy as np

T = np.linspace(0, 10, 128)
ANGLES = {"single_pendulum": ["l"], "double_pendulum": ["l1", "l2"]}
MODELS = {
    "Blocks b=2": ("dhn", 2, 1, 1e-5),
    "Blocks b=8": ("dhn", 8, 4, 1e-3),
    "HNN euler": ("hnn", 0, 0, 1e-1),
    "HNN leapfrog": ("hnn", 0, 0, 1e-2),
    "HNN Euler loss euler": ("hnn", 0, 0, 2e-1),
    "HNN Euler loss leapfrog": ("hnn", 0, 0, 4e-2),
    "vanilla transformer": ("vanilla", 0, 0, 3e-2),
    "persistence": ("persistence", 0, 0, 0.5),
}


def results(*experiments: str, seeds: int = 2) -> dict[str, Any]:
    cells = []
    for seed in range(seeds):
        for experiment in experiments:
            cells += MAKERS[experiment](seed)
    return {
        "schema": 1,
        "preset": "smoke",
        "version": "0.1.0",
        "command": "dhn reproduce --preset smoke -o <out>",
        "started": "2026-01-01T00:00:00Z",
        "finished": "2026-01-01T00:01:00Z",
        "machine": {"cpus": 2, "jax": "0.10.1"},
        "cells": cells,
        "claims": [
            {"id": "C1", "form": "Paper", "statement": "b < 4 & no drift", "measured": "0.001",
             "verdict": "holds", "why": "small"},
            {"id": "C2", "form": "Default", "statement": "beats HNN",
             "measured": {"DHN": 1e-5, "HNN": 0.1}, "verdict": "does not hold",
             "why": "<script>alert(1)</script>"},
        ],
    }  # fmt: skip


def cell(experiment: str, system: str, label: str, seed: int, **fields: Any) -> dict[str, Any]:
    kind, block, stride, _ = MODELS.get(label, ("dhn", None, None, 0.0))
    return {
        "name": f"{experiment}-{system}-{label}-{seed}",
        "experiment": experiment,
        "system": system,
        "model": label,
        "kind": kind,
        "block_size": block,
        "stride": stride,
        "seed": seed,
        "config": {"width": 32},
        "training": {"steps": 10},
        "parameters": 4321,
        "train_seconds": 61.5,
        "steps": 10,
        "metrics": {},
        "curves": {},
        **fields,
    }


def rollouts(experiment: str, seed: int) -> list[dict[str, Any]]:
    given = 8 if experiment == "fit" else 16
    made = []
    for system, lengths in ANGLES.items():
        truth = np.pi / 2 * np.cos(np.outer(T, 1 + 0.3 * np.arange(len(lengths))))
        for label, (_, _, _, size) in MODELS.items():
            error = size * (1 + 0.2 * seed) * (1 + np.arange(128 - given)) ** 1.5 / 1000
            curves = {
                "step": list(range(given, 128)),
                "mse": error.tolist(),
                "energy_mse": (error / 10).tolist(),
                "example": {
                    "t": T.tolist(),
                    "truth_q": truth.tolist(),
                    "predicted_q": (truth * (1 + size * T[:, None])).tolist(),
                    "truth_energy": [0.981] * 128,
                    "predicted_energy": (0.981 + size * np.sin(3 * T)).tolist(),
                    "params": dict.fromkeys(lengths, 1.0),
                },
            }
            metrics = {"mse": float(error.mean()), "energy_mse": float(error.mean() / 10)}
            made.append(cell(experiment, system, label, seed, metrics=metrics, curves=curves))
    return made


def probes(seed: int) -> list[dict[str, Any]]:
    made = []
    for block, strides in {4: (1, 2, 3, 4), 8: (1, 2, 4, 6, 8)}.items():
        for stride in strides:
            error = 1e-4 * (1 + abs(stride / block - 0.5)) * (1 + seed / 10)
            fields = {"block_size": block, "stride": stride, "metrics": {"probe_mse": error}}
            label = f"Blocks b={block}" + ("" if 2 * stride == block else f" s={stride}")
            made.append(cell("representation", "double_pendulum", label, seed, **fields))
    metrics = {"probe_mse": 3e-2}
    made.append(cell("representation", "double_pendulum", "HNN", seed, kind="hnn", metrics=metrics))
    return made


def interpolations(seed: int) -> list[dict[str, Any]]:
    made = []
    for system in ANGLES:
        for label, kind, *errors in (
            ("Blocks b=2", "dhn", 1e-6, 2e-6),
            ("CNN", "cnn", 5e-7, 3e-3),
            ("Cubic spline", "spline", 1e-4, 1e-4),
        ):
            for task, error in zip(("same start", "unseen start"), errors, strict=True):
                fields = {"kind": kind, "task": task, "metrics": {"mse": error * (1 + seed / 5)}}
                made.append(cell("interpolation", system, label, seed, **fields))
    return made


def stress(seed: int) -> list[dict[str, Any]]:
    metrics = {"mse": 1e-2, "mse_late": None, "horizon": 12}
    names = ("noise 1%", "random starts")
    return [
        cell("stress", "double_pendulum", "Blocks b=2", seed, metrics=metrics, task=task)
        for task in names
    ]


MAKERS = {
    "fit": lambda seed: rollouts("fit", seed),
    "completion": lambda seed: rollouts("completion", seed),
    "representation": probes,
    "interpolation": interpolations,
    "stress": stress,
}
