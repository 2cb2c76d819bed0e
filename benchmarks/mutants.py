"""A mutation check: does a test notice when a line of the core is wrong?

    python benchmarks/mutants.py             # all; goes on where it stopped
    python benchmarks/mutants.py blocks 12   # those of a room, or of a number

Each mutant changes one expression in a copy of the source. The few test files that concern it run
first; for those that pass all of these, the folders of its room follow: always what `make test`
runs, up to the first failure. In the end the tests that failed run on the unchanged source, where
they must pass. Results are kept in .cache/mutants.jsonl under a hash of the mutant, the source and
the tests, so that only what has changed is run again.
"""

import hashlib
import importlib
import json
import os
import resource
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
COPY = ROOT / ".cache" / "mutants"
RESULTS = ROOT / ".cache" / "mutants.jsonl"
MOST_SECONDS = 900  # of processor time: a mutant that runs longer counts as caught

WINDOWS, SPEC, NOISE, MASKS = (
    (f"tests/blocks/test_{name}.py",) for name in ("windows", "spec", "noise", "masks")
)
STAGE = (
    "tests/models/test_stage.py",
    "tests/models/test_dhn_model.py",
    "tests/models/test_denoise_window.py",
)
EQUATIONS = ("tests/models/test_hamiltonian.py", *STAGE)
SOLVE = ("tests/models/test_solve.py",)
DAMPING = ("tests/models/test_damping.py",)
NETWORK = (
    "tests/models/test_features.py",
    "tests/models/test_fast_path.py",
    "tests/models/test_hamiltonian.py",
)
AUTODECODE = ("tests/codes/test_autodecode.py", "tests/reconstruct/test_exact_model.py")
LINEAR = ("tests/reconstruct/test_linear.py",)
ENGINE = (
    "tests/reconstruct/test_linear.py",
    "tests/reconstruct/test_exact_model.py",
    "tests/reconstruct/test_engine.py",
)


def _codes(name: str) -> tuple[str, ...]:
    return (f"tests/codes/test_{name}.py",)


