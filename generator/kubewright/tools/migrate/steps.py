"""A generated ``conversion.py`` read as data: its steps become calls of the runtime's functions, and nothing is run.

What the emitter writes is narrow: imports from the runtime, functions that are one call a line with literals, a table.
Whatever else is there is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from typing import Any

from apimachinery.conversion.versions import Convert, Table

_HOMES = ("apimachinery.conversion.", "apimachinery.kinds.")
_Functions = dict[str, Callable[..., Any]]


class UnknownStepError(Exception):
    """The module says something that the emitter never writes."""


def read_table(source: bytes, *, own_modules: bool = False) -> Table:
    """``CONVERSIONS`` of a generated module. With ``own_modules`` the modules that ``call`` rules name are imported
    from wherever Python finds them. Raises ``UnknownStepError``, and ``ImportError`` where a module is not there."""
    functions: _Functions = {}
    table: dict[tuple[str, str, str], Convert] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and ((node.module or "").startswith(_HOMES) or own_modules):
            home = import_module(node.module or "")
            for alias in node.names:
                if not hasattr(home, alias.name):
                    raise ImportError(f"{node.module} has no function {alias.name}")
                functions[alias.name] = getattr(home, alias.name)
        elif isinstance(node, ast.ImportFrom):
            raise UnknownStepError(f"{node.module} is not a module of the runtime")
        elif isinstance(node, ast.FunctionDef):
            functions[node.name] = _conversion(node, functions)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Call):
            table |= _called(node.value, functions)
        elif not isinstance(node, ast.Expr):
            raise UnknownStepError(ast.unparse(node))
    return table


def _conversion(node: ast.FunctionDef, functions: _Functions) -> Convert:
    """The steps of one function: ``begin`` first, then changes of what it gave."""
    steps: list[tuple[Callable[..., Any], list[Any]]] = []
    for line in node.body:
        value = getattr(line, "value", None)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and not value.keywords:
            arguments = [ast.literal_eval(argument) for argument in value.args[1:]]
            steps.append((_named(value.func.id, functions), arguments))
        elif not isinstance(value, ast.Constant | ast.Name):
            raise UnknownStepError(ast.unparse(line))

    def convert(obj: dict[str, Any]) -> dict[str, Any]:
        (begin, opening), *changes = steps
        new: dict[str, Any] = begin(obj, *opening)
        for change, arguments in changes:
            change(new, *arguments)
        return new

    return convert


def _named(name: str, functions: _Functions) -> Callable[..., Any]:
    if name not in functions:
        raise UnknownStepError(name)
    return functions[name]


def _function(node: ast.expr, functions: _Functions) -> Any:
    """What is in the table: a function, a spoke made of two, or a literal."""
    if isinstance(node, ast.Name):
        return _named(node.id, functions)
    if isinstance(node, ast.Call):
        return _called(node, functions)
    if isinstance(node, ast.Constant):
        return node.value
    raise UnknownStepError(ast.unparse(node))


def _called(node: ast.Call, functions: _Functions) -> Any:
    if not isinstance(node.func, ast.Name) or node.func.id not in ("Spoke", "through_hub"):
        raise UnknownStepError(ast.unparse(node))
    arguments = [_function(argument, functions) for argument in node.args]
    named = {word.arg: _function(word.value, functions) for word in node.keywords if word.arg is not None}
    return _named(node.func.id, functions)(*arguments, **named)
