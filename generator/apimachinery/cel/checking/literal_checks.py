"""Checks of a typed tree that only Kubernetes asks for: its constants must be what they will be read as.

Durations, timestamps and regular expressions given as constants must parse, lists and maps must have items of one
type (but for the arguments of ``format``), and the arguments of ``format`` must fit its verbs.
"""

from __future__ import annotations

from collections.abc import Iterator

from apimachinery.cel.libraries.standard import compile_regex
from apimachinery.cel.libraries.string_format import clauses
from apimachinery.cel.syntax.ast import (
    Call,
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
from apimachinery.cel.values.values import Duration, Timestamp

Fault = tuple[int, str]


def _is_regex(text: str) -> bool:
    try:
        compile_regex(text)
    except EvalError:
        return False
    return True


def _is_duration(text: str) -> bool:
    try:
        return Duration.parse(text) is not None
    except EvalError:
        return False


_FORMS = {
    "duration": _is_duration,
    "timestamp": lambda text: Timestamp.parse(text) is not None,
    "matches": _is_regex,
}


def literal_faults(root: Node) -> list[Fault]:
    """(offset, message) of each constant that will not do."""
    nodes = list(_walk(root, False))
    faults: list[Fault] = []
    for node, _ in nodes:
        if isinstance(node, Call) and node.function in _FORMS and node.args:
            last = node.args[-1]
            if (
                isinstance(last, Literal)
                and isinstance(last.value, str)
                and not _FORMS[node.function](last.value)
            ):
                faults.append((last.offset, f"invalid {node.function} argument"))
    for node, exempt in nodes:
        if isinstance(node, ListExpr) and not exempt:
            faults += _mixed_list(node)
        elif isinstance(node, MapExpr) and not exempt:
            faults += _mixed_map(node)
    for node, _ in nodes:
        if isinstance(node, Call) and node.function == "format" and isinstance(node.target, Literal):
            faults += _format_faults(node, node.target.value)
    return faults


def _walk(node: Node, exempt: bool) -> Iterator[tuple[Node, bool]]:
    """All nodes, each with whether it stands in an argument of ``format``."""
    stack = [(node, exempt)]
    seen: set[int] = set()
    while stack:
        node, exempt = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node, exempt
        inside = exempt or (isinstance(node, Call) and node.function == "format")
        stack.extend((child, inside) for child in reversed(_children(node)))


def _children(node: Node) -> list[Node]:
    if isinstance(node, Call):
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
    for place, (key, value, optional) in enumerate(node.entries):
        found = (_type(key, False), _type(value, optional))
        if first is None:
            first = found
            continue
        offset = node.offsets[place] if node.offsets else key.offset
        for wanted, of in zip(first, found, strict=True):
            if wanted != of:
                faults.append(_mismatch(offset, wanted, of))
    return faults


_ANY = ("dyn", "error", "param")
_SHOWN = (
    "string",
    "bool",
    "bytes",
    "int",
    "uint",
    "double",
    "list",
    "map",
    "type",
    "duration",
    "timestamp",
    "null",
)
_ALLOWED: dict[str, tuple[tuple[str, ...], str]] = {
    "s": (
        _SHOWN,
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
        "durations, and timestamps",
    ),
    "d": (("int", "uint"), "decimal clause can only be used on integers"),
    "f": (("double",), "fixed-point clause can only be used on doubles"),
    "e": (("double",), "scientific clause can only be used on doubles"),
    "b": (("int", "uint", "bool"), "binary clause can only be used on integers and bools"),
    "x": (
        ("int", "uint", "string", "bytes"),
        "hex clause can only be used on integers, byte buffers, and strings",
    ),
    "X": (
        ("int", "uint", "string", "bytes"),
        "hex clause can only be used on integers, byte buffers, and strings",
    ),
    "o": (("int", "uint"), "octal clause can only be used on integers"),
}


def _format_faults(node: Call, template: object) -> list[Fault]:
    arg = node.args[0] if node.args else None
    if not isinstance(template, str) or not isinstance(arg, ListExpr):
        return []
    try:
        verbs = clauses(template)
    except EvalError as error:
        return [(node.offset, str(error))]
    for place, (verb, _) in enumerate(verbs):
        if place >= len(arg.elements):
            return [(node.offset, f"index {place} out of range")]
        element = arg.elements[place]
        of = element.type or t.DYN
        kinds, text = _ALLOWED[verb]
        if of.kind not in kinds and of.kind not in _ANY:
            return [(element.offset, f"error during formatting: {text}, was given {of}")]
    if len(arg.elements) > len(verbs):
        text = (
            f"too many arguments supplied to string.format (expected {len(verbs)}, got {len(arg.elements)})"
        )
        return [(node.offset, text)]
    return []