Mutant = tuple[str, str, str, tuple[str, ...]]
MUTANTS: tuple[Mutant, ...] = (
    # file, expression, what stands there instead, the tests that concern it
    ("blocks/windows.py", "reach = (length - 1) * spacing", "reach = length * spacing", WINDOWS),
    ("blocks/windows.py", "i * spacing : i * spacing + steps", "i : i + steps", WINDOWS),
    ("blocks/windows.py", "complete & known", "complete | known", WINDOWS),
    ("blocks/windows.py", "spacing * jnp.arange(length)", "jnp.arange(length)", WINDOWS),
    ("blocks/spec.py", "slice(0, self.block_size)", "slice(0, self.stride)", SPEC),
    ("blocks/spec.py", "slice(self.stride, self.stride + self.block_size)",
     "slice(self.stride, self.block_size)", SPEC),
    ("blocks/spec.py", "return max(self.block_size, self.stride)", "return self.block_size",
     SPEC),
    ("blocks/spec.py", "return min(self.block_size, self.stride)", "return self.stride", SPEC),
    ("blocks/spec.py", "return self.stride * self.time_step",
     "return self.block_size * self.time_step", SPEC),
    ("blocks/noise.py", "return (1 - alpha) * x + alpha * jr", "return x + alpha * jr", NOISE),
    ("blocks/noise.py", "jr.randint(key, known.shape, 1, denoising_steps + 1)",
     "jr.randint(key, known.shape, 0, denoising_steps)", NOISE),
    ("blocks/noise.py", "jnp.ceil(x * denoising_steps)", "jnp.floor(x * denoising_steps)", NOISE),
    ("blocks/noise.py", "jnp.where(known[..., None], x, x + step)",
     "jnp.where(known[..., None], x + step, x)", NOISE),
    ("blocks/noise.py", "(sigma / (1 + sigma))", "(sigma / (1 - sigma))", NOISE),
    ("blocks/masks.py", "< spec.context_length", "<= spec.context_length", MASKS),
    ("blocks/masks.py", "< 2 * spec.stride", "< spec.stride", MASKS),
    ("blocks/masks.py", "start = (length - unknown) // 2", "start = (length - unknown) // 2 + 1",
     MASKS),
    ("blocks/masks.py", "jnp.arange(b) < b // 2", "jnp.arange(b) < b // 2 + 1", MASKS),
    ("blocks/masks.py", "return Known(draw(key_q), draw(key_p))",
     "return Known(draw(key_q), draw(key_q))", MASKS),
    ("models/hamiltonian.py", "return Q_source + dP, P_target + dQ",
     "return Q_source + dP, P_target - dQ", EQUATIONS),
    ("models/hamiltonian.py", "return Q_target - dP, P_source - dQ",
     "return Q_target + dP, P_source - dQ", EQUATIONS),
    ("models/hamiltonian.py", "Q_source + dP, P_target + dQ", "Q_source + dQ, P_target + dP",
     EQUATIONS),
    ("models/hamiltonian.py", "return scale * network", "return network", EQUATIONS),
    ("models/stage.py", "level.q[:, spec.target], level.p[:, spec.source]",
     "level.q[:, spec.source], level.p[:, spec.target]", EQUATIONS),
    ("models/stage.py", "newest.q[:, spec.target], newest.p[:, spec.source], level",
     "window.q[:, spec.target], window.p[:, spec.source], level", EQUATIONS),
    ("models/stage.py", "newest = renoise(select(known, window, newest))",
     "newest = renoise(newest)", EQUATIONS),
    ("models/stage.py", "return P_target + source.p - P_source",
     "return P_target - source.p + P_source", EQUATIONS),
    ("models/stage.py", "return Q_source + target.q - Q_target",
     "return Q_source + target.p - Q_target", EQUATIONS),
    ("models/stage.py", "total / jnp.maximum(count, 1)[:, None]", "total", EQUATIONS),
    ("models/stage.py", '("p", spec.source, self.P_source)',
     '("p", spec.target, self.P_source)', EQUATIONS),
    ("models/stage.py", "[:, states]) / stage.scale)", "[:, states]) * stage.scale)",
     EQUATIONS),
    ("models/stage.py", "unknown = ~getattr(known, part)[:, states, None]\n            count",
     "unknown = getattr(known, part)[:, states, None]\n            count",
     (*STAGE, "tests/models/test_paper_preset.py")),
    ("models/stage.py", "equation += jnp.where(rows, 0.0, squares)",
     "equation += jnp.where(rows, squares, 0.0)", (*STAGE, "tests/models/test_blocks_preset.py")),
    ("models/dhn.py", "first = spec.block_size - spec.step_length", "first = 0",
     (*STAGE, "tests/reconstruct/test_exact_model.py")),
    ("models/dhn.py", "ahead * (x[:, -1:] - before)", "ahead * (before - x[:, -1:])",
     ("tests/models/test_blocks_preset.py",)),
    ("models/dhn.py", "keys = jr.split(stage_key)", "keys = (stage_key, stage_key)", STAGE),
    ("models/dhn.py", "BlockSpec(config.block_size, config.stride, spacing * context.time_step)",
     "BlockSpec(config.block_size, config.stride, context.time_step)",
     (*STAGE, "tests/models/test_damping.py")),
    ("models/denoise.py", "jnp.arange(config.noisy_rounds, 0, -1, dtype=dtype)",
     "jnp.arange(config.noisy_rounds - 1, -1, -1, dtype=dtype)", STAGE[::-1]),
    ("models/denoise.py", "return select(known, window, clean), None", "return clean, None",
     STAGE[::-1]),
    ("models/solve.py", "moved = x - _solve_samples(linear, r)",
     "moved = x + _solve_samples(linear, r)", SOLVE),
    ("models/solve.py", "return FixedPoint(x, failed == 0)", "return FixedPoint(x, failed >= 0)",
     SOLVE),
    ("models/solve.py", "matrices = jnp.moveaxis(columns, 0, -1)",
     "matrices = jnp.moveaxis(columns, 0, 1)", SOLVE),
    ("models/damping.py", "jnp.exp(self.rate(z) * lag)", "jnp.exp(-self.rate(z) * lag)", DAMPING),
    ("models/damping.py", "(self.base + z @ self.slope) / self.time_step",
     "(self.base + z @ self.slope) * self.time_step", DAMPING),
    ("models/networks/features.py", "[jnp.sin(x / unit), jnp.cos(x / unit)]",
     "[jnp.sin(x * unit), jnp.cos(x * unit)]", NETWORK),
    ("models/networks/product.py", "lambda g, x, weight: product(g, weight.T)",
     "lambda g, x, weight: product(g, weight)", NETWORK),
    ("codes/codebook.py", "state.rows.at[row].add(-learning_rate * step",
     "state.rows.at[row].add(learning_rate * step", _codes("codes")),
    ("codes/codebook.py", "mean / (1 - B1**age)", "mean", _codes("codes")),
    ("codes/least_squares.py", "at, at.x - step, promise", "at, at.x + step, promise",
     _codes("least_squares")),
    ("codes/batches.py", "np.minimum(np.arange(first, first + batch), n - 1)",
     "np.minimum(np.arange(first, first + batch) + 1, n - 1)", _codes("batches")),
    ("codes/probe.py", "left_out = vectors @ (inverse * turned) / (vectors**2 @ inverse)",
     "left_out = vectors @ (inverse * turned)", _codes("probe")),
    ("codes/probe.py", "(self(codes + side) - self(codes - side)) / 2",
     "(self(codes + side) - self(codes - side))", _codes("probe")),
    ("codes/autodecode.py", "expected = covariance + jnp.linalg.inv(hessian)",
     "expected = covariance", AUTODECODE),
    ("codes/autodecode.py", 'jnp.einsum("nab,nb->na", precision, u - centre)',
     'jnp.einsum("nab,nb->na", precision, u + centre)', AUTODECODE),
    ("reconstruct/linear.py", "normal = normal[1:, 1:] - row[1:-1, None] * row[1:]",
     "normal = normal[1:, 1:] + row[1:-1, None] * row[1:]", LINEAR),
    ("reconstruct/linear.py", "(rows[j, -1] - (rows[j, j + 1 : -1] * found).sum(0)) / rows[j, j]",
     "(rows[j, -1] - (rows[j, j + 1 : -1] * found).sum(0))", LINEAR),
    ("reconstruct/linear.py", "tie = jnp.concatenate([A, B, C, -e[..., None]], axis=-1)",
     "tie = jnp.concatenate([A, B, C, e[..., None]], axis=-1)", LINEAR),
    ("reconstruct/linear.py", "return R[:, size : 2 * size + r, size:], R[:, :size]",
     "return R[:, : size + r, size:], R[:, :size]", LINEAR),
    ("reconstruct/question.py", "weight * (position - j) / (k - j)",
     "weight * (position - j) / (j - k)", ENGINE[1:]),
    ("reconstruct/windows.py", "g : g + L].set(split[:, :, g])", "0:L].set(split[:, :, g])",
     ENGINE[1:]),
    ("reconstruct/smoother.py", "prior.centre - at.code)", "at.code - prior.centre)", ENGINE[1:]),
    ("reconstruct/smoother.py", "left = root * (1 - between.fraction)",
     "left = root * (1 + between.fraction)", ENGINE[1:]),
    ("reconstruct/smoother.py", "[None] + L <= length", "[None] + L < length", ENGINE[1:]),
    ("reconstruct/job.py", "states[:, span:] = whole[:, span:]", "pass", ENGINE[1:]),
    ("reconstruct/engine.py", "1.0 / np.maximum(noise, least_noise(knowledge)) ** 2, 0.0)\n    re",
     "1.0 / np.maximum(noise, least_noise(knowledge)), 0.0)\n    re", ENGINE[1:]),
    ("reconstruct/job.py", "better = other.misfit < path.misfit[rows]",
     "better = other.misfit > path.misfit[rows]", ENGINE[1:]),
    ("reconstruct/forecast.py", "joined.at(slice(-model.context_length, None))",
     "joined.at(slice(0, model.context_length))", ENGINE[1:]),
)  # fmt: skip
MORE = {
    "blocks": ("tests/blocks", "tests/models", "tests/test_model_contract.py"),
    "models": ("tests/models", "tests/test_model_contract.py", "tests/reconstruct"),
    "codes": ("tests/codes", "tests/reconstruct", "tests/estimator"),
    "reconstruct": ("tests/reconstruct", "tests/estimator"),
}
"""Room -> the tests that its mutants must pass as well before they count as survivors."""
# Survivors with a reason: name of the file and the expression -> why no test can or need notice.
REASONS: dict[tuple[str, str], str] = {
    ("models/stage.py", "return P_target + source.p - P_source"):
        "the solution is the same: plain iteration diverges, and Newton's method finds it",
}  # fmt: skip


