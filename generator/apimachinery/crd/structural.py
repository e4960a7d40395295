"""Structural schemas: every field that a schema speaks of is declared outside of its logic.

Rules of apiextensions' structural schemas (KEP-1216). The tree of properties, items and
additionalProperties gives every value a type; ``allOf``, ``anyOf``, ``oneOf`` and ``not`` only restrict
values of declared fields, and none of type, title, description, default, nullable, additionalProperties or
an extension may be in them. The one exception is the two usual ways to write an integer or string.
Faults are sorted by their texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apimachinery.cel.patterns import PatternError, compile_pattern
from apimachinery.crd.form import Schema
from apimachinery.meta.field_errors import FieldError, forbidden, invalid_value, required

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_UNSUPPORTED = (
    ("id", "id"),
    ("$schema", "schema"),
    ("$ref", "$ref"),
    ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"),
    ("additionalItems", "additionalItems"),
    ("definitions", "definitions"),
)
_LEVELS = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_EMPTY, _UNDEFINED, _FALSE = "must be empty", "must be undefined", "must be false"
_FORBIDDEN_IN_LOGIC = (
    ("type", _EMPTY),
    ("additionalProperties", _UNDEFINED),
    ("default", _UNDEFINED),
    ("title", _EMPTY),
    ("description", _EMPTY),
    ("nullable", _FALSE),
    ("externalDocs", _UNDEFINED),
    ("x-kubernetes-preserve-unknown-fields", _FALSE),
    ("x-kubernetes-embedded-resource", _FALSE),
    ("x-kubernetes-int-or-string", _FALSE),
    ("x-kubernetes-list-map-keys", _EMPTY),
    ("x-kubernetes-list-type", _UNDEFINED),
    ("x-kubernetes-map-type", _UNDEFINED),
    ("x-kubernetes-validations", _EMPTY),
)


def unreadable(schema: Schema) -> str | None:
    """Why a schema cannot even be read as a structural one, None where it can."""
    for keyword, shown in _UNSUPPORTED:
        if schema.get(keyword):
            return f"OpenAPIV3Schema '{shown}' is not supported"
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    if schema.get("items") and isinstance(schema["items"], list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    for inner in _inner_schemas(schema):
        if (said := unreadable(inner)) is not None:
            return said
    return None


def _inner_schemas(schema: Schema) -> Iterator[Schema]:
    if "not" in schema:
        yield schema["not"]
    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from schema.get(keyword, ())
    for keyword in ("additionalProperties", "items"):
        if isinstance(schema.get(keyword), dict):
            yield schema[keyword]
    yield from schema.get("properties", {}).values()


def structural_faults(schema: Schema, field: str) -> list[FieldError]:
    """Every breach of structure of a readable schema, sorted by text."""
    return sorted(
        [*_node_faults(schema, "root", field), *_missing_faults(schema, schema, field, field)], key=str
    )


def _node_faults(schema: Schema, level: str, field: str) -> Iterator[FieldError]:
    kind = schema.get("type", "")
    embedded = "x-kubernetes-embedded-resource" in schema
    if kind == "array" and not isinstance(schema.get("items"), dict):
        yield required(f"{field}.items", "must be specified")
    if isinstance(schema.get("items"), dict):
        yield from _node_faults(schema["items"], "item", f"{field}.items")
    for name, child in schema.get("properties", {}).items():
        yield from _node_faults(child, "field", f"{field}.properties[{name}]")
    if "additionalProperties" in schema:
        if level == "root":
            yield forbidden(f"{field}.additionalProperties", "must not be used at the root")
        if isinstance(schema["additionalProperties"], dict):
            yield from _node_faults(schema["additionalProperties"], "field", f"{field}.additionalProperties")
    yield from _extension_faults(schema, field)
    yield from _logic_faults(schema, field, *_int_or_string_forms(schema))
    if embedded and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid_value(f"{field}.type", kind, detail) if kind else required(f"{field}.type", detail)
    elif not (
        kind or "x-kubernetes-int-or-string" in schema or schema.get("x-kubernetes-preserve-unknown-fields")
    ):
        yield required(f"{field}.type", _LEVELS[level])
    if embedded and "additionalProperties" in schema:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        yield forbidden(f"{field}.additionalProperties", detail)
    if level == "root" and kind and kind != "object":
        yield invalid_value(f"{field}.type", kind, "must be object at the root")
    yield from _resource_faults(schema, level, embedded, field)
    if embedded and not schema.get("x-kubernetes-preserve-unknown-fields") and "properties" not in schema:
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields"
        )
        yield required(f"{field}.properties", detail)


def _extension_faults(schema: Schema, field: str) -> Iterator[FieldError]:
    if "x-kubernetes-int-or-string" in schema:
        for keyword in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if schema.get(keyword):
                yield invalid_value(
                    f"{field}.{keyword}", True, "must be false if x-kubernetes-int-or-string is true"
                )


def _resource_faults(schema: Schema, level: str, embedded: bool, field: str) -> Iterator[FieldError]:
    """What a schema may say of apiVersion, kind and metadata."""
    properties = schema.get("properties", {})
    checked = level == "root" or embedded
    if checked:
        for name in ("kind", "apiVersion"):
            if name in properties and properties[name].get("type", "") != "string":
                kind = properties[name].get("type", "")
                yield invalid_value(f"{field}.properties[{name}].type", kind, "must be string")
    if "metadata" not in properties:
        return
    metadata, at = properties["metadata"], f"{field}.properties[metadata]"
    if checked and metadata.get("type", "") != "object":
        yield invalid_value(f"{at}.type", metadata.get("type", ""), "must be object")
    if level == "root":
        said = set(metadata) - {"type", "default", "example", "$ref"}
        if metadata.get("properties", {}).keys() <= {"name", "generateName"}:
            said.discard("properties")
        if said:
            detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield forbidden(at, detail)


def _int_or_string_forms(schema: Schema) -> tuple[bool, bool]:
    """Is the schema's anyOf, or that of its first allOf, the usual one of an integer or string."""
    all_of = schema.get("allOf", [{}])
    return schema.get("anyOf") == _INT_OR_STRING, all_of[0].get("anyOf") == _INT_OR_STRING


