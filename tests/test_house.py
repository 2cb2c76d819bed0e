"""The rules of the house, kept by reading the source rather than by goodwill."""

import ast
import builtins
import functools
import importlib.util
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import dhn

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
    "explorer",
    "reports",
    "jobs",
    "reproduction",
    "cli",
)
ANYWHERE = ("checks", "errors", "kept", "memory", "printable")
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


def final_or_abstract(node: ast.ClassDef) -> bool:
    """Exceptions, enums, named tuples, protocols and pydantic models may be neither."""
    bases = [ast.unparse(base).split("[")[0].rpartition(".")[2] for base in node.bases]
    decorators = [ast.unparse(x).split("(")[0] for x in node.decorator_list]
    free = ("Protocol", "NamedTuple", "TypedDict", "BaseModel", "Config", "Enum", "Error", "ABC")
    return (
        "final" in decorators
        or node.name.lstrip("_").startswith("Abstract")
        or any(base.endswith(free) or issubclass_of_error(base) for base in bases)
    )


def issubclass_of_error(base: str) -> bool:
    found = getattr(builtins, base, None)
    return isinstance(found, type) and issubclass(found, BaseException)


def test_every_class_is_abstract_or_final():
    bad = ast.parse("class Half:\n    pass\n").body[0]
    assert isinstance(bad, ast.ClassDef) and not final_or_abstract(bad)
    found = [
        (name(file), node.name)
        for file in FILES
        for node in ast.walk(tree(file))
        if isinstance(node, ast.ClassDef) and not final_or_abstract(node)
    ]
    assert found == []


def bare_numbers(source: str) -> list[str]:
    """Module-level numbers without a comment beside or above them or a text below them."""
    lines, body, found = source.splitlines(), ast.parse(source).body, []
    plain = (ast.Constant, ast.Tuple, ast.UnaryOp, ast.BinOp, ast.expr_context)
    for node, following in zip(body, [*body[1:], None], strict=False):
        if not isinstance(node, ast.Assign):
            continue
        parts = list(ast.walk(node.value))
        constants = [x.value for x in parts if isinstance(x, ast.Constant)]
        numbers = [x for x in constants if isinstance(x, int | float) and not isinstance(x, bool)]
        if not numbers or any(isinstance(x, str) for x in constants):
            continue
        if not all(isinstance(x, (*plain, ast.operator, ast.unaryop)) for x in parts):
            continue
        documented = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        beside = any("#" in lines[i - 1] for i in (node.lineno, node.end_lineno or node.lineno))
        above = lines[node.lineno - 2].startswith("#") if node.lineno > 1 else False
        if not (documented or beside or above):
            found.append(ast.unparse(node))
    return found


def test_numbers_have_a_unit_or_a_reason():
    assert bare_numbers("A = 3\nB = (1, 2)\n") == ["A = 3", "B = (1, 2)"]
    assert bare_numbers('A = 3  # s\nB = 4\n"""Metres."""\nC = {"x": 1}\n') == []
    found = {name(file): bare_numbers(file.read_text()) for file in FILES}
    assert {file: numbers for file, numbers in found.items() if numbers} == {}


def test_library_errors_name_no_flag():
    """`--steps` means nothing to somebody who calls `fit(steps=...)`."""
    found = [
        (name(file), text.value)
        for file in FILES
        if file.relative_to(SOURCE).parts[0] != "cli"
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Raise) and node.exc is not None
        for text in ast.walk(node.exc)
        if isinstance(text, ast.Constant) and isinstance(text.value, str)
        if re.search(r"(?<![\w-])--[a-z]", text.value)
    ]
    assert found == []


MODEL_ROOMS = ("models", "codes", "mechanics", "estimator")


def type_tests(file: Path, classes: dict[str, str]) -> Iterator[str]:
    """Classes of models that a file of another room asks for with `isinstance`."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            names = {x.id for x in ast.walk(node.args[1]) if isinstance(x, ast.Name)}
            yield from (x for x in names if classes.get(x) not in (None, file.parts[-2]))


def test_models_are_not_asked_for_their_type_elsewhere():
    classes = {
        node.name: file.relative_to(SOURCE).parts[0]
        for file in FILES
        if file.relative_to(SOURCE).parts[0] in MODEL_ROOMS
        for node in tree(file).body
        if isinstance(node, ast.ClassDef) and not final_config(node)
    }
    found = {
        name(file): "".join(sorted(set(type_tests(file, classes))))
        for file in FILES
        if file.relative_to(SOURCE).parts[0] not in MODEL_ROOMS
    }
    assert {file: names for file, names in found.items() if names} == {}


def final_config(node: ast.ClassDef) -> bool:
    return node.name.endswith(("Config", "Options"))


def missing_sections(function: Callable[..., object]) -> list[str]:
    """Which of Arguments and Returns a public function lacks in its docstring."""
    signature, text = inspect.signature(function), inspect.getdoc(function) or ""
    needed = ["Arguments:"] if set(signature.parameters) - {"self", "cls"} else []
    if signature.return_annotation not in (None, "None", inspect.Signature.empty):
        needed += ["Returns:"] if needed else []
    return [x for x in needed if x not in text]


def test_public_functions_document_arguments_and_returns():
    found = {}
    for label in dhn.__all__:
        thing = getattr(dhn, label)
        members = [("", thing)] if inspect.isfunction(thing) else []
        if inspect.isclass(thing) and not issubclass(thing, Exception):
            public = [x for x in dir(thing) if not x.startswith("_")]
            members = [(f".{x}", getattr(thing, x)) for x in public]
        for member, value in members:
            if inspect.isroutine(value) and callable(value) and missing_sections(value):
                found[label + member] = missing_sections(value)
    assert found == {}


def test_every_mutant_changes_one_place():
    """benchmarks/mutants.py goes stale when the lines that it changes are rewritten."""
    path = SOURCE.parent.parent / "benchmarks" / "mutants.py"
    spec = importlib.util.spec_from_file_location("mutants", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    stale = [x[:2] for x in module.MUTANTS if (SOURCE / x[0]).read_text().count(x[1]) != 1]
    assert stale == [] and len(module.MUTANTS) >= 60
