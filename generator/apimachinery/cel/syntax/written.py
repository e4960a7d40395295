"""A tree as text again: what people read beside the value of a part. Macros are written as they were called."""

from __future__ import annotations

import json

from apimachinery.cel.syntax.ast import (
    CallNode,
    Comprehension,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Node,
    Select,
    StructExpr,
)

_UNARY = {"!_": "!", "-_": "-"}


def written(node: Node, source: str) -> str:
    """The text of a node; of a macro its call, cut out of ``source``."""
    if isinstance(node, Literal):
        value = node.value
        return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)
    if isinstance(node, Ident):
        return node.ident
    if isinstance(node, Select):
        text = f"{written(node.operand, source)}.{node.field}"
        return f"has({text})" if node.test_only else text
    if isinstance(node, CallNode):
        return _call(node, source)
    if isinstance(node, ListExpr):
        return f"[{', '.join(written(each, source) for each in node.elements)}]"
    if isinstance(node, MapExpr):
        pairs = (f"{written(key, source)}: {written(value, source)}" for key, value, _ in node.entries)
        return f"{{{', '.join(pairs)}}}"
    if isinstance(node, StructExpr):
        fields = (f"{name}: {written(value, source)}" for name, value, _, _ in node.entries)
        return f"{node.message}{{{', '.join(fields)}}}"
    assert isinstance(node, Comprehension)
    return f"{written(node.range, source)}.{_called(source, node.offset)}"


def _call(node: CallNode, source: str) -> str:
    arguments = [written(each, source) for each in node.args]
    name = node.function
    if name in _UNARY:
        return f"{_UNARY[name]}{arguments[0]}"
    if name == "_?_:_":
        return "{} ? {} : {}".format(*arguments)
    if name in ("_[_]", "_[?_]"):
        return f"{arguments[0]}[{arguments[1]}]"
    if name == "_?._":
        return f"{arguments[0]}.?{json.loads(arguments[1])}"
    if len(arguments) == 2 and name.startswith(("_", "@")):
        return f"{arguments[0]} {name.strip('_@')} {arguments[1]}"
    text = f"{name}({', '.join(arguments)})"
    return text if node.target is None else f"{written(node.target, source)}.{text}"


def _called(source: str, offset: int) -> str:
    """The name and the arguments of the call whose opening bracket, or whose dot, is at an offset."""
    opened = source.find("(", offset)
    if opened < 0:
        return "…"
    start = opened
    while start and (source[start - 1].isalnum() or source[start - 1] == "_"):
        start -= 1
    depth, quote, at = 0, "", opened
    while at < len(source):
        char = source[at]
        if quote:
            at += char == "\\"
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if not depth:
                break
        at += 1
    return source[start : at + 1]
