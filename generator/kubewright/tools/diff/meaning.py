"""What a CEL rule says, whatever the spaces, quotes and brackets it is written with."""

from __future__ import annotations

from functools import cache, reduce
from typing import Any

from apimachinery.cel.libraries.catalog import ALL_MACROS
from apimachinery.cel.syntax.ast import Node
from apimachinery.cel.syntax.macros import Expander, MacroKey
from apimachinery.cel.syntax.parser import parse
from apimachinery.cel.values.errors import CompileError

_MACROS: dict[MacroKey, Expander] = reduce(lambda all_, some: {**all_, **some}, ALL_MACROS, {})
_MARKS = frozenset({"offset", "offsets", "type", "overloads", "name"})


@cache
def meaning(rule: str) -> Any:
    """A key that two rules share where their syntax trees are equal; the text itself where it cannot be parsed."""
    try:
        return _key(parse(rule, _MACROS))
    except (CompileError, RecursionError):
        return rule


def _key(part: Any) -> Any:
    if isinstance(part, Node):
        slots = [name for kind in type(part).__mro__ for name in getattr(kind, "__slots__", ())]
        said = tuple((name, _key(getattr(part, name))) for name in sorted(slots) if name not in _MARKS)
        return (type(part).__name__, said)
    if isinstance(part, list | tuple):
        return tuple(map(_key, part))
    return (type(part).__name__, repr(part))
