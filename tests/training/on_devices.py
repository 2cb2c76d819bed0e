"""Trains a small problem on all devices and prints the losses; `test_devices.py` runs it."""

import json
import sys

import jax
from small import oscillators, problem, recipe

from dhn.training.fit import fit

if __name__ == "__main__":
    folder, options = sys.argv[1], json.loads(sys.argv[2])
    found = fit(
        *problem(oscillators(24, 40)),
        recipe(steps=60, **options),
        directory=folder,
        resume=True,
        progress=False,
        chunk_seconds=1e-6,
    )
    print(
        json.dumps(
            {
                "devices": jax.device_count(),
                "losses": [x["loss"] for x in found.history],
                "validation": found.validation,
                "codes": found.codes.tolist(),
            }
        )
    )
