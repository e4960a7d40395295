"""A generated ``conversion.py`` read as data: its steps become calls of the runtime's functions, and nothing is run.

What the emitter writes is narrow: imports from the runtime, functions that are one call a line with literals, a table.
Whatever else stands there is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from typing import Any

from apimachinery.conversion.versions import Convert, Table

_HOMES = ("apimachinery.conversion.", "apimachinery.rules.")
_Functions = dict[str, Callable[..., Any]]


class UnknownStepError(Exception):
    """The module says something that the emitter never writes."""


def read_table(source: bytes) -> Table:
    """``CONVERSIONS`` of a generated module. Raises ``UnknownStepError``."""
    functions: _Functions = {}
    table: dict[tuple[str, str, str], Convert] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_HOMES):
            home = import_module(node.module or "")
            functions |= {alias.name: getattr(home, alias.name) for alias in node.names}
        elif isinstance(node, ast.FunctionDef):
            functions[node.name] = _conversion(node, functions)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                if key is not None:
                    table[ast.literal_eval(key)] = _function(value, functions)
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
    """What stands in the table: a function, one made of others, or a literal that such a call is given."""
    if isinstance(node, ast.Name):
        return _named(node.id, functions)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _named(node.func.id, functions)(*(_function(argument, functions) for argument in node.args))
    if isinstance(node, ast.Constant):
        return node.value
    raise UnknownStepError(ast.unparse(node))
