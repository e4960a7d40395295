"""The floors of the house (floors.yaml), checked over every import statement of the two packages."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PLAN: Any = yaml.load((Path(__file__).parent / "floors.yaml").read_text(), yaml.CSafeLoader)
OURS = ("kubewright", "apimachinery")


@dataclass(frozen=True, slots=True)
class Import:
    module: str
    """Who imports."""
    target: str
    """What, as a full name: a module, or a name in one."""
    place: str

    @property
    def top(self) -> str:
        return self.target.partition(".")[0]


def imports_in(source: str, module: str, is_package: bool, place: str) -> Iterator[Import]:
    """Every import of ``source``, those inside functions and under TYPE_CHECKING too."""
    for node in ast.walk(ast.parse(source)):
        where = f"{place}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            yield from (Import(module, alias.name, where) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = module.split(".") if is_package else module.split(".")[:-1]
            up = package[: len(package) - node.level + 1] if node.level else []
            target = ".".join([*up, *([node.module] if node.module else [])])
            yield from (Import(module, f"{target}.{alias.name}", where) for alias in node.names)


@cache
def imports(root: Path) -> tuple[Import, ...]:
    found: list[Import] = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        found.extend(imports_in(path.read_text(), module, is_package, str(path.relative_to(ROOT))))
    return tuple(found)


def floor_of(name: str) -> str | None:
    """The longest floor that holds ``name`` (a module, or a name in a module)."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        candidate = ".".join(parts[:end])
        # The floor of a whole package does not take in packages below it that nobody listed.
        if candidate in PLAN["floors"]:
            return candidate
    return None


def generator_files() -> list[Path]:
    return sorted((ROOT / "generator").rglob("*.py"))


def test_floors_name_modules_that_exist_or_are_announced() -> None:
    for name, plan in PLAN["floors"].items():
        for target in plan["may"]:
            assert target in PLAN["floors"], f"{name} may import {target}, which is no floor"


def test_every_folder_is_a_floor() -> None:
    """A folder of the runtime without walls of its own would let anybody in."""
    folders = {
        ".".join(path.parent.relative_to(ROOT / "generator").parts)
        for path in (ROOT / "generator" / "apimachinery").rglob("*.py")
    }
    assert sorted(folders - PLAN["floors"].keys()) == []


def test_everybody_imports_only_what_lies_below() -> None:
    wrong = []
    for found in imports(ROOT / "generator"):
        if found.top not in OURS:
            continue
        own, target = floor_of(found.module), floor_of(found.target)
        if own != target and target not in PLAN["floors"][own]["may"]:
            allowed_wholly = own in ("kubewright.tools", "kubewright.testing") and found.top == "apimachinery"
            if not allowed_wholly:
                wrong.append(f"{found.place}: {found.module} ({own}) imports {found.target} ({target})")
    assert wrong == []


def test_no_emitter_knows_another() -> None:
    """What makes one language imports the contract, what emitters share, and itself; so a language can be taken out."""
    own = "kubewright.emit"
    emitters = {floor for floor in PLAN["floors"] if floor.startswith(f"{own}.")} - {
        f"{own}.{part}" for part in ("interface", "code", "registry")
    }
    folders = {
        f"{own}.{path.parent.name}" for path in (ROOT / "generator/kubewright/emit").glob("*/__init__.py")
    }
    assert emitters == folders - {f"{own}.code"}
    for emitter in emitters:
        assert set(PLAN["floors"][emitter]["may"]) & (emitters | {f"{own}.registry"}) == set(), emitter
    for shared in ("interface", "code"):
        assert set(PLAN["floors"][f"{own}.{shared}"]["may"]) & emitters == set(), shared


def test_libraries_are_those_a_floor_declares() -> None:
    wrong = []
    for found in imports(ROOT / "generator"):
        top = found.top
        if top in OURS or top in sys.stdlib_module_names or top in PLAN["only_in"]:
            continue
        own = floor_of(found.module)
        assert own is not None, found
        if top not in PLAN["floors"][own].get("libraries", ()):
            wrong.append(f"{found.place}: {own} does not declare the library {top}")
    assert wrong == []


def test_some_libraries_are_imported_by_one_file_alone() -> None:
    wrong = []
    for found in imports(ROOT / "generator"):
        homes = PLAN["only_in"].get(found.top)
        if homes and found.module not in ([homes] if isinstance(homes, str) else homes):
            wrong.append(f"{found.place}: only {homes} imports {found.top}")
    assert wrong == []


def test_nothing_imports_what_is_forbidden() -> None:
    wrong = [
        f"{found.place}: {found.target}"
        for found in imports(ROOT / "generator")
        if found.top in PLAN["forbidden"]
    ]
    assert wrong == []


def test_generated_packages_stand_on_the_runtime_alone() -> None:
    wrong = []
    for found in imports(ROOT / "generated"):
        own = found.module.partition(".")[0]
        allowed = {own, *PLAN["generated"]["may"], *PLAN["generated"]["libraries"]}
        if found.top not in allowed and found.top not in sys.stdlib_module_names:
            wrong.append(f"{found.place}: {found.target}")
    assert wrong == []


def test_names_say_something() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for path in generator_files()
        for part in path.relative_to(ROOT / "generator").with_suffix("").parts
        if part.lower() in PLAN["forbidden_names"]
    ]
    assert wrong == []


CODE = re.compile(r"(?<![\w.])(eval|exec|compile)\s*\(")


def test_text_never_becomes_code() -> None:
    """No call of ``eval``, ``exec`` or ``compile`` but of what ``dataclasses`` writes, in the two packages."""
    calls = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.func.id}"
        for path in generator_files()
        if path != ROOT / "generator/kubewright/tools/envtest/image.py"
        if CODE.search(text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id in {"eval", "exec", "compile"}
    ]
    assert calls == []


def test_files_have_the_size_of_one_idea() -> None:
    """Long files are printed, very long ones fail."""
    size = PLAN["size"]
    lines = {
        ".".join(path.relative_to(ROOT / "generator").with_suffix("").parts): path.read_text().count("\n")
        for path in generator_files()
    }
    long = {name: count for name, count in lines.items() if count > size["report"]}
    for name, count in sorted(long.items(), key=lambda item: -item[1]):
        print(f"{count:5} {name}")
    assert {name: count for name, count in long.items() if count > size["limit"]} == {}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import a.b", ["a.b"]),
        ("from . import x", ["kubewright.ir.x"]),
        ("from .types import Ref", ["kubewright.ir.types.Ref"]),
        ("from ..source import crd", ["kubewright.source.crd"]),
        ("def f():\n    from kubewright import emit", ["kubewright.emit"]),
    ],
)
def test_imports_are_found(source: str, expected: list[str]) -> None:
    found = imports_in(source, "kubewright.ir.api", is_package=False, place="x.py")
    assert [item.target for item in found] == expected


def test_a_higher_floor_is_seen() -> None:
    assert floor_of("kubewright.ir.api.Resource") == "kubewright.ir"
    assert floor_of("apimachinery.schema.validation.check") == "apimachinery.schema.validation"
    assert floor_of("kubewright.emit.python.models") not in PLAN["floors"]["kubewright.source"]["may"]
