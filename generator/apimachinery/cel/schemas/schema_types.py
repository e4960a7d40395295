"""CEL types of OpenAPI schemas, with the bounds that estimates need.

A ``Declared`` type is a CEL type, the most elements a value can have (characters, items, entries) and the fewest
bytes it takes as JSON; where a schema sets no bound, the 3 MiB of a request do. What CEL may not see (fields of
unknown shape, names without an identifier) is left out. Source: Kubernetes' rules for schemas in CEL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apimachinery.cel.schemas.escaping import RESERVED, escape, unescape
from apimachinery.cel.values import types as t
from apimachinery.cel.values.ranges import Range
from apimachinery.cel.values.types import Type

MAX_REQUEST = 3 * 1024 * 1024
_UNBOUNDED_TEXT = MAX_REQUEST - 2
_MIN_STRING = 2
# format → type, most characters (None: by maxLength), fewest bytes
_FORMATS: dict[str, tuple[Type, int | None, int]] = {
    "byte": (t.BYTES, None, _MIN_STRING),
    "duration": (t.DURATION, 32, 3),
    "date": (t.TIMESTAMP, 12, 12),
    "date-time": (t.TIMESTAMP, 32, 21),
}
_SCALARS = {"boolean": (t.BOOL, 4), "number": (t.DOUBLE, 1), "integer": (t.INT, 1)}


class Declared:
    """A type declared by a schema. ``fields`` of an object are by identifier."""

    __slots__ = ("element", "fields", "key", "max_elements", "min_size", "type")

    def __init__(
        self,
        of: Type,
        max_elements: int = 0,
        min_size: int = 2,
        *,
        key: Declared | None = None,
        element: Declared | None = None,
        fields: dict[str, Declared] | None = None,
    ):
        self.type = of
        self.max_elements = max_elements
        self.min_size = min_size
        self.key = key
        self.element = element
        self.fields = fields


_KEY = Declared(t.STRING, 0, _MIN_STRING)

_TEXT = {"type": "string"}
OBJECT_META = {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}


def with_object_meta(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a whole object as CEL sees it: apiVersion, kind, and of metadata only the names."""
    properties = schema.get("properties") or {}
    metadata = properties.get("metadata") or {}
    names = metadata.get("properties") or {}
    complete = (
        (properties.get("kind") or {}).get("type") == "string"
        and (properties.get("apiVersion") or {}).get("type") == "string"
        and metadata.get("type") == "object"
        and (names.get("name") or {}).get("type") == "string"
        and (names.get("generateName") or {}).get("type") == "string"
    )
    if complete:
        return schema
    return {
        **schema,
        "properties": {**properties, "kind": _TEXT, "apiVersion": _TEXT, "metadata": OBJECT_META},
    }


def _bound(schema: Mapping[str, Any], name: str) -> int | None:
    value = schema.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return max(0, int(value))


MAX_DEPTH = 3_000
"""Schemas within schemas: paths grow with each, so the time that a schema takes grows with the square of its depth."""


