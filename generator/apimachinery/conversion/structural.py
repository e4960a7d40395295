"""Schemas of CustomResourceDefinitions from before types were required (apiextensions.k8s.io/v1beta1): made structural.

A type is inferred where the other keywords of a schema hold for one type alone. What says nothing of its type keeps
any value, as before. Source: Kubernetes, "Specifying a structural schema".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apimachinery.kinds.fields import Json, items, struct

_KEYWORDS: Final = {
    "object": {"properties", "additionalProperties", "required", "minProperties", "maxProperties"},
    "array": {"items", "minItems", "maxItems", "uniqueItems"},
    "string": {"pattern", "minLength", "maxLength"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
}
_FORMATS: Final = {"int32": "integer", "int64": "integer", "float": "number", "double": "number"}
_TYPES: Final = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    dict: "object",
    list: "array",
}
_ANY: Final = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_NAMES: Final = {"name", "generateName"}
_NO_LIMITS: Final = {
    "type",
    "format",
    "description",
    "properties",
    "additionalProperties",
    "items",
    "required",
}
_EITHER: Final = [{"type": "integer"}, {"type": "string"}]


def structural_types_to_hub(obj: Json) -> None:
    """Every schema of a definition says its type, or that it keeps any value."""
    spec = struct(obj, "spec") or {}
    for version in items(spec, "versions"):
        schema = struct(version, "schema", "openAPIV3Schema")
        if schema is not None:
            _without_metadata(schema)
            _say_type(schema, root=True)
            for inner in _below(schema):
                _say_type(inner)
        elif version.get("schema") is None and spec.get("preserveUnknownFields") is not False:
            # Without a schema v1beta1 kept whatever came; v1 wants that said.
            version["schema"] = {"openAPIV3Schema": {"type": "object", _ANY: True}}


def structural_types_to_spoke(obj: Json) -> None:
    """v1beta1 takes types, too."""
    del obj


def _without_metadata(schema: Json) -> None:
    """Reduces the schema of metadata to what v1 allows, limits of the names, unless that would drop other limits."""
    metadata = struct(schema, "properties", "metadata")
    if metadata is None:
        return
    properties = struct(metadata, "properties") or {}
    others = [value for name, value in properties.items() if name not in _NAMES]
    said = {
        key for value in others if isinstance(value, dict) for each in (value, *_below(value)) for key in each
    }
    if not (said | set(metadata) <= _NO_LIMITS and set(metadata.get("required") or ()) <= _NAMES):
        return
    metadata.pop("description", None)
    for name in set(properties) - _NAMES:
        del properties[name]
    if not properties:
        metadata.pop("properties", None)


def _below(schema: Json) -> Iterator[Json]:
    """All schemas below one, itself excluded, the outer ones first."""
    waiting: list[Any] = [schema]
    while waiting:
        each = waiting.pop()
        properties = each.get("properties")
        inner = list(properties.values()) if isinstance(properties, dict) else []
        inner += [each.get("items"), each.get("additionalProperties")]
        found = [one for one in inner if isinstance(one, dict)]
        yield from found
        waiting += found


def _say_type(schema: Json, *, root: bool = False) -> None:
    if schema.get("type") or schema.get(_INT_OR_STRING) or "$ref" in schema:
        return
    if sorted(schema.get("anyOf") or (), key=str) == _EITHER:
        schema["anyOf"] = [dict(each) for each in _EITHER]  # in the one order that v1 takes
        _first(schema, _INT_OR_STRING, True)
        return
    name = "object" if root else _inferred(schema) or _hoisted(schema)
    if name:
        _first(schema, "type", name)
    elif not schema.get(_ANY):
        schema[_ANY] = True


def _inferred(schema: Json) -> str:
    found = {name for name, keywords in _KEYWORDS.items() if keywords & schema.keys()}
    if "enum" in schema or "default" in schema:
        values = [*(schema.get("enum") or ()), *([schema["default"]] if "default" in schema else ())]
        found |= {_TYPES[type(value)] for value in values if value is not None}
    if schema.get("format"):
        found.add(_FORMATS.get(schema["format"], "string"))
    if "integer" in found and found <= {"integer", "number"}:
        said = schema.get("format") in ("int32", "int64")  # whole numbers alone do not refuse fractions
        return "integer" if said or "number" not in found else "number"
    return found.pop() if len(found) == 1 else ""


def _hoisted(schema: Json) -> str:
    """The type that all alternatives say alike; inside them v1 takes none."""
    for keyword in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(keyword)
        if isinstance(branches, list) and branches and all(isinstance(each, dict) for each in branches):
            names = {each.get("type") for each in branches}
            name = names.pop()
            if isinstance(name, str) and not names:
                for branch in branches:
                    del branch["type"]
                return name
    return ""


def _first(schema: Json, key: str, value: Any) -> None:
    """Puts a key before the others, where people look for it."""
    others = dict(schema)
    schema.clear()
    schema[key] = value
    schema.update(others)
