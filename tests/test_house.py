"""The rules of the house, kept by reading the source rather than by goodwill."""

import ast
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "dhn"
FILES = sorted(SOURCE.rglob("*.py"))

# A room may import itself and the rooms before it.
ROOMS = (
    "trajectories",
    "systems",
    "files",
    "blocks",
    "models",
    "codes",
    "training",
    "mechanics",
    "reconstruct",
    "estimator",
    "evaluation",
    "reports",
    "explorer",
    "reproduction",
    "cli",
)
ANYWHERE = ("errors", "memory")
# What `simulate` returns, so that systems need it, although data comes after systems.
CONTAINER = "dhn.trajectories.container"

LONGEST = 400  # lines; past that, split: one concept a file

PLOTTING = ("matplotlib", "plotly")
UNSAFE = ("pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal")


@functools.cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def name(file: Path) -> str:
    return str(file.relative_to(SOURCE))


def imports(file: Path) -> Iterator[str]:
    """Every module a file imports, wherever the statement stands."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are written in full, not relative"
            assert node.module is not None
            # `from dhn import data` names a room just as `import dhn.data` does.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from names if node.module == "dhn" else [node.module]


def offences(room: str, modules: Iterable[str]) -> list[str]:
    """Which of the imports a file of that room may not make."""
    found = []
    for module in modules:
        package, _, rest = module.partition(".")
        target = rest.split(".")[0]
        if package != "dhn" or target in ANYWHERE:
            continue
        if target not in ROOMS or ROOMS.index(target) > ROOMS.index(room):
            found.append(module)
    return found


def test_imports_flow_one_way():
    rooms = {file: file.relative_to(SOURCE).parts[0] for file in FILES}
    found = {name(f): offences(room, imports(f)) for f, room in rooms.items() if room in ROOMS}
    assert len(found) > 20  # the files were found at all
    assert {file: modules for file, modules in found.items() if modules} == {}


def test_the_rule_catches_an_import_against_the_flow(tmp_path):
    file = tmp_path / "bad.py"
    file.write_text("def f():\n    from dhn.training import fit\n    import dhn.files.table\n")
    assert offences("blocks", imports(file)) == ["dhn.training"]
    assert offences("systems", imports(file)) == ["dhn.training", "dhn.files.table"]


def test_only_reports_draw():
    found = [
        (name(file), module)
        for file in FILES
        for module in imports(file)
        if module.split(".")[0] in PLOTTING and not {"reports", "reproduction"} & set(file.parts)
    ]
    assert found == []


def test_nobody_pickles():
    """A pickle runs whatever it was told to."""
    modules = [(name(f), m) for f in FILES for m in imports(f) if m.split(".")[0] in UNSAFE]
    assert modules == []
    flags = [
        (name(file), node.value.lineno)
        for file in FILES
        for node in ast.walk(tree(file))
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle"
        if not (isinstance(node.value, ast.Constant) and node.value.value is False)
    ]
    assert flags == []


def test_files_stay_short():
    lengths = {name(file): len(file.read_text().splitlines()) for file in FILES}
    assert {file: length for file, length in lengths.items() if length > LONGEST} == {}


def global_randomness(node: ast.AST) -> bool:
    """`np.random.normal()` and the like, or a generator made without a seed."""
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    if called.endswith("random.default_rng"):
        return not (node.args or node.keywords)
    module, _, function = called.rpartition(".")
    safe = ("Generator", "SeedSequence", "Philox", "PCG64")
    return module in ("np.random", "numpy.random") and function not in safe


def test_randomness_is_explicit():
    for bad in ("np.random.normal(3)", "np.random.seed(0)", "np.random.default_rng()"):
        assert global_randomness(ast.parse(bad, mode="eval").body)
    assert not global_randomness(ast.parse("np.random.default_rng(seed)", mode="eval").body)
    found = [
        (name(file), ast.unparse(node))
        for file in FILES
        for node in ast.walk(tree(file))
        if global_randomness(node)
    ]
    assert found == []


def test_every_module_says_what_it_is_for():
    found = [name(f) for f in FILES if tree(f).body and not ast.get_docstring(tree(f))]
    assert found == []