def _logic_faults(schema: Schema, field: str, skip_any: bool, skip_first_all: bool) -> Iterator[FieldError]:
    if not skip_any:
        for index, each in enumerate(schema.get("anyOf", ())):
            yield from _alternative_faults(each, f"{field}.anyOf[{index}]")
    for index, each in enumerate(schema.get("allOf", ())):
        yield from _alternative_faults(
            each, f"{field}.allOf[{index}]", skip_any=skip_first_all and index == 0
        )
    for index, each in enumerate(schema.get("oneOf", ())):
        yield from _alternative_faults(each, f"{field}.oneOf[{index}]")
    if "not" in schema:
        yield from _alternative_faults(schema["not"], f"{field}.not")
    if "pattern" in schema:
        try:
            compile_pattern(schema["pattern"])
        except PatternError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            yield invalid_value(f"{field}.pattern", schema["pattern"], detail)


def _alternative_faults(schema: Schema, field: str, skip_any: bool = False) -> Iterator[FieldError]:
    yield from _logic_faults(schema, field, skip_any, False)
    if isinstance(schema.get("items"), dict):
        yield from _alternative_faults(schema["items"], f"{field}.items")
    for name, child in schema.get("properties", {}).items():
        yield from _alternative_faults(child, f"{field}.properties[{name}]")
    for keyword, demand in _FORBIDDEN_IN_LOGIC:
        if keyword in schema:
            yield forbidden(f"{field}.{keyword}", f"{demand} to be structural")
    if "metadata" in schema.get("properties", {}):
        yield forbidden(f"{field}.properties[metadata]", "must not be specified in a nested context")


def _missing_faults(logic: Schema, schema: Any, logic_field: str, field: str) -> Iterator[FieldError]:
    """Fields that the logic of the root speaks of and the schema does not declare."""
    for keyword in ("allOf", "anyOf", "oneOf"):
        for index, each in enumerate(logic.get(keyword, ())):
            yield from _undeclared(each, schema, f"{logic_field}.{keyword}[{index}]", field)
    if "not" in logic:
        yield from _undeclared(logic["not"], schema, f"{logic_field}.not", field)


def _undeclared(logic: Schema, schema: Schema, logic_field: str, field: str) -> Iterator[FieldError]:
    yield from _missing_faults(logic, schema, logic_field, field)
    if isinstance(logic.get("items"), dict):
        if not isinstance(schema.get("items"), dict):
            yield required(f"{field}.items", f"because it is defined in {logic_field}.items")
        else:
            yield from _undeclared(logic["items"], schema["items"], f"{logic_field}.items", f"{field}.items")
    for name, child in logic.get("properties", {}).items():
        at, logic_at = f"{field}.properties[{name}]", f"{logic_field}.properties[{name}]"
        declared = schema.get("properties", {}).get(name)
        if declared is None:
            yield required(at, f"because it is defined in {logic_at}")
        else:
            yield from _undeclared(child, declared, logic_at, at)
