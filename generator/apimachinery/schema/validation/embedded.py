"""Embedded resources: a value that is itself an object of the API, with apiVersion, kind and metadata.

Rules of apiextensions' objectmeta: apiVersion and kind are required and well formed, metadata (where there is
any) keeps the rules of object metadata except for the form of the name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apimachinery.meta.field_errors import FieldError, invalid_value, required
from apimachinery.meta.names import dns1035_label_faults, path_segment_faults
from apimachinery.meta.object_meta import validate_object_meta
from apimachinery.schema.node import SchemaNode


def has_embedded(node: SchemaNode) -> bool:
    """Can a value of this node hold an embedded resource."""
    if node.embedded:
        return True
    inner = [
        *node.properties.values(),
        *(each for each in (node.items, node.additional) if isinstance(each, SchemaNode)),
    ]
    return any(map(has_embedded, inner))


def embedded_resources(node: SchemaNode, value: Any, field: str = "") -> Iterator[tuple[dict[str, Any], str]]:
    """Every embedded resource of a value with its path, outer ones first, siblings by name."""
    if isinstance(value, dict):
        if node.embedded:
            yield value, field
        for name in sorted(value):
            if (child := node.properties.get(name)) is not None:
                yield from embedded_resources(child, value[name], f"{field}.{name}" if field else name)
            elif isinstance(node.additional, SchemaNode):
                yield from embedded_resources(node.additional, value[name], f"{field}[{name}]")
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            yield from embedded_resources(node.items, item, f"{field}[{index}]")


def embedded_faults(node: SchemaNode, value: Any, field: str = "") -> Iterator[FieldError]:
    """The faults of every embedded resource in ``value``."""
    for resource, at in embedded_resources(node, value, field):
        yield from _resource_faults(resource, at)


def _resource_faults(value: dict[str, Any], base: str) -> Iterator[FieldError]:
    prefix = f"{base}." if base else ""
    for name in ("apiVersion", "kind"):
        if name not in value:
            yield required(f"{prefix}{name}")
    for name in ("apiVersion", "kind", "metadata"):
        if name in value:
            yield from _FAULTS[name](value[name], f"{prefix}{name}")


def _api_version_faults(value: Any, field: str) -> Iterator[FieldError]:
    if not isinstance(value, str):
        yield invalid_value(field, value, "must be a string")
    elif not value:
        yield invalid_value(field, value, "must not be empty")
    elif value.count("/") > 1:
        yield invalid_value(field, value, f"unexpected GroupVersion string: {value}")


def _kind_faults(value: Any, field: str) -> Iterator[FieldError]:
    if not isinstance(value, str):
        yield invalid_value(field, value, "must be a string")
    elif not value:
        yield invalid_value(field, value, "must not be empty")
    elif faults := dns1035_label_faults(value.lower()):
        detail = "may have mixed case, but should otherwise match: " + ",".join(faults)
        yield invalid_value(field, value, detail)


def _metadata_faults(value: Any, field: str) -> Iterator[FieldError]:
    meta = value if isinstance(value, dict) else {}
    if not meta.get("name"):
        meta = {**meta, "name": "fakename"}
    namespaced = bool(meta.get("namespace"))
    yield from validate_object_meta(meta, namespaced=namespaced, name_rule=path_segment_faults, field=field)


_FAULTS = {"apiVersion": _api_version_faults, "kind": _kind_faults, "metadata": _metadata_faults}
