"""Checks of a typed tree that only Kubernetes asks for: its constants must be what they will be read as.

Durations, timestamps and regular expressions given as constants must parse, lists and maps must have items of one
type (except for the arguments of ``format``), and the arguments of ``format`` must fit its verbs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apimachinery.cel.libraries.old_format import WRONG_TYPE, pieces
from apimachinery.cel.libraries.standard import compile_regex
from apimachinery.cel.syntax.ast import (
    CallNode,
    Comprehension,
    ListExpr,
    Literal,
    MapExpr,
    Node,
    Select,
    StructExpr,
)
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import EvalError
from apimachinery.cel.values.types import Type
from apimachinery.cel.values.values import EARLIEST, LATEST, Duration, Timestamp

Fault = tuple[int, str]


def _is_regex(text: Any) -> bool:
    if not isinstance(text, str):
        return True
    try:
        compile_regex(text)
    except EvalError:
        return False
    return True


def _is_duration(text: Any) -> bool:
    if not isinstance(text, str):
        return True
    try:
        return Duration.parse(text) is not None
    except EvalError:
        return False


def _is_timestamp(value: Any) -> bool:
    if type(value) is int:
        return EARLIEST <= value <= LATEST
    return not isinstance(value, str) or Timestamp.parse(value) is not None


_FORMS = {
    "duration": _is_duration,
    "timestamp": _is_timestamp,
    "matches": _is_regex,
}


def literal_faults(root: Node) -> list[Fault]:
    """(offset, message) of each constant that will not do."""
    nodes = list(_walk(root, False))
    faults: list[Fault] = []
    for node, _ in nodes:
        if isinstance(node, CallNode) and node.function in _FORMS and node.args:
            # The first of them, though the pattern of the global ``matches`` is the second: Kubernetes looks there.
            first = node.args[0]
            if isinstance(first, Literal) and not _FORMS[node.function](first.value):
                faults.append((first.offset, f"invalid {node.function} argument"))
    for node, exempt in nodes:
        if isinstance(node, ListExpr) and not exempt:
            faults += _mixed_list(node)
        elif isinstance(node, MapExpr) and not exempt:
            faults += _mixed_map(node)
    for node, _ in nodes:
        if isinstance(node, CallNode) and node.function == "format" and isinstance(node.target, Literal):
            faults += _format_faults(node, node.target.value)
    return faults


def _walk(node: Node, exempt: bool) -> Iterator[tuple[Node, bool]]:
    """All nodes, each with whether it is in an argument of ``format``."""
    stack = [(node, exempt)]
    seen: set[int] = set()
    while stack:
        node, exempt = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node, exempt
        inside = exempt or (isinstance(node, CallNode) and node.function == "format")
        stack.extend((child, inside) for child in reversed(_children(node)))


def _children(node: Node) -> list[Node]:
    if isinstance(node, CallNode):
        return [*([node.target] if node.target is not None else []), *node.args]
    if isinstance(node, Select):
        return [node.operand]
    if isinstance(node, ListExpr):
        return node.elements
    if isinstance(node, MapExpr):
        return [part for key, value, _ in node.entries for part in (key, value)]
    if isinstance(node, StructExpr):
        return [value for _, value, _, _ in node.entries]
    if isinstance(node, Comprehension):
        return [node.range, node.init, node.condition, node.step, node.result]
    return []


def _mismatch(offset: int, wanted: Type, found: Type) -> Fault:
    return offset, f"expected type '{wanted}' but found '{found}'"


def _type(node: Node, optional: bool) -> Type:
    of = node.type or t.DYN
    return of.params[0] if optional and t.is_optional(of) else of


def _mixed_list(node: ListExpr) -> list[Fault]:
    first: Type | None = None
    for place, element in enumerate(node.elements):
        of = _type(element, place in node.optional)
        if first is None:
            first = of
        elif of != first:
            return [_mismatch(element.offset, first, of)]
    return []


def _mixed_map(node: MapExpr) -> list[Fault]:
    faults: list[Fault] = []
    first: tuple[Type, Type] | None = None
    for key, value, optional in node.entries:
        found = (_type(key, False), _type(value, optional))
        if first is None:
            first = found
            continue
        for part, wanted, of in zip((key, value), first, found, strict=True):
            if wanted != of:
                faults.append(_mismatch(part.offset, wanted, of))
    return faults


_ANY = ("dyn", "error", "param")
_INTEGERS = ("int", "uint")
_SCALARS = ("string", "bool", "bytes", "int", "uint", "double", "type", "duration", "timestamp", "null")
_ALLOWED: dict[str, tuple[str, ...]] = {
    "s": (*_SCALARS, "list", "map"),
    "d": _INTEGERS,
    "f": ("double", "string"),
    "e": ("double", "string"),
    "b": (*_INTEGERS, "bool"),
    "x": (*_INTEGERS, "string", "bytes"),
    "X": (*_INTEGERS, "string", "bytes"),
    "o": _INTEGERS,
}


def _format_faults(node: CallNode, template: object) -> list[Fault]:
    arg = node.args[0] if node.args else None
    if not isinstance(template, str) or not isinstance(arg, ListExpr):
        return []
    used = 0
    try:
        for piece in pieces(template, len(arg.elements)):
            if isinstance(piece, str):
                continue
            wrong = _unprintable(arg.elements[used], piece[0])
            if wrong is not None:
                given = (wrong.type or t.DYN).runtime_name
                text = f"error during formatting: {WRONG_TYPE[piece[0]]}, was given {given}"
                return [(wrong.offset, text)]
            used += 1
    except EvalError as error:
        return [(node.offset, str(error))]
    if len(arg.elements) > used:
        text = f"too many arguments supplied to string.format (expected {used}, got {len(arg.elements)})"
        return [(node.offset, text)]
    return []


def _unprintable(node: Node, verb: str) -> Node | None:
    """The part of an argument that ``verb`` cannot print, or None."""
    kind = (node.type or t.DYN).kind
    if kind not in _ALLOWED[verb] and kind not in _ANY:
        return node
    parts: list[Node] = []
    if verb == "s" and isinstance(node, ListExpr):
        parts = node.elements
    elif verb == "s" and isinstance(node, MapExpr):
        parts = [part for key, value, _ in node.entries for part in (key, value)]
    return next((wrong for part in parts if (wrong := _unprintable(part, verb)) is not None), None)