def main(chosen: list[str]) -> int | str:
    """Run the mutants that have no result yet, and print a table."""
    COPY.mkdir(parents=True, exist_ok=True)
    shutil.copytree(ROOT / "src", COPY / "src", dirs_exist_ok=True)
    _preload()
    known = {}
    if RESULTS.is_file():
        known = {x["key"]: x for x in map(json.loads, RESULTS.read_text().splitlines())}
    numbers = [
        number for number, mutant in enumerate(MUTANTS, 1)
        if not chosen or str(number) in chosen or mutant[0].split("/")[0] in chosen
    ]  # fmt: skip
    found: dict[int, dict[str, Any]] = {}
    for more in (False, True):
        for number in numbers:
            file, old, new, few = MUTANTS[number - 1]
            if number in found and found[number]["caught"]:
                continue
            tests = MORE[file.split("/")[0]] if more else few
            key = _key(file, old, new, tests)
            if key not in known:
                known[key] = {"key": key, **_try(file, old, new, tests)}
                with RESULTS.open("a") as results:
                    results.write(json.dumps(known[key]) + "\n")
            found[number] = known[key]
            _show(number, found[number])
    caught = [found[number]["caught"] for number in numbers]
    print(f"{sum(caught)} of {len(caught)} mutants caught; {sum(caught[:60])} of the first 60")
    tests = {x["how"] for x in found.values() if x["caught"] and "::" in x["how"]}
    right = _fails(tuple(sorted(tests))) if tests else {"caught": False, "how": ""}
    print(f"the {len(tests)} tests that caught them pass without one: {not right['caught']}")
    return f"{right['how']} fails without a mutant" if right["caught"] else 0


