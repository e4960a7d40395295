"""Kubernetes' OpenAPI v3 documents give ``default: {}`` next to ``allOf`` of a type with required fields.

The generator behind /openapi/v3 writes the zero value of every Go struct field that is not a pointer as its default
(kube-openapi issue of long standing). ``{}`` does not satisfy the type it is next to, which the validator reports.
A server never applies such a default to an object that lacks the field and then refuses it: the required
fields are checked on what the user sent. The defaults are harmless, and we keep them as they are.
"""

from __future__ import annotations

from typing import Any

from kubewright.fixups.fixup import Waiver


def _applies_to(value: Any) -> bool:
    """Documents of Kubernetes itself that hold such a default."""
    if not isinstance(value, dict) or "openapi" not in value:
        return False
    info = value.get("info")
    if not isinstance(info, dict) or info.get("title") != "Kubernetes":
        return False
    components = value.get("components")
    schemas = components.get("schemas", {}) if isinstance(components, dict) else {}
    return any(_is_suspect(place, schemas) for schema in schemas.values() for place in _properties(schema))


def _properties(schema: Any) -> list[Any]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return list(properties.values()) if isinstance(properties, dict) else []


def _is_suspect(place: Any, schemas: Any) -> bool:
    if not isinstance(place, dict) or place.get("default") != {} or not isinstance(place.get("allOf"), list):
        return False
    names = [
        str(part.get("$ref", "")).rpartition("/")[2] for part in place["allOf"] if isinstance(part, dict)
    ]
    return any(isinstance(schemas.get(name), dict) and schemas[name].get("required") for name in names)


def _waives(message: str, instance_is_empty: bool, rule: tuple[str, ...]) -> bool:
    del message
    return instance_is_empty and rule[:1] == ("allOf",) and rule[-1:] == ("required",)


EMPTY_DEFAULTS = Waiver(
    name="empty_defaults",
    reason="default: {} beside a type with required fields",
    applies_to=_applies_to,
    waives=_waives,
)
