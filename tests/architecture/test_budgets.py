"""What the house may hold at most, and must hold at least (budgets.yaml): counts over the files of ``generator/``."""

from __future__ import annotations

import ast
import gc
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GENERATOR = ROOT / "generator"
BUDGETS: dict[str, Any] = yaml.load((Path(__file__).parent / "budgets.yaml").read_text(), yaml.CSafeLoader)
AT_LEAST: dict[str, int] = BUDGETS.pop("at_least")


@cache
def sources() -> dict[Path, str]:
    return {path: path.read_text() for path in sorted(GENERATOR.rglob("*.py"))}


@cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(text) for path, text in sources().items()}


@cache
def nodes() -> dict[Path, list[ast.AST]]:
    """Every node of each file: half of the counts look at all of them."""
    gc.disable()  # which would walk two million nodes again and again, of which none is garbage
    try:
        return {path: [*ast.walk(tree)] for path, tree in trees().items()}
    finally:
        gc.freeze()
        gc.enable()


@cache
def calls() -> dict[Path, list[ast.Call]]:
    return {path: [node for node in found if isinstance(node, ast.Call)] for path, found in nodes().items()}


def functions() -> Iterator[tuple[str, int]]:
    """Every function or method with its number of lines."""
    for path, found in nodes().items():
        for node in found:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                place = f"{path.relative_to(GENERATOR)}:{node.lineno} {node.name}"
                yield place, (node.end_lineno or node.lineno) - node.lineno + 1


def server_rooms() -> list[str]:
    server = GENERATOR / "apimachinery" / "server"
    return sorted({str(path.relative_to(server).parts[0]) for path in server.glob("*/*.py")})


def _calls(*names: str) -> list[str]:
    return [
        f"{path.relative_to(GENERATOR)}:{node.lineno}"
        for path, found in calls().items()
        for node in found
        if getattr(node.func, "id", getattr(node.func, "attr", "")) in names
    ]


def offload_calls() -> list[str]:
    """Calls that say where a stretch of work runs."""
    return _calls("apart", "apart_if")


def weighed_calls() -> list[str]:
    """Calls that say how heavy a piece of work is, and leave to ``http.steps`` where it runs."""
    return [
        p for p in _calls("compute", "work") if p.startswith(("apimachinery/server", "apimachinery/access"))
    ]


def files_that_offload() -> list[str]:
    return sorted({place.partition(":")[0] for place in offload_calls()})


def asks_for_family() -> list[str]:
    """``.builtin`` outside the catalog: families answer, nobody asks."""
    return [
        f"{path.relative_to(GENERATOR)}:{node.lineno}"
        for path, found in nodes().items()
        if "catalog" not in path.parts
        for node in found
        if isinstance(node, ast.Attribute) and node.attr == "builtin"
    ]


def attributes_set_late() -> list[str]:
    """Attributes that assembling files set on other objects: constructors get what they need."""
    server = GENERATOR / "apimachinery" / "server"
    return [
        f"{path.name}:{node.lineno} {ast.unparse(node)}"
        for path in (server / "backend.py", *sorted((server / "assembly").glob("*.py")))
        for node in ast.walk(trees()[path])
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and getattr(node.value, "id", "") != "self"
    ]


def long_functions() -> list[str]:
    return [f"{place} {count}" for place, count in functions() if count > 60]


def longest_function() -> list[str]:
    place, count = max(functions(), key=lambda item: item[1])
    return [place] * count


def long_files() -> list[str]:
    return [
        f"{path.relative_to(GENERATOR)} {count}"
        for path, text in sources().items()
        if (count := text.count("\n")) > 500
    ]


def class_names_twice() -> list[str]:
    names = Counter(
        node.name
        for tree in trees().values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return sorted(name for name, count in names.items() if count > 1)


def skipped_formatting() -> list[str]:
    return [str(path) for path, text in sources().items() for _ in range(text.count("# fmt: skip"))]


NOMINAL = frozenset(
    (
        "a all an and around as at before by called each everybody everything for from here how if in into it "
        "its nobody none nothing of on one only other over same see several so some somebody such that the "
        "there these those to under until what when where whether which who whoever whose why with within "
        "without"
    ).split()
)
"""Words that a sentence begins with which names a thing, or a time, instead of what is done."""


def actions_without_a_verb() -> list[str]:
    """Docstrings of functions that answer nothing, so do something, and do not begin with what they do."""
    wrong = []
    for path, found in nodes().items():
        for node in found:
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.name.startswith("__"):
                continue
            text = ast.get_docstring(node)
            acts = isinstance(node.returns, ast.Constant) and node.returns.value is None
            if text and acts and text.split()[0].strip("`.,:;").lower() in NOMINAL:
                wrong.append(
                    f"{path.relative_to(GENERATOR)}:{node.lineno} {node.name}: {text.splitlines()[0]}"
                )
    return wrong


CONTRACTS = frozenset({"run", "add_arguments", "emitter"})
"""Functions that every module of a kind has, which CONTRIBUTING.md explains once."""


def undocumented() -> list[str]:
    """Public functions and methods without a docstring. A method needs none if one of the same name has: contracts
    are documented where they are declared."""
    documented, without = set(CONTRACTS), []
    for path, found in nodes().items():
        for owner in found:
            if not isinstance(owner, (ast.Module, ast.ClassDef)):
                continue
            for node in owner.body:
                if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.name.startswith("_"):
                    continue
                if ast.get_docstring(node) is None:
                    private = isinstance(owner, ast.ClassDef) and owner.name.startswith("_")
                    without += [] if private else [(path, node)]
                elif isinstance(owner, ast.ClassDef):
                    documented.add(node.name)
    return [
        f"{path.relative_to(GENERATOR)}:{node.lineno} {node.name}"
        for path, node in without
        if node.name not in documented
    ]


_COMMENT = re.compile(r"(?:^|\s)# (?!type: |noqa|fmt: |pragma|mypy: )")


def comments_in_1000_lines() -> int:
    """Lines that say something to the reader; those for tools do not count."""
    lines = [line for text in sources().values() for line in text.splitlines()]
    return 1000 * sum(map(bool, map(_COMMENT.search, lines))) // len(lines)


COUNTS: dict[str, Callable[[], list[Any]]] = {
    count.__name__: count
    for count in (
        server_rooms,
        offload_calls,
        weighed_calls,
        files_that_offload,
        asks_for_family,
        attributes_set_late,
        long_functions,
        longest_function,
        long_files,
        class_names_twice,
        skipped_formatting,
        actions_without_a_verb,
        undocumented,
    )
}


def test_every_count_has_a_budget() -> None:
    assert BUDGETS.keys() == COUNTS.keys()


@pytest.mark.parametrize("name", COUNTS)
def test_nothing_grows_past_its_budget(name: str) -> None:
    counted = COUNTS[name]()
    shown = "\n".join(sorted(set(counted))[:80])
    assert len(counted) <= BUDGETS[name], f"{name}: {len(counted)}, {BUDGETS[name]} allowed\n{shown}"


def test_comments_do_not_become_fewer() -> None:
    assert comments_in_1000_lines() >= AT_LEAST["comments_in_1000_lines"]
