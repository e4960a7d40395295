"""Unknown fields: found, named and dropped.

Rules. A field stays where the schema has a property of its name or ``additionalProperties``; under
``x-kubernetes-preserve-unknown-fields`` any field stays, but within a declared one the rule is on again; on an
array the marker is about its items. A schema that says nothing of an object's fields lets none of them stay. The
apiVersion, kind and metadata of a resource, embedded ones included, always stay; metadata is pruned to what object
metadata has (``meta.object_meta``). Paths are sorted, as the API server's warnings are. Source: apiextensions'
schema/pruning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apimachinery.schema.node import SchemaNode

Known = Callable[[Any], bool]
"""Says whether a value has no unknown field."""

_META = ("apiVersion", "kind", "metadata")
_NO_FIELDS = SchemaNode()
_CONTAINERS = frozenset({dict, list})


def prune_value(node: SchemaNode, value: Any, *, is_resource: bool = False) -> list[str]:
    """Drop what the node does not know, in place; the paths of what was dropped, sorted."""
    dropped: list[str] = []
    _prune(node, value, "", dropped, drop=True, resource=is_resource)
    return sorted(dropped)


def unknown_paths(node: SchemaNode, value: Any, *, is_resource: bool = False) -> list[str]:
    """The paths that ``prune_value`` would drop."""
    found: list[str] = []
    _prune(node, value, "", found, drop=False, resource=is_resource)
    return sorted(found)


def _prune(
    node: SchemaNode,
    value: Any,
    path: str,
    dropped: list[str],
    *,
    drop: bool,
    resource: bool = False,
    preserve: bool = False,
) -> None:
    preserve = preserve or node.preserve
    if isinstance(value, dict):
        unknown = []
        resource = resource or node.embedded
        for name, each in value.items():
            if resource and name in _META:
                continue
            inner = f"{path}.{name}" if path else name
            if (child := node.properties.get(name)) is not None:
                _prune(child, each, inner, dropped, drop=drop)
            elif isinstance(node.additional, SchemaNode):
                _prune(node.additional, each, inner, dropped, drop=drop)
            elif node.additional is not None:
                _prune(_NO_FIELDS, each, inner, dropped, drop=drop)
            elif not preserve:
                unknown.append(name)
                if path or name not in _META:  # what every object has is dropped without a word
                    dropped.append(inner)
        if drop:
            for name in unknown:
                del value[name]
    elif isinstance(value, list):
        items = node.items
        if items is None:
            if preserve:
                return
            items = _NO_FIELDS
        for index, each in enumerate(value):
            _prune(items, each, f"{path}[{index}]", dropped, drop=drop, preserve=preserve)


def compile_known(node: SchemaNode, *, is_resource: bool = False) -> Known:
    """The fast pass: a closure that says whether a value has no unknown field.

    It may err on the side of no.
    """
    made = _compile_known(node, is_resource)
    return made if made is not None else _all_known


def _all_known(value: Any) -> bool:
    return True


def _compile_known(node: SchemaNode, resource: bool = False, preserve: bool = False) -> Known | None:
    resource = resource or node.embedded
    preserve = preserve or node.preserve
    free = preserve or node.additional is not None
    nested = {
        name: made
        for name, child in node.properties.items()
        if not (resource and name in _META) and (made := _compile_known(child)) is not None
    }
    values: Known | None = None
    if isinstance(node.additional, SchemaNode):
        values = _compile_known(node.additional)
    elif node.additional is not None:
        values = _compile_known(_NO_FIELDS)
    if node.items is not None:
        items = _compile_known(node.items, preserve=preserve)
    else:
        items = None if preserve else _scalars_only
    if node.types and node.types[0] not in ("object", "array") and not node.properties:
        return None if preserve else _scalars_only
    if free and not nested and values is None and items is None:
        return None
    names = frozenset(node.properties) | (frozenset(_META) if resource else frozenset())
    get_nested = nested.get

    def known(value: Any) -> bool:
        if type(value) is dict:
            if not free and not value.keys() <= names:
                return False
            for name, each in value.items():
                if type(each) in _CONTAINERS:
                    inner = get_nested(name, values if name not in names else None)
                    if inner is not None and not inner(each):
                        return False
            return True
        return type(value) is not list or items is None or all(map(items, value))

    return known


def _scalars_only(value: Any) -> bool:
    if type(value) is dict:
        return not value
    return type(value) is not list or all(map(_scalars_only, value))
