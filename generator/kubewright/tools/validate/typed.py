"""All values of a built-in object that its Go type cannot hold.

A server names the first and stops; here every one is reported, with its path, and ``without`` gives the object
without them, so that the rules of the kind can judge the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from apimachinery.schema.decoding import Decoder, go_type, json_kind
from apimachinery.schema.node import SchemaNode

_WHOLE = frozenset(
    {
        "RawExtension",
        "FieldsV1",
        "JSON",
        "JSONSchemaPropsOrArray",
        "JSONSchemaPropsOrBool",
        "JSONSchemaPropsOrStringArray",
        "Time",
        "MicroTime",
        "Quantity",
    }
)
"""Types that decode themselves: one fault at most."""

Steps = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class TypedFault:
    """One value of a wrong type: where, as steps and in words, and what is wrong with it."""

    steps: Steps
    path: str
    message: str


def type_faults(node: SchemaNode, value: Any, inner_schema: SchemaNode | None = None) -> list[TypedFault]:
    """Every value within ``value`` that ``node`` (a definition's) cannot hold, in the order of the document."""
    return list(_faults(node, value, (), "", inner_schema))


def _faults(
    node: SchemaNode, value: Any, steps: Steps, path: str, inner: SchemaNode | None
) -> Iterator[TypedFault]:
    if value is None:
        return
    if node.go_type in _WHOLE or node.int_or_string:
        said = Decoder(node, inner).fault(value)
        if said is not None:
            yield TypedFault(steps, path, said)
    elif isinstance(node.additional, SchemaNode):
        if not isinstance(value, dict):
            yield _mismatch(node, value, steps, path)
            return
        for name, each in value.items():
            yield from _faults(node.additional, each, (*steps, name), f"{path}[{name}]", inner)
    elif node.types == ("object",) or node.properties:
        if not isinstance(value, dict):
            yield _mismatch(node, value, steps, path)
            return
        for name, each in value.items():
            child = node.properties.get(name)
            if child is not None:
                yield from _faults(child, each, (*steps, name), f"{path}.{name}" if path else name, inner)
    elif node.types == ("array",):
        if not isinstance(value, list):
            yield _mismatch(node, value, steps, path)
        elif node.items is not None:
            for index, each in enumerate(value):
                yield from _faults(node.items, each, (*steps, index), f"{path}[{index}]", inner)
    elif node.types:
        said = Decoder(node).fault(value)
        if said is not None:
            yield TypedFault(steps, path, said if said.startswith("illegal") else _words(node, value))


def _mismatch(node: SchemaNode, value: Any, steps: Steps, path: str) -> TypedFault:
    return TypedFault(steps, path, _words(node, value))


def _words(node: SchemaNode, value: Any) -> str:
    kind = json_kind(value)
    wanted = go_type(node)
    if kind == "number" and node.types == ("integer",):
        return f"the number {value} does not fit type {wanted}"
    return f"cannot unmarshal {kind} into a field of type {wanted}"


def without(value: Any, steps: Steps) -> None:
    """Takes the value at ``steps`` out, in place; an item of a list becomes empty, so that the others keep their
    places."""
    *way, last = steps
    for step in way:
        value = value[step]
    if isinstance(value, list):
        value[int(last)] = None
    else:
        value.pop(last, None)
