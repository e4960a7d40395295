"""Alternatives (``anyOf``, ``not``, …) as they meet an object whose defaults are not filled in yet.

A server fills in defaults first. So where an alternative speaks of a field that has a default, a field that is left out
counts as the default: the alternative is met without it only if the default meets it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kubewright.ir.types import ABSENT, Field, Json, Struct, Type

_JUNCTIONS = ("allOf", "anyOf", "oneOf")
Resolve = Callable[[Type], Struct | None]


def with_defaults(schema: Json, struct: Struct | None, resolve: Resolve) -> Json:
    """An alternative as it must be for objects that are sent before defaults are filled in: fields of ``struct`` with a
    default are not required, unless the default does not meet the alternative. ``resolve`` gives the fields of a
    type."""
    if struct is None or not isinstance(schema, dict):
        return schema
    out = dict(schema)
    for word in _JUNCTIONS:
        if word in out:
            out[word] = [with_defaults(each, struct, resolve) for each in out[word]]
    if "not" in out:
        out["not"] = with_defaults(out["not"], struct, resolve)
    fields = {field.wire_name: field for field in struct.fields}
    if isinstance(properties := out.get("properties"), dict):
        out["properties"] = {
            name: with_defaults(inner, resolve(fields[name].value.type) if name in fields else None, resolve)
            for name, inner in properties.items()
        }
        sent = [n for n, s in properties.items() if n in fields and not _meets_by_default(s, fields[n])]
        if sent:
            out["required"] = sorted({*out.get("required", ()), *sent})
    if "required" in out:
        given = {name for name, field in fields.items() if has_default(field)}
        sent = [] if "properties" not in out else [n for n in out["required"] if n in out["properties"]]
        out["required"] = [name for name in out["required"] if name not in given or name in sent]
    return out


def some_field(struct: Struct) -> list[Json]:
    """That an object has a field: one that is null is dropped, and one that has a default comes by itself."""
    if any(map(has_default, struct.fields)):
        return []
    names = [field.wire_name for field in struct.fields]
    return [{"anyOf": [{"required": [n], "properties": {n: {"not": {"type": "null"}}}} for n in names]}]


def has_default(field: Field) -> bool:
    """Whether a field that is left out gets a value. A default that is null is none."""
    return field.value.default is not ABSENT and field.value.default is not None


def _meets_by_default(schema: Json, field: Field) -> bool:
    return not has_default(field) or meets(schema, field.value.default)


def meets(schema: Json, value: Json) -> bool:
    """Whether a value meets a schema, as far as alternatives use keywords; unknown keywords count as met."""
    if not isinstance(schema, dict):
        return True
    junctions = (
        all(meets(each, value) for each in schema.get("allOf", ())),
        "anyOf" not in schema or any(meets(each, value) for each in schema["anyOf"]),
        "oneOf" not in schema or sum(meets(each, value) for each in schema["oneOf"]) == 1,
        "not" not in schema or not meets(schema["not"], value),
        "enum" not in schema or value in schema["enum"],
    )
    if not all(junctions):
        return False
    if isinstance(value, str):
        pattern = schema.get("pattern")
        return (pattern is None or _found(pattern, value)) and (
            schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))
        )
    if isinstance(value, int | float) and not isinstance(value, bool):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    return True


def _found(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:
        return True
