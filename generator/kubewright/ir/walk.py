"""Going over all values of a definition, in document order."""

from __future__ import annotations

from collections.abc import Iterator

from kubewright.ir.types import EmbeddedObject, Json, ListOf, MapOf, RawJson, Ref, Scalar, Struct, Type, Value


def children(value: Value) -> Iterator[tuple[str, Value]]:
    """The values directly inside ``value``, each with the step that leads to it: ``.name``, ``[]``, ``{}``."""
    node = value.type.body if isinstance(value.type, EmbeddedObject) else value.type
    if isinstance(node, Struct):
        for field in node.fields:
            yield f".{field.wire_name}", field.value
        if node.extra is not None:
            yield "{}", node.extra
    elif isinstance(node, ListOf):
        yield "[]", node.items
    elif isinstance(node, MapOf):
        yield "{}", node.values


def values(value: Value) -> Iterator[Value]:
    """``value`` and everything inside it."""
    stack = [value]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(child for _, child in reversed(tuple(children(current))))


def referenced(value: Value) -> Iterator[str]:
    """Names of the definitions that ``value`` refers to, with repetitions."""
    for inner in values(value):
        if isinstance(inner.type, Ref):
            yield inner.type.name
        c = inner.constraints
        for schema in (*c.all_of, *c.any_of, *c.one_of, c.negated):
            yield from _json_refs(schema)


def _json_refs(schema: Json) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, item in schema.items():
            if key == "$ref" and isinstance(item, str):
                yield item
            else:
                yield from _json_refs(item)
    elif isinstance(schema, list):
        for item in schema:
            yield from _json_refs(item)


def describe(node: Type) -> str:
    """A type in words, for messages."""
    if isinstance(node, Scalar):
        return node.primitive.value + (f" ({node.format})" if node.format else "")
    if isinstance(node, Ref):
        return node.name.rpartition(".")[2]
    names = {Struct: "an object", ListOf: "a list", MapOf: "a map", RawJson: "any JSON"}
    return names.get(type(node), type(node).__name__)
