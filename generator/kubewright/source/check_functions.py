"""What the functions are like that validation files name: their parameters, read from their source, never run.

A check is a function of ``apimachinery.kinds``. It gets the value and its path, then the stored value if its third
parameter is called ``old``, then the value ``beside`` if the line has one, then the line's other words by name. One
that has something to say of a value that is not there is marked ``@of_missing``; all others are not called for those.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_PACKAGE = "apimachinery.kinds"
_MARK = "of_missing"


@dataclass(frozen=True, slots=True)
class CheckFunction:
    """The parameters of a check after value and path, in order; ``needed`` have no default."""

    parameters: tuple[str, ...]
    needed: frozenset[str]
    of_missing: bool

    @property
    def takes_old(self) -> bool:
        """Whether it compares with the stored value."""
        return self.parameters[:1] == ("old",)

    def misfit(self, words: Collection[str], *, beside: bool, stored: bool) -> str:
        """Why a line cannot call it; empty where it can. ``stored``: the line is asked of updates."""
        rest = self.parameters
        if self.takes_old:
            if not stored and "old" in self.needed:
                return "compares with the stored value, which new objects do not have"
            rest = rest[1:]
        if beside:
            if not rest:
                return "takes no value `beside`"
            rest = rest[1:]
        if unknown := sorted(set(words) - set(rest)):
            return f"takes no {unknown[0]!r}"
        if missing := [name for name in rest if name in self.needed and name not in words]:
            return f"needs {missing[0]!r}"
        return ""


def check_function(name: str) -> CheckFunction | None:
    """The function that a line names: ``function`` of ``checks``, or ``folder.module.function``; None for none."""
    module, _, function = name.rpartition(".")
    return _functions(module or "checks").get(function)


@cache
def _functions(module: str) -> dict[str, CheckFunction]:
    spec = importlib.util.find_spec(_PACKAGE)
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        return {}
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(folder).joinpath(*parts).with_suffix(".py")
        if file.is_file():
            tree = ast.parse(file.read_text(encoding="utf-8"))
            return {node.name: _read(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    return {}


def _read(node: ast.FunctionDef) -> CheckFunction:
    arguments = node.args
    plain = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    needed = set(plain[: len(plain) - len(arguments.defaults)])
    for named, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        plain.append(named.arg)
        if default is None:
            needed.add(named.arg)
    marks = {each.id for each in node.decorator_list if isinstance(each, ast.Name)}
    return CheckFunction(tuple(plain[2:]), frozenset(needed) & frozenset(plain[2:]), _MARK in marks)
