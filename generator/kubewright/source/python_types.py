"""Types of Python as structural schemas."""

from __future__ import annotations

import datetime
import decimal
import types
import uuid
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, get_args, get_origin

import msgspec

from apimachinery.typed import markers
from kubewright.ir.types import ABSENT, Json
from kubewright.source.python_fields import ClassField, PythonTypeError, is_class

Part: TypeAlias = Callable[[type, str], Json]
"""The schema of a class that stands at a pointer."""
_SCALARS: Final[dict[Any, Json]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    decimal.Decimal: {"type": "number"},
    bytes: {"type": "string", "format": "byte"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.timedelta: {"type": "string"},  # written in ISO 8601, which is no duration of Go
    uuid.UUID: {"type": "string", "format": "uuid"},
}
_UNKNOWN: Final = "x-kubernetes-preserve-unknown-fields"
_LISTS: Final = (list, tuple, Sequence)
_SETS: Final = (set, frozenset, Set)
_MAPS: Final = (dict, Mapping)
_BOUNDS: Final = {
    "ge": "minimum",
    "gt": "minimum",
    "le": "maximum",
    "lt": "maximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}
_BOUNDED: Final = {"integer", "number"}
_LENGTHS: Final = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}


@dataclass(frozen=True, slots=True)
class TypeSchema:
    """Reads types; ``part`` reads the classes in them."""

    part: Part

    def read(self, field: ClassField, pointer: str) -> Json:
        """The schema of a field. Raises ``PythonTypeError``."""
        schema, nullable = self._read(field.type, pointer)
        for marker in field.metadata:
            _mark(schema, marker)
        if (nullable and field.required) or _is_unset(field.type):
            schema["nullable"] = True
        if (default := field.default()) is not ABSENT:
            schema.setdefault("default", default)
        return schema

    def _read(self, given: Any, pointer: str) -> tuple[Json, bool]:
        """The schema of a type, and whether it may be null."""
        if get_origin(given) is Annotated:
            inner, *said = get_args(given)
            schema, nullable = self._read(inner, pointer)
            for marker in said:
                _mark(schema, marker)
            return schema, nullable
        if isinstance(given, types.UnionType) or get_origin(given) is Union:
            members = [each for each in get_args(given) if each not in (type(None), msgspec.UnsetType)]
            return self._union(members, pointer), type(None) in get_args(given)
        return self._single(given, pointer), False

    def _inner(self, given: Any, pointer: str) -> Json:
        schema, nullable = self._read(given, pointer)
        return {**schema, "nullable": True} if nullable else schema

    def _union(self, members: list[Any], pointer: str) -> Json:
        if len(members) == 1:
            return self._inner(members[0], pointer)
        if set(members) <= {int, str} or (set(members) <= {int, str, float} and str in members):
            return {"x-kubernetes-int-or-string": True}
        if set(members) <= {int, float}:
            return {"type": "number"}
        names = " | ".join(getattr(each, "__name__", str(each)) for each in members)
        raise PythonTypeError(
            f"{names} has no structural schema", "use one class with optional fields, or Any"
        )

    def _single(self, given: Any, pointer: str) -> Json:
        origin, inside = get_origin(given), get_args(given)
        if given in (Any, object) or given is msgspec.Raw:
            return {_UNKNOWN: True}
        if origin is Literal:
            return _enum(list(inside))
        if isinstance(given, type) and issubclass(given, Enum):
            return _enum([each.value for each in given])
        if isinstance(given, type) and origin is None and given in _SCALARS:
            return dict(_SCALARS[given])
        holder = origin or given
        if holder in _LISTS or holder in _SETS:
            items = inside[0] if inside and (len(inside) == 1 or inside[1] is ...) else Any
            if len(inside) > 1 and inside[1] is not ...:
                raise PythonTypeError(
                    f"{given} has no structural schema", "use a list, or a class with fields"
                )
            schema: Json = {"type": "array", "items": self._inner(items, f"{pointer}/items")}
            return {**schema, "x-kubernetes-list-type": "set"} if holder in _SETS else schema
        if holder in _MAPS:
            return self._map(inside, pointer)
        if isinstance(given, type) and is_class(given):
            return self.part(given, pointer)
        if isinstance(given, type) and (base := next((b for b in given.__mro__ if b in _SCALARS), None)):
            return dict(_SCALARS[base])
        raise PythonTypeError(
            f"{getattr(given, '__name__', given)} has no schema", "use a scalar, a list, a map or a class"
        )

    def _map(self, inside: tuple[Any, ...], pointer: str) -> Json:
        if inside and inside[0] is not str:
            raise PythonTypeError("the keys of a map are text", "use dict[str, …]")
        values = inside[1] if len(inside) > 1 else Any
        if values is Any:
            return {"type": "object", _UNKNOWN: True}
        return {
            "type": "object",
            "additionalProperties": self._inner(values, f"{pointer}/additionalProperties"),
        }


def _is_unset(given: Any) -> bool:
    if get_origin(given) is Annotated:
        return _is_unset(get_args(given)[0])
    return msgspec.UnsetType in get_args(given) and type(None) in get_args(given)


def _enum(members: list[Any]) -> Json:
    kinds = {type(each) for each in members}
    words = {str: "string", int: "integer", bool: "boolean", float: "number"}
    if len(kinds) != 1 or (kind := kinds.pop()) not in words:
        raise PythonTypeError("the members of an enum are of one type: text, numbers or booleans")
    return {"type": words[kind], "enum": members}


def _mark(schema: Json, marker: Any) -> None:
    """Adds what a marker says."""
    match marker:
        case markers.ListMerge(word, keys):
            schema["x-kubernetes-list-type"] = word
            if keys:
                schema["x-kubernetes-list-map-keys"] = list(keys)
        case markers.MapMerge(word):
            schema["x-kubernetes-map-type"] = word
        case markers.FormatName(name):
            schema["format"] = name
        case markers.Default(value):
            schema["default"] = value
        case markers.PreserveUnknown():
            schema[_UNKNOWN] = True
        case markers.EmbeddedResource():
            schema["x-kubernetes-embedded-resource"] = True
        case markers.CelRule():
            schema.setdefault("x-kubernetes-validations", []).append(rule_schema(marker))
        case _:
            _bound(schema, marker)


def rule_schema(rule: markers.CelRule) -> Json:
    """A rule as a CustomResourceDefinition has it."""
    said = {
        "rule": rule.rule,
        "message": rule.message,
        "messageExpression": rule.message_expression,
        "reason": rule.reason,
        "fieldPath": rule.field_path,
        "optionalOldSelf": rule.optional_old_self,
    }
    return {key: item for key, item in said.items() if item not in ("", None)}


def _bound(schema: Json, marker: Any) -> None:
    """Adds the bounds that a marker has as attributes: msgspec's, pydantic's and those of ``annotated_types``. Raises
    ``PythonTypeError`` for one that its type does not have."""
    parts = getattr(marker, "metadata", None)  # of pydantic's Field within a type
    for part in parts if isinstance(parts, list) else ():
        _mark(schema, part)
    kind = schema.get("type", "")
    bounds = {key: value for key in _BOUNDS if (value := getattr(marker, key, None)) is not None}
    for attribute, value in bounds.items():
        fits = kind == "string" if attribute == "pattern" else kind in _BOUNDED
        if kind and not fits:
            raise PythonTypeError(f"{attribute} says nothing of {_ARTICLES[kind]}")
        schema[_BOUNDS[attribute]] = value
        if attribute in ("gt", "lt"):
            schema["exclusiveMinimum" if attribute == "gt" else "exclusiveMaximum"] = True
    for number, attribute in enumerate(("min_length", "max_length")):
        value = getattr(marker, attribute, None)
        if value is not None:
            if kind not in _LENGTHS:
                raise PythonTypeError(f"{attribute} says nothing of {_ARTICLES.get(kind, 'any value')}")
            schema[_LENGTHS[kind][number]] = value
    if text := getattr(marker, "description", None):
        schema["description"] = text
    if text := getattr(marker, "title", None):
        schema["title"] = text
    if isinstance(marker, msgspec.Meta):
        schema |= marker.extra_json_schema or {}


_ARTICLES: Final = {
    "string": "a text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "array": "a list",
    "object": "an object",
}
