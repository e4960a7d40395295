"""Parts of a CRD as faults print them: Go structs of the internal type, in the order of their fields."""

from __future__ import annotations

from typing import Any

from apimachinery.crd.form import Schema, Version
from apimachinery.meta.printing import InOrder

_SCHEMA_FIELDS = (
    ("ID", "id", ""),
    ("Schema", "$schema", ""),
    ("Ref", "$ref", None),
    ("Description", "description", ""),
    ("Type", "type", ""),
    ("Nullable", "nullable", False),
    ("Format", "format", ""),
    ("Title", "title", ""),
    ("Default", "default", None),
    ("Maximum", "maximum", None),
    ("ExclusiveMaximum", "exclusiveMaximum", False),
    ("Minimum", "minimum", None),
    ("ExclusiveMinimum", "exclusiveMinimum", False),
    ("MaxLength", "maxLength", None),
    ("MinLength", "minLength", None),
    ("Pattern", "pattern", ""),
    ("MaxItems", "maxItems", None),
    ("MinItems", "minItems", None),
    ("UniqueItems", "uniqueItems", False),
    ("MultipleOf", "multipleOf", None),
    ("Enum", "enum", None),
    ("MaxProperties", "maxProperties", None),
    ("MinProperties", "minProperties", None),
    ("Required", "required", None),
    ("Items", "items", None),
    ("AllOf", "allOf", None),
    ("OneOf", "oneOf", None),
    ("AnyOf", "anyOf", None),
    ("Not", "not", None),
    ("Properties", "properties", None),
    ("AdditionalProperties", "additionalProperties", None),
    ("PatternProperties", "patternProperties", None),
    ("Dependencies", "dependencies", None),
    ("AdditionalItems", "additionalItems", None),
    ("Definitions", "definitions", None),
    ("ExternalDocs", "externalDocs", None),
    ("Example", "example", None),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", None),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", False),
    ("XIntOrString", "x-kubernetes-int-or-string", False),
    ("XListMapKeys", "x-kubernetes-list-map-keys", None),
    ("XListType", "x-kubernetes-list-type", None),
    ("XMapType", "x-kubernetes-map-type", None),
    ("XValidations", "x-kubernetes-validations", None),
)
FIELD_NAMES = {keyword: name for name, keyword, _ in _SCHEMA_FIELDS}
_KEYWORDS = [keyword for _, keyword, _ in _SCHEMA_FIELDS]


def keywords_in_order(schema: Schema) -> list[str]:
    """The keywords of a schema in the order of the struct's fields."""
    return [keyword for keyword in _KEYWORDS if keyword in schema]


def printed_schema(schema: Schema) -> InOrder:
    """A schema as a fault shows it."""
    return InOrder(_schema(schema))


def printed_versions(versions: list[Version]) -> InOrder:
    """The list of versions as a fault shows it."""
    return InOrder([_version(each) for each in versions])


def printed_items(items: Any) -> InOrder:
    """The value of ``items`` as a fault shows it."""
    return InOrder(_items(items))


def _version(version: Version) -> dict[str, Any]:
    schema = None if version.schema is None else _schema(version.schema)
    return {
        "Name": version.name,
        "Served": version.served,
        "Storage": version.storage,
        "Deprecated": version.deprecated,
        "DeprecationWarning": version.warning,
        "Schema": {"OpenAPIV3Schema": schema} if version.has_validation else None,
        "Subresources": _subresources(version.subresources),
        "AdditionalPrinterColumns": [_column(each) for each in version.columns] or None,
        "SelectableFields": [{"JSONPath": each.get("jsonPath") or ""} for each in version.selectable] or None,
    }


def _subresources(raw: dict[str, Any] | None) -> dict[str, Any] | None:
    if raw is None:
        return None
    scale = raw.get("scale")
    return {
        "Status": None if raw.get("status") is None else {},
        "Scale": None
        if scale is None
        else {
            "SpecReplicasPath": scale.get("specReplicasPath") or "",
            "StatusReplicasPath": scale.get("statusReplicasPath") or "",
            "LabelSelectorPath": scale.get("labelSelectorPath"),
        },
    }


def _column(raw: dict[str, Any]) -> dict[str, Any]:
    return {
        "Name": raw.get("name") or "",
        "Type": raw.get("type") or "",
        "Format": raw.get("format") or "",
        "Description": raw.get("description") or "",
        "Priority": raw.get("priority") or 0,
        "JSONPath": raw.get("jsonPath") or "",
    }


def _schema(schema: Schema) -> dict[str, Any]:
    return {
        name: _part(keyword, schema[keyword]) if keyword in schema else empty
        for name, keyword, empty in _SCHEMA_FIELDS
    }


def _part(keyword: str, value: Any) -> Any:
    if keyword in ("allOf", "oneOf", "anyOf"):
        return [_schema(each) for each in value]
    if keyword == "not":
        return _schema(value)
    if keyword in ("properties", "patternProperties", "definitions"):
        return {name: _schema(value[name]) for name in sorted(value)}
    if keyword == "items":
        return _items(value)
    if keyword in ("additionalProperties", "additionalItems"):
        return {"Allows": value is not False, "Schema": _schema(value) if isinstance(value, dict) else None}
    if keyword == "dependencies":
        return {name: _dependency(value[name]) for name in sorted(value)}
    if keyword == "externalDocs":
        return {"Description": value.get("description") or "", "URL": value.get("url") or ""}
    if keyword == "x-kubernetes-validations":
        return [_rule(each or {}) for each in value]
    return _sorted(value)


def _items(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return {"Schema": _schema(value), "JSONSchemas": None}
    return {"Schema": None, "JSONSchemas": [_schema(each) for each in value]}


def _dependency(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return {"Schema": _schema(value), "Property": None}
    return {"Schema": None, "Property": value}


def _rule(raw: dict[str, Any]) -> dict[str, Any]:
    return {
        "Rule": raw.get("rule") or "",
        "Message": raw.get("message") or "",
        "MessageExpression": raw.get("messageExpression") or "",
        "Reason": raw.get("reason"),
        "FieldPath": raw.get("fieldPath") or "",
        "OptionalOldSelf": raw.get("optionalOldSelf"),
    }


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value