class SchemaTypes:
    """The types of one schema: a ``TypeProvider`` for its objects, and sizes by path."""

    def __init__(self, schema: Mapping[str, Any], *, is_root: bool = False, name: str = "selfType"):
        self.objects: dict[str, Declared] = {}
        self.depth = 0
        self.root = self.declare(schema, is_root, name)

    def declare(self, schema: Mapping[str, Any], is_root: bool, name: str) -> Declared | None:
        """The type of a schema, or None if CEL may not see it; objects are known by ``name``.

        Raises RecursionError for one that is nested deeper than ``MAX_DEPTH``."""
        if self.depth >= MAX_DEPTH:
            raise RecursionError(f"the schema is nested deeper than {MAX_DEPTH}")
        self.depth += 1
        try:
            return self._declared(schema, is_root, name)
        finally:
            self.depth -= 1

    def _declared(self, schema: Mapping[str, Any], is_root: bool, name: str) -> Declared | None:
        if schema.get("x-kubernetes-int-or-string"):
            length = _bound(schema, "maxLength")
            return Declared(t.DYN, _UNBOUNDED_TEXT if length is None else length * 4, 1)
        if is_root:
            schema = with_object_meta(schema)
        kind = schema.get("type")
        if kind == "array":
            return self._array(schema, name)
        if kind == "object":
            return self._object(schema, name)
        if kind == "string":
            return _string(schema)
        scalar = _SCALARS.get(kind) if isinstance(kind, str) else None
        return Declared(scalar[0], 0, scalar[1]) if scalar else None

    def _array(self, schema: Mapping[str, Any], name: str) -> Declared | None:
        items = schema.get("items")
        if not isinstance(items, Mapping):
            return None
        element = self.declare(items, bool(items.get("x-kubernetes-embedded-resource")), name + ".@idx")
        if element is None:
            return None
        most = _bound(schema, "maxItems")
        if most is None:
            most = (MAX_REQUEST - 2) // (element.min_size + 1)
        return Declared(t.list_of(element.type), most, element=element)

    def _object(self, schema: Mapping[str, Any], name: str) -> Declared | None:
        values = schema.get("additionalProperties")
        if isinstance(values, Mapping):
            element = self.declare(
                values, bool(values.get("x-kubernetes-embedded-resource")), name + ".@elem"
            )
            if element is None:
                return None
            most = _bound(schema, "maxProperties")
            if most is None:
                most = (MAX_REQUEST - 2) // (element.min_size + 6)
            return Declared(t.map_of(t.STRING, element.type), most, key=_KEY, element=element)
        fields: dict[str, Declared] = {}
        required = set(schema.get("required") or ())
        size = 2
        for prop, sub in (schema.get("properties") or {}).items():
            if not isinstance(sub, Mapping):
                continue
            identifier = escape(prop)
            sub_name = f"{name}.{identifier or prop}"
            declared = self.declare(sub, bool(sub.get("x-kubernetes-embedded-resource")), sub_name)
            if declared is None:
                continue
            if identifier is not None:
                fields[identifier] = declared
            if prop in required and sub.get("default") is None:
                size += len(prop.encode("utf-8", "surrogatepass")) + declared.min_size + 4
        declared_object = Declared(t.object_type(name), 0, size, fields=fields)
        self.objects[name] = declared_object
        return declared_object

    # TypeProvider

    def field_type(self, type_name: str, field: str) -> Type | None:
        """The type of a field of one of the schema's objects; reserved words may be written as they are."""
        found = self.objects.get(type_name)
        if found is None or found.fields is None:
            return None
        declared = found.fields.get(field) or (
            found.fields.get(f"__{field}__") if field in RESERVED else None
        )
        return declared.type if declared else None

    def find_type(self, type_name: str) -> Type | None:
        """None: the names of a schema's objects cannot be written."""
        return None

    def wire_name(self, type_name: str, field: str) -> str:
        """The property of a field."""
        return unescape(field)


def size_in(root: Declared, path: tuple[str, ...]) -> Range | None:
    """The size range of the value at ``path``, whose first piece, the variable, stands for ``root``."""
    if not path:
        return None
    current: Declared | None = root
    for piece in path[1:]:
        if current is None:
            return None
        if piece in ("@items", "@values"):
            current = current.element
        elif piece == "@keys":
            current = current.key
        else:
            current = current.fields.get(piece) if current.fields else None
    return Range(0, current.max_elements) if current is not None else None


def _string(schema: Mapping[str, Any]) -> Declared:
    length = _bound(schema, "maxLength")
    form = schema.get("format")
    special = _FORMATS.get(form) if isinstance(form, str) else None
    if special is not None:
        of, most, least = special
        if most is None:
            most = _UNBOUNDED_TEXT if length is None else length
        return Declared(of, most, least)
    if length is not None:
        most = length * 4
    elif schema.get("enum"):
        texts = [e for e in schema["enum"] if isinstance(e, str)]
        most = max((len(e.encode("utf-8", "surrogatepass")) for e in texts), default=0)
    else:
        most = _UNBOUNDED_TEXT
    return Declared(t.STRING, most, _MIN_STRING)
