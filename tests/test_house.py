"""The rules of the house, kept by reading the source rather than by goodwill."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "dhn"
FILES = sorted(SOURCE.rglob("*.py"))
NAMES = [str(file.relative_to(SOURCE)) for file in FILES]

# A room may import itself and the rooms before it.
ROOMS = (
    "systems",
    "data",
    "blocks",
    "models",
    "baselines",
    "training",
    "inference",
    "evaluation",
    "experiments",
    "reports",
    "cli",
)
ANYWHERE = ("errors",)
# What `simulate` returns, so that systems need it, although data comes after systems.
CONTAINER = "dhn.data.trajectories"

PLOTTING = ("matplotlib", "plotly")
UNSAFE = ("pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal")


def imports(file: Path) -> Iterator[str]:
    """Every module a file imports, wherever the statement stands."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are written in full, not relative"
            assert node.module is not None
            # `from dhn import data` names a room just as `import dhn.data` does.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from names if node.module == "dhn" else [node.module]


def offences(room: str, modules: Iterator[str]) -> list[str]:
    """Which of the imports a file of that room may not make."""
    found = []
    for module in modules:
        package, _, rest = module.partition(".")
        target = rest.split(".")[0]
        if package != "dhn" or target in ANYWHERE or module == CONTAINER:
            continue
        if target not in ROOMS or ROOMS.index(target) > ROOMS.index(room):
            found.append(module)
    return found


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_imports_flow_one_way(file):
    room = file.relative_to(SOURCE).parts[0]
    if room in ROOMS:
        assert offences(room, imports(file)) == [], f"{room} may not import what comes after it"


def test_the_rule_catches_an_import_against_the_flow(tmp_path):
    file = tmp_path / "bad.py"
    file.write_text("def f():\n    from dhn.training import fit\n    import dhn.data.files\n")
    assert offences("blocks", imports(file)) == ["dhn.training"]
    assert offences("systems", imports(file)) == ["dhn.training", "dhn.data.files"]


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_only_reports_draw_and_nobody_pickles(file):
    for module in imports(file):
        root = module.split(".")[0]
        assert root not in UNSAFE, f"{module}: a pickle runs whatever it was told to"
        assert root not in PLOTTING or "reports" in file.parts, f"{module} belongs in reports"
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            assert isinstance(node.value, ast.Constant) and node.value.value is False


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_files_stay_short(file):
    assert len(file.read_text().splitlines()) <= 400, "split it: one concept a file"


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_randomness_is_explicit(file):
    """numpy's global generator is never drawn from: only generators made from a seed."""
    allowed = {"default_rng", "Generator", "SeedSequence", "Philox", "PCG64"}
    for node in ast.walk(ast.parse(file.read_text())):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Attribute)
            and node.value.attr == "random"
            and isinstance(node.value.value, ast.Name)
            and node.value.value.id in ("np", "numpy")
        ):
            assert node.attr in allowed, f"line {node.lineno}: np.random.{node.attr}"
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "default_rng":
            assert node.args or node.keywords, f"line {node.lineno}: default_rng without a seed"


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_every_module_says_what_it_is_for(file):
    if file.read_text().strip():
        assert ast.get_docstring(ast.parse(file.read_text()))


def test_the_container_needs_no_system():
    """Otherwise the exception for it would let imports flow in a circle."""
    waiting, seen = [CONTAINER], set()
    while waiting:
        module = waiting.pop()
        seen.add(module)
        file = SOURCE.joinpath(*module.split(".")[1:])
        file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
        waiting += [m for m in imports(file) if m.startswith("dhn.") and m not in seen]
    assert not [module for module in seen if module.startswith("dhn.systems")]
