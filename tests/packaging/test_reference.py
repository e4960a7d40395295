"""The Python API on the site: every module that a document imports is there, and its docstrings say enough."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

import pytest

from tests.packaging.environment import ROOT


def site_pages() -> Any:
    """The hook that makes the pages; MkDocs itself need not be there."""
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / ".ci/site_pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    stand_ins = {name: ModuleType(name) for name in ("mkdocs", "mkdocs.structure", "mkdocs.structure.files")}
    stand_ins["mkdocs.structure.files"].__dict__.update(File=object, Files=object)
    before = {name: sys.modules.get(name) for name in stand_ins}
    sys.modules.update(stand_ins)
    try:
        spec.loader.exec_module(module)
    finally:
        for name, was in before.items():
            sys.modules.pop(name) if was is None else sys.modules.__setitem__(name, was)
    return module


SITE = site_pages()
MODULES = [name for names in SITE.PAGES.values() for name in names]


def test_what_documents_import_is_there() -> None:
    paths = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*/*.py")]
    text = "\n".join(path.read_text() for path in paths)
    named = {*re.findall(r"^\s*(?:from|import) ((?:apimachinery|kubewright)(?:\.\w+)+)", text, re.MULTILINE)}
    packages = {name.rpartition(".")[0] for name in MODULES}  # `from kubewright.testing import ApiServer`
    assert named - {*MODULES} - packages == set()


@pytest.mark.parametrize("title", SITE.PAGES)
def test_pages_show_signatures_as_written(title: str) -> None:
    page = SITE.python_api(title)
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        assert not re.search(r" at 0x|(?:: |-> )'", block), block
        assert max(map(len, block.splitlines())) <= 130, block


def public(module: ModuleType) -> Iterator[tuple[str, FunctionType, str]]:
    """(where, function, docstrings that speak of it) of all public functions and methods."""
    for label, value in SITE.public_names(module):
        if inspect.isfunction(value):
            yield f"{module.__name__}.{label}", value, value.__doc__ or ""
        elif inspect.isclass(value):
            for name, held in vars(value).items():
                function = SITE.function_of(held)
                if not name.startswith("_") and inspect.isfunction(function):
                    said = f"{value.__doc__ or ''}\n{function.__doc__ or ''}"
                    yield f"{module.__name__}.{label}.{name}", function, said


@pytest.mark.parametrize("name", MODULES)
def test_errors_that_are_raised_are_told(name: str) -> None:
    """Those that a function's own lines raise: ``raise Error(…)`` is in its docstring, or in that of its class."""
    missing = []
    for where, function, said in public(import_module(name)):
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        except (OSError, SyntaxError):
            continue
        raised = {
            node.exc.func.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Raise)
            and isinstance(node.exc, ast.Call)
            and isinstance(node.exc.func, ast.Name)
            and node.exc.func.id[:1].isupper()
        }
        caught = {
            name.id
            for node in ast.walk(tree)
            if isinstance(node, ast.ExceptHandler) and node.type is not None
            for name in ast.walk(node.type)
            if isinstance(name, ast.Name)
        }
        missing += [f"{where}: {error}" for error in raised - caught if error not in said]
    assert missing == [], "\n".join(missing)
