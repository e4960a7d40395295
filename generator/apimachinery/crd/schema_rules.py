"""What a schema of a CRD must keep besides being structural.

Keywords, types, lists and maps, defaults' places.

Source: apiextensions' validation of JSONSchemaProps, node by node: a node's own faults first, then those of
the schemas in it (siblings by name), then its faults as a list or map.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from apimachinery.crd.form import Schema
from apimachinery.crd.printed import printed_items
from apimachinery.meta.field_errors import FieldError, forbidden, invalid_value, not_supported, required

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_META = ("metadata", "kind", "apiVersion")
_NOT_SUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")


@dataclass(frozen=True, slots=True)
class SchemaRuleOptions:
    """Which rules are on. Those that a stored CRD breaks are off for its update."""

    valid_types: bool = True
    atomic_sets: bool = True
    map_keys: bool = True
    default_refusal: str = ""
    inside_meta: bool = False


def schema_faults(schema: Schema, field: str, options: SchemaRuleOptions) -> list[FieldError]:
    """The faults of a version's schema, its root at ``field``."""
    return list(_faults(schema, field, options, is_root=True))


def _faults(
    schema: Schema, field: str, options: SchemaRuleOptions, *, is_root: bool = False
) -> Iterator[FieldError]:
    yield from _keyword_faults(schema, field, options)
    yield from _additional_faults(schema, field, options)
    embeds = is_root or "x-kubernetes-embedded-resource" in schema
    for name, child in schema.get("properties", {}).items():
        inner = options
        if embeds and name in _META:
            inner = replace(options, inside_meta=True)
            if is_root:
                inner = replace(inner, default_refusal=f"in top-level {name}")
        yield from _faults(child, f"{field}.properties[{name}]", inner)
    if "not" in schema:
        yield from _faults(schema["not"], f"{field}.not", options)
    for keyword in ("allOf", "oneOf", "anyOf"):
        for index, each in enumerate(schema.get(keyword, ())):
            yield from _faults(each, f"{field}.{keyword}[{index}]", options)
    for name, each in schema.get("definitions", {}).items():
        yield from _faults(each, f"{field}.definitions[{name}]", options)
    items = schema.get("items")
    if isinstance(items, dict):
        yield from _faults(items, f"{field}.items", options)
    for index, each in enumerate(items if isinstance(items, list) else ()):
        yield from _faults(each, f"{field}.items[{index}]", options)
    for name, each in schema.get("dependencies", {}).items():
        if isinstance(each, dict):
            yield from _faults(each, f"{field}.dependencies[{name}]", options)
    yield from _extension_faults(schema, field, options)