def _show(number: int, result: dict[str, Any]) -> None:
    file, old, new, _ = MUTANTS[number - 1]
    reason = "" if result["caught"] else REASONS.get((file, old), "")
    sign = "caught  " if result["caught"] else "SURVIVED"
    change = f"{old!r} -> {new!r}"
    cost = f"({result['cpu_seconds']} s)"
    print(f"{number:2d} {sign} {file}: {change} {result['how']} {cost} {reason}", flush=True)


def _preload() -> None:
    """Import what is slow once; every mutant is a fork of this process."""
    sys.path.insert(0, str(ROOT / "tests"))
    importlib.import_module("conftest")  # sets the environment that JAX reads
    del sys.modules["conftest"]
    for name in ("jax", "jax.numpy", "equinox", "diffrax", "optax", "pytest", "beartype",
                 "hypothesis", "pydantic", "scipy.linalg", "scipy.special"):  # fmt: skip
        importlib.import_module(name)


def _key(file: str, old: str, new: str, tests: tuple[str, ...]) -> str:
    sources = [ROOT / "src" / "dhn" / file]
    for path in (ROOT / test for test in tests):
        sources += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    parts = [old, new, *(x.read_text() for x in sources)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def _try(file: str, old: str, new: str, tests: tuple[str, ...]) -> dict[str, Any]:
    target = COPY / "src" / "dhn" / file
    right = (ROOT / "src" / "dhn" / file).read_text()
    assert right.count(old) == 1, f"{file}: {old!r} stands there {right.count(old)} times"
    target.write_text(right.replace(old, new))
    try:
        return _fails(tests)
    finally:
        target.write_text(right)


def _fails(tests: tuple[str, ...]) -> dict[str, Any]:
    """Whether one of these tests fails, which first, and the processor time until then."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    child = os.fork()
    if child == 0:
        _run(tests)
    _, status = os.waitpid(child, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    output = (COPY / "output.txt").read_text().splitlines()
    failed = [x.split(" ", 1)[1] for x in output if x.startswith(("FAILED ", "ERROR "))]
    code = os.waitstatus_to_exitcode(status)
    how = failed[0].split(" - ")[0] if failed else f"exit code {code}"
    return {"caught": code != 0, "how": how, "cpu_seconds": round(spent)}


def _run(tests: tuple[str, ...]) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    out = os.open(COPY / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    import pytest

    sys.path[:0] = [str(COPY / "src"), str(ROOT)]
    os.environ["PYTHONPATH"] = str(COPY / "src")
    os.chdir(ROOT)
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not slow and not browser"]
    os._exit(int(pytest.main([*options, *tests])))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
