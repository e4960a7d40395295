"""The OpenAPI v3 documents of a kube-apiserver give zero values of Go as defaults, which do not fit.

The generator behind /openapi/v3 writes the zero value of every Go struct field that is not a pointer as its default
(kube-openapi issue of long standing): ``default: {}`` next to ``allOf`` of a type with required fields, and, where
a server publishes enums, ``default: ""`` next to an ``enum`` without it. The validator reports both.
A server never applies such a default to an object that lacks the field and then refuses it: the required
fields are checked on what the user sent. The defaults are harmless, and we keep them as they are. Documents of custom
kinds hold built-in types too: Scale, ObjectMeta.
"""

from __future__ import annotations

from typing import Any

from kubewright.fixups.fixup import Waiver

_TITLES = ("Kubernetes", "Kubernetes CRD Swagger")


def _schemas(value: Any) -> dict[str, Any]:
    """The schemas of a document that a kube-apiserver publishes; none of others."""
    if not isinstance(value, dict) or "openapi" not in value:
        return {}
    info, components = value.get("info"), value.get("components")
    if not isinstance(info, dict) or info.get("title") not in _TITLES or not isinstance(components, dict):
        return {}
    schemas = components.get("schemas")
    return schemas if isinstance(schemas, dict) else {}


def _holds_empty_objects(value: Any) -> bool:
    schemas = _schemas(value)
    return any(_is_suspect(place, schemas) for schema in schemas.values() for place in _places(schema))


def _holds_empty_choices(value: Any) -> bool:
    return any(
        place.get("default") == "" and "" not in (place.get("enum") or [""])
        for schema in _schemas(value).values()
        for place in _places(schema)
    )


def _places(schema: Any) -> list[dict[str, Any]]:
    """The properties of a schema and their items."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    found = [each for each in (properties or {}).values() if isinstance(each, dict)]
    return found + [each["items"] for each in found if isinstance(each.get("items"), dict)]


def _is_suspect(place: dict[str, Any], schemas: dict[str, Any]) -> bool:
    if place.get("default") != {} or not isinstance(place.get("allOf"), list):
        return False
    names = [
        str(part.get("$ref", "")).rpartition("/")[2] for part in place["allOf"] if isinstance(part, dict)
    ]
    return any(isinstance(schemas.get(name), dict) and schemas[name].get("required") for name in names)


def _is_empty_object(message: str, instance_is_empty: bool, rule: tuple[str, ...]) -> bool:
    del message
    return instance_is_empty and rule[:1] == ("allOf",) and rule[-1:] == ("required",)


def _is_empty_choice(message: str, instance_is_empty: bool, rule: tuple[str, ...]) -> bool:
    del instance_is_empty
    return message.startswith("'' is not one of") and rule == ("enum",)


EMPTY_DEFAULTS = Waiver(
    name="empty_defaults",
    reason="default: {} for a type with required fields",
    applies_to=_holds_empty_objects,
    waives=_is_empty_object,
)
EMPTY_CHOICES = Waiver(
    name="empty_choices",
    reason='default: "" beside an enum without it',
    applies_to=_holds_empty_choices,
    waives=_is_empty_choice,
)
