"""The shape of a kind: the paths of all its values, with the type of each, as rule files write paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubewright.ir.types import (
    Definition,
    EmbeddedObject,
    ListOf,
    MapOf,
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
