"""`dhn doctor`: what is installed here, and whether it works; to be pasted into a report."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any, final

from annotated_types import Le

from dhn.cli.arguments import Common, Positive
from dhn.cli.result import Console, Result, draw_lines
from dhn.memory import disk_size

PACKAGES = ("dhn", "jax", "jaxlib", "equinox", "optax", "diffrax", "numpy", "scipy")
EXTRAS = (
    "pandas", "xarray", "h5py", "pyarrow", "netCDF4", "zarr", "submitit", "scikit-learn",
    "jax-cuda12-plugin",
)  # fmt: skip
"""Optional; their absence is stated."""

CUDA = ', though there is an NVIDIA driver: pip install "dhn[cuda]"'


@final
@dataclasses.dataclass(frozen=True)
class Arguments:
    """Print versions, devices and the cache folder, and run a short self-test.

    Example: dhn doctor --json

    The self-test simulates, trains a small model for a few steps, forecasts, and runs one compiled
    program on two threads at once. It runs in a process of its own, which is ended if it hangs.
    """

    timeout: Annotated[Positive, Le(1e6)] = 180.0
    """Seconds after which the self-test counts as hanging."""


def run(args: Arguments, common: Common) -> Result:
    """Gather the facts, then run the self-test."""
    import os
    import platform
    import shutil

    from dhn.cli.asking import use_cache

    use_cache()
    import jax

    devices = [f"{x.platform}: {x.device_kind}" for x in jax.devices()]
    gpu = any(x.platform in ("gpu", "cuda", "rocm") for x in jax.devices())
    cache = jax.config.values.get("jax_compilation_cache_dir")
    test = _self_test(args.timeout, common.seed)
    found = {
        "versions": {"python": platform.python_version()} | _versions(PACKAGES),
        "optional": _versions(EXTRAS),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "devices": devices,
        "gpu": gpu,
        "advice": "" if gpu or shutil.which("nvidia-smi") is None else CUDA,
        "cache": {"folder": str(cache), "megabytes": disk_size(Path(str(cache))) / 1e6},
        "self_test": test,
        "healthy": all(step["ok"] for step in test),
    }
    return Result(found, lambda console: _draw(console, found), code=0 if found["healthy"] else 1)


def _versions(packages: tuple[str, ...]) -> dict[str, str | None]:
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str | None] = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def _self_test(timeout: float, seed: int) -> list[dict[str, Any]]:
    """Steps with their results; the first that did not finish is the last in the list."""
    import json
    import subprocess
    import sys

    from dhn.cli.selftest import STEPS

    command = [sys.executable, "-m", "dhn.cli.selftest", str(seed)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        output, reason = done.stdout, (done.stderr.strip().splitlines() or [""])[-1]
        reason = f"ended with code {done.returncode}: {reason}"
    except subprocess.TimeoutExpired as error:
        # The partial output is bytes even in text mode.
        output = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
        reason = f"did not finish within {timeout:g} s"
    steps = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if len(steps) < len(STEPS):
        steps.append({"step": STEPS[len(steps)], "ok": False, "result": reason})
    return steps


def _draw(console: Console, found: dict[str, Any]) -> None:
    def listed(versions: dict[str, str | None]) -> str:
        return ", ".join(f"{k} {x or '(not installed)'}" for k, x in versions.items())

    cache = found["cache"]
    lines = {
        "versions": listed(found["versions"]),
        "optional": listed(found["optional"]),
        "platform": f"{found['platform']}, {found['cores']} cores",
        "devices": ", ".join(found["devices"]),
        "GPU": "yes" if found["gpu"] else f"none that JAX can use{found['advice']}",
        "cache": f"{cache['folder']} ({cache['megabytes']:.1f} MB)",
    }
    for step in found["self_test"]:
        lines[step["step"]] = f"{'ok' if step['ok'] else 'FAILED'}: {step['result']}"
    draw_lines(console, lines.items())
    console.print("Everything works." if found["healthy"] else "Something is wrong, see above.")
