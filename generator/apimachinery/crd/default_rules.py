"""Defaults must be what they would have to be as values.

Valid, pruned, and good metadata where they are metadata.

Source: apiextensions' schema/defaulting validation. ``additionalProperties`` is not followed, and an integer or
string may be anything but what its stated rules refuse. A default
within the metadata of a resource is judged in a resource made up around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

from apimachinery.crd.rules import default_rule_faults
from apimachinery.meta.field_errors import FieldError, aggregate, invalid_value
from apimachinery.schema.metadata import decoding_faults, embedded_fault, prune_embedded, prune_metadata
from apimachinery.schema.node import MISSING, SchemaNode, SchemaNodeReader
from apimachinery.schema.pruning import prune_value
from apimachinery.schema.validation.embedded import embedded_faults
from apimachinery.schema.validation.explain import explain
from apimachinery.schema.validation.faults import field_errors

_META = ("metadata", "apiVersion", "kind")
_TYPE_META = {"apiVersion": "validation/v1", "kind": "Validation"}


def default_faults(schema: dict[str, Any], field: str, *, pruned: bool = True) -> list[FieldError]:
    """The faults of every default in a structural schema; unknown fields count where ``pruned`` says so."""
    root = replace(SchemaNodeReader(implied_types=False).read(schema), embedded=True)
    return list(_faults(schema, root, field, root, (), False, pruned))


def _faults(
    schema: dict[str, Any],
    node: SchemaNode,
    field: str,
    root: SchemaNode,
    steps: tuple[str | int, ...],
    inside_meta: bool,
    pruned: bool,
) -> Iterator[FieldError]:
    if node.embedded:
        # An embedded resource has metadata of its own, so the path begins anew.
        inside_meta, steps, root = False, (), node
    if node.default is not MISSING:
        at = f"{field}.default"
        if inside_meta:
            yield from _meta_faults(schema, node, at, root, steps)
        else:
            yield from _value_faults(schema, node, at, pruned)
    if node.items is not None:
        yield from _faults(
            schema["items"], node.items, f"{field}.items", root, (*steps, 0), inside_meta, pruned
        )
    for name, child in sorted(node.properties.items()):
        inside = inside_meta or (node.embedded and name in _META)
        inner = schema["properties"][name]
        yield from _faults(inner, child, f"{field}.properties[{name}]", root, (*steps, name), inside, pruned)


def _value_faults(schema: dict[str, Any], node: SchemaNode, field: str, pruned: bool) -> Iterator[FieldError]:
    default = deepcopy(node.default)
    undecodable = next(decoding_faults(node, default, field), None)
    if undecodable is None:
        prune_embedded(node, default)  # kube-apiserver does, and shows what is left of the default
    if pruned:
        bare = deepcopy(node.default)
        if prune_value(node, bare, is_resource=node.embedded) or bare != node.default:
            yield invalid_value(field, default, "must not have unknown fields")
    if undecodable is not None:
        yield undecodable
        return
    yield from (
        list(embedded_faults(node, default, field))
        or field_errors(explain(node, default).faults, field)
        or default_rule_faults(schema, default, field)
    )


def _meta_faults(
    schema: dict[str, Any], node: SchemaNode, field: str, root: SchemaNode, steps: tuple[str | int, ...]
) -> Iterator[FieldError]:
    # Metadata is judged as a whole, so the default is put where it will be in an object.
    resource: Any = deepcopy(node.default)
    for step in reversed(steps):
        resource = [resource] if isinstance(step, int) else {step: resource}
    resource = {**_TYPE_META, **resource}
    if (undecodable := embedded_fault(root, resource)) is not None:
        yield invalid_value(field, node.default, f"must result in valid metadata: {undecodable}")
        return
    prune_metadata(resource)
    found = [str(each) for each in embedded_faults(root, resource)]
    if found:
        yield invalid_value(field, node.default, f"must result in valid metadata: {aggregate(found)}")
        return
    yield from field_errors(explain(node, node.default).faults, field) or default_rule_faults(
        schema, node.default, field
    )
