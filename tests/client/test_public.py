"""One public list of names each: of the client, and of controllers. Documents and examples name nothing else."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("apimachinery.client", "apimachinery.controller", "apimachinery.webhook")
SHOWN = [
    ROOT / "README.md",
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "examples").rglob("*.py"),
    *(ROOT / "templates").glob("scaffold*"),
]


@pytest.mark.parametrize("package", PACKAGES)
def test_names_are_the_same_for_checkers_and_at_run_time(package: str) -> None:
    module = import_module(package)
    tree = ast.parse(Path(str(module.__file__)).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    checked = {
        (node.module, alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert checked == {(name, each) for name, several in module.NAMES.items() for each in several.split()}
    assert dir(module) == sorted({name for _, name in checked}) == sorted(module.__all__)
    for name in module.__all__:
        assert not isinstance(getattr(module, name), type(sys)), f"{name} is also a module"
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_and_examples_name_nothing_else(path: Path) -> None:
    if path.name == "ARCHITECTURE.md":
        pytest.skip("speaks of modules")
    text = path.read_text()
    inside = re.findall(r"\bapimachinery\.(?:client|controller|queue|webhook)\.[a-z]\w*", text)
    assert not inside, f"{path}: name what is public: {inside}"
    for package, names in re.findall(
        r"^ *from (apimachinery\.\w+) import (\([^)]*\)|[^\n]*)", text, re.MULTILINE
    ):
        if package in PACKAGES:
            known = import_module(package).__all__
            assert {*re.findall(r"(?<!\bas )\b(?!as\b)[A-Za-z_]\w+", names)} <= {*known}, path


def test_importing_a_package_loads_nothing_of_it() -> None:
    program = (
        "import sys, apimachinery.client, apimachinery.controller, apimachinery.webhook; print(*sys.modules)"
    )
    run = [sys.executable, "-c", program]
    loaded = subprocess.run(run, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert not [name for name in loaded if name.startswith(tuple(f"{each}." for each in PACKAGES))]
    assert "asyncio" not in loaded


def test_a_client_loads_no_http_library() -> None:
    program = (
        "import asyncio, sys\n"
        "from apimachinery.client import AsyncClient, Client, Config\n"
        "config = Config(server='http://127.0.0.1:1')\n"
        "Client(config).close()\n"
        "asyncio.run(AsyncClient(config).close())\n"
        "print(*sys.modules)\n"
    )
    run = [sys.executable, "-c", program]
    loaded = subprocess.run(run, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert not {"aiohttp", "http.client", "email", "httptools", "yaml"} & {*loaded}
