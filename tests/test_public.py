"""What `import dhn` offers."""

import ast
import inspect

import pytest

import dhn


@pytest.mark.parametrize("name", dhn.__all__)
def test_every_public_name_is_there_and_documented(name):
    value = getattr(dhn, name)
    assert name in dir(dhn)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert inspect.getdoc(value)


def test_the_three_lists_of_names_agree():
    """Checkers read the imports, Python reads the table, `import *` reads `__all__`."""
    tree = ast.parse(inspect.getsource(dhn))
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dhn.")
        for alias in node.names
    }
    assert imported == set(dhn.__all__) == {*dhn._WHERE, "UserError"}


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'dhn' has no attribute 'simulat'"):
        dhn.simulat  # noqa: B018


def test_the_version_is_the_installed_one():
    from importlib.metadata import version

    assert dhn.__version__ == version("dhn")