def _keyword_faults(schema: Schema, field: str, options: SchemaRuleOptions) -> Iterator[FieldError]:
    kind = schema.get("type", "")
    if options.valid_types and kind and kind not in _TYPES:
        yield not_supported(f"{field}.type", kind, _TYPES)
    if "default" in schema and options.default_refusal:
        yield forbidden(f"{field}.default", f"must not be set {options.default_refusal}")
    for keyword in _NOT_SUPPORTED:
        if keyword in schema:
            yield forbidden(f"{field}.{keyword}", f"{keyword} is not supported")
    if kind == "null":
        yield forbidden(f"{field}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list) and schema["items"]:
        yield forbidden(f"{field}.items", "items must be a schema object and not an array")
    if options.inside_meta and "x-kubernetes-embedded-resource" in schema:
        yield forbidden(f"{field}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")
    if "uniqueItems" in schema:
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{field}.uniqueItems", detail)


def _additional_faults(schema: Schema, field: str, options: SchemaRuleOptions) -> Iterator[FieldError]:
    additional = schema.get("additionalProperties")
    if additional is None:
        return
    if "properties" in schema and additional is not True:
        detail = "additionalProperties and properties are mutual exclusive"
        yield forbidden(f"{field}.additionalProperties", detail)
    if isinstance(additional, dict):
        inner = options
        if options.inside_meta:
            inner = replace(
                options, default_refusal="inside additionalProperties applying to object metadata"
            )
        yield from _faults(additional, f"{field}.additionalProperties", inner)


def _extension_faults(schema: Schema, field: str, options: SchemaRuleOptions) -> Iterator[FieldError]:
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid_value(
            f"{field}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined"
        )
    map_type, list_type = schema.get("x-kubernetes-map-type"), schema.get("x-kubernetes-list-type")
    if map_type is not None:
        yield from _must_be(schema, "object", "x-kubernetes-map-type", field)
        if map_type not in ("atomic", "granular"):
            yield not_supported(f"{field}.x-kubernetes-map-type", map_type, ("atomic", "granular"))
    if list_type is not None:
        if schema.get("type") != "array":
            yield from _must_be(schema, "array", "x-kubernetes-list-type", field)
        elif options.atomic_sets and list_type == "set":
            yield from _set_item_faults(schema, field)
        if list_type not in ("atomic", "set", "map"):
            yield not_supported(f"{field}.x-kubernetes-list-type", list_type, ("atomic", "set", "map"))
    if "x-kubernetes-list-map-keys" in schema and list_type != "map":
        at, detail = (
            f"{field}.x-kubernetes-list-type",
            "must be map if x-kubernetes-list-map-keys is non-empty",
        )
        yield required(at, detail) if list_type is None else invalid_value(at, list_type, detail)
    if list_type == "map":
        yield from _map_list_faults(schema, field)
    if options.map_keys and list_type in ("set", "map") and isinstance(schema.get("items"), dict):
        yield from _item_faults(schema, list_type, field)


def _must_be(schema: Schema, wanted: str, keyword: str, field: str) -> Iterator[FieldError]:
    kind = schema.get("type", "")
    if kind != wanted:
        detail = f"must be {wanted} if {keyword} is specified"
        yield invalid_value(f"{field}.type", kind, detail) if kind else required(f"{field}.type", detail)


def has_loose_sets(schema: Schema) -> bool:
    """Does a node's set have items that are not atomic."""
    is_set = schema.get("x-kubernetes-list-type") == "set" and schema.get("type") == "array"
    return is_set and next(_set_item_faults(schema, ""), None) is not None


def _set_item_faults(schema: Schema, field: str) -> Iterator[FieldError]:
    items = schema.get("items")
    if not isinstance(items, dict):
        return
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    list_type = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and list_type not in (None, "atomic"):
        yield invalid_value(f"{field}.items.x-kubernetes-list-type", list_type, detail)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield invalid_value(f"{field}.items.x-kubernetes-map-type", list_type, detail)


def _map_list_faults(schema: Schema, field: str) -> Iterator[FieldError]:
    keys = schema.get("x-kubernetes-list-map-keys", [])
    items = schema.get("items")
    at_keys = f"{field}.x-kubernetes-list-map-keys"
    if not keys:
        yield required(at_keys, "must not be empty if x-kubernetes-list-type is map")
    if items is None:
        yield required(f"{field}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    if not isinstance(items, dict):
        detail = "must only have a single schema if x-kubernetes-list-type is map"
        yield invalid_value(f"{field}.items", printed_items(items), detail)
        return
    kind = items.get("type", "")
    if kind != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid_value(f"{field}.items.type", kind, detail)
        return
    seen: set[str] = set()
    for key in keys:
        declared = items.get("properties", {}).get(key)
        if declared is None:
            yield invalid_value(at_keys, keys, "entries must all be names of item properties")
        elif declared.get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid_value(f"{field}.items.properties[{key}].type", kind, detail)
        if key in seen:
            yield invalid_value(at_keys, keys, "must not contain duplicate entries")
        seen.add(key)


def has_loose_keys(schema: Schema) -> bool:
    """Does a node's set or keyed list have items or keys that may be null or missing."""
    list_type = schema.get("x-kubernetes-list-type")
    if list_type not in ("set", "map") or not isinstance(schema.get("items"), dict):
        return False
    return next(_item_faults(schema, list_type, ""), None) is not None


def _item_faults(schema: Schema, list_type: Any, field: str) -> Iterator[FieldError]:
    items = schema["items"]
    if "nullable" in items:
        yield forbidden(
            f"{field}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        )
    if list_type != "map":
        return
    for key in schema.get("x-kubernetes-list-map-keys", ()):
        declared = items.get("properties", {}).get(key)
        if declared is None:
            continue
        at, this = f"{field}.items.properties[{key}]", "this property is in x-kubernetes-list-map-keys"
        if key not in items.get("required", ()) and "default" not in declared:
            yield required(f"{at}.default", f"{this}, so it must have a default or be a required property")
        if "nullable" in declared:
            yield forbidden(f"{at}.nullable", f"{this}, so it cannot be nullable")
