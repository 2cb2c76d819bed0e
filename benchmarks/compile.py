"""Compilation: time to the first training step, cold and from the persistent cache.

    python benchmarks/compile.py --json

Each row is a fresh process: import, build the model, take one step.
"""

import json
import os
import subprocess
import sys
import tempfile

from timing import arguments, report

CHILD = """
import json, time
start, busy = time.perf_counter(), time.process_time()
from cases import Training, default_sized, paper_sized, recipe
import jax
imported = time.perf_counter()
config = {"default": default_sized(), "transformer": paper_sized(2)}["NAME"]
training = Training(config, recipe(config))
ready = time.perf_counter()
jax.block_until_ready(training())
first = time.perf_counter()
print(json.dumps({
    "import_seconds": imported - start,
    "first_step_seconds": first - ready,
    "all_seconds": first - start,
    "cpu_seconds": time.process_time() - busy,
}))
"""


def run(name: str, cache: str) -> dict:
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
        "PYTHONPATH": os.path.dirname(os.path.abspath(__file__)),
    }
    child = [sys.executable, "-c", CHILD.replace("NAME", name)]
    said = subprocess.run(child, env=environment, capture_output=True, text=True, check=True)
    return json.loads(said.stdout.splitlines()[-1])


def main(argv: list[str]) -> None:
    args = arguments(__doc__).parse_args(argv)
    rows = []
    for name in ("default", "transformer"):
        with tempfile.TemporaryDirectory() as cache:
            for state in ("cold", "cached"):
                rows.append({"model": name, "cache": state, **run(name, cache)})
    report("time to the first step", rows, args.json)


if __name__ == "__main__":
    main(sys.argv[1:])
