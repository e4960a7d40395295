"""The shape of a kind: the paths of all its values, with the type of each, as rule files write paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kubewright.ir.paths import Items, Key, Step, Values
from kubewright.ir.types import (
    Definition,
    EmbeddedObject,
    ListOf,
    MapOf,
    RawJson,
    Ref,
    Scalar,
    Struct,
    Type,
    Value,
)

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."


def shape_of(definition: Definition, table: Mapping[str, Definition]) -> dict[str, str]:
    """Path → type of every value without fields of its own; apiVersion, kind and metadata are left out.

    Types of meta/v1 count as one value, and a type inside itself ends there.
    """
    return {
        path: kind
        for path, kind in _walk(definition.value, "", (definition.name,), table)
        if path.partition(".")[0] not in ("apiVersion", "kind", "metadata")
    }


def _walk(
    value: Value, path: str, inside: tuple[str, ...], table: Mapping[str, Definition]
) -> Iterator[tuple[str, str]]:
    node: Type = value.type
    while isinstance(node, Ref):
        if node.name in inside or node.name.startswith(_META) or node.name not in table:
            yield path, node.name.rpartition(".")[2]
            return
        inside = (*inside, node.name)
        node = table[node.name].value.type
    if isinstance(node, EmbeddedObject):
        yield path, "object"
    elif isinstance(node, Struct) and node.fields:
        for member in node.fields:
            yield from _walk(member.value, f"{path}.{member.wire_name}".lstrip("."), inside, table)
    elif isinstance(node, ListOf):
        yield from _walk(node.items, f"{path}[*]", inside, table)
    elif isinstance(node, MapOf):
        yield from _walk(node.values, f"{path}{{*}}", inside, table)
    elif isinstance(node, Scalar):
        yield path, node.primitive.value
    else:
        yield path, type(node).__name__


def type_at(node: Type, steps: Sequence[Step], table: Mapping[str, Definition]) -> Type | None:
    """The type of the values that ``steps`` lead to; any JSON where the schema does not say. ``None`` if a type on the
    way has no such field."""
    for step in steps:
        node = _resolved(node, table)
        if isinstance(node, RawJson | Ref):
            return RawJson()
        if isinstance(step, Key) and isinstance(node, Struct):
            member = next((m for m in node.fields if m.wire_name == step.name), None)
            if member is None:
                return RawJson() if node.preserve_unknown or node.extra is not None else None
            node = member.value.type
        elif isinstance(step, Key | Values) and isinstance(node, MapOf):
            node = node.values.type
        elif isinstance(step, Items) and isinstance(node, ListOf):
            node = node.items.type
        else:
            return None
    return _resolved(node, table)


def _resolved(node: Type, table: Mapping[str, Definition]) -> Type:
    while isinstance(node, Ref) and node.name in table:
        node = table[node.name].value.type
    return node.body if isinstance(node, EmbeddedObject) else node
