"""OpenAPI documents in protobuf: gnostic's ``openapi.v2.Document`` and ``openapi.v3.Document``.

Each message is a table: the key of the JSON document → the field's number and how its value is written. Values of
unknown type (enums, examples, extensions) travel as YAML text, for which JSON serves.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from apimachinery.wire.json import encode

V2_TYPES = (
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
)
"""The media type of version 2, and its old form."""
V3_TYPES = (
    "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
)

_Field = Callable[[int, Any], bytes]
"""From a number and a value to the bytes of a field, or of several."""


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _bytes(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _text(field: int, text: Any) -> bytes:
    return _bytes(field, str(text).encode()) if text else b""


def _whole(field: int, number: Any) -> bytes:
    return _varint(field << 3) + _varint(int(number) & (1 << 64) - 1) if number else b""


def _double(field: int, number: Any) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", number) if number else b""


def _any(field: int, value: Any) -> bytes:
    return _bytes(field, _bytes(2, encode(value)))


def _each(one: _Field) -> _Field:
    return lambda field, values: b"".join(one(field, value) for value in values or ())


def _within(number: int, one: _Field) -> _Field:
    """A message with a single field."""
    return lambda field, value: _bytes(field, one(number, value))


def _entries(one: _Field) -> _Field:
    """A map as pairs of a name and a value."""

    def field_of(field: int, value: Mapping[str, Any]) -> bytes:
        return b"".join(_bytes(field, _bytes(1, key.encode()) + one(2, item)) for key, item in value.items())

    return field_of


def _map(one: _Field, number: int = 1) -> _Field:
    """A message of such pairs."""
    return _within(number, _entries(one))


class _Message:
    """A message by its table; what begins with ``x-`` goes into the field ``extensions``."""

    def __init__(self, extensions: int = 0) -> None:
        self.fields: dict[str, tuple[int, _Field]] = {}
        self.extensions = extensions

    def __call__(self, field: int, value: Any) -> bytes:
        return _bytes(field, self.body(value))

    def body(self, value: Any) -> bytes:
        """The bytes without a field's head."""
        made = []
        for key, item in value.items():
            if (known := self.fields.get(key)) is not None:
                made.append(known[1](known[0], item))
            elif self.extensions and key.startswith("x-"):
                made.append(_bytes(self.extensions, _bytes(1, key.encode()) + _any(2, item)))
        return b"".join(made)


def _one_or(number: int, one: _Field, reference: int) -> _Field:
    """Either a value, or a reference: of the two fields of a message one is there."""

    def field_of(field: int, value: Any) -> bytes:
        target = value.get("$ref")
        inner = one(number, value) if target is None else _bytes(reference, _text(1, target))
        return _bytes(field, inner)

    return field_of


def _scalar_schema(numbers: Mapping[str, int]) -> dict[str, tuple[int, _Field]]:
    """The fields of a schema that both versions write alike."""
    kinds: dict[str, _Field] = {
        "format": _text,
        "title": _text,
        "description": _text,
        "pattern": _text,
        "multipleOf": _double,
        "maximum": _double,
        "minimum": _double,
        "exclusiveMaximum": _whole,
        "exclusiveMinimum": _whole,
        "uniqueItems": _whole,
        "maxLength": _whole,
        "minLength": _whole,
        "maxItems": _whole,
        "minItems": _whole,
        "maxProperties": _whole,
        "minProperties": _whole,
        "required": _each(_text),
        "enum": _each(_any),
        "example": _any,
        "externalDocs": _EXTERNAL_DOCS,
    }
    return {name: (numbers[name], kind) for name, kind in kinds.items()}


def _extra(schema: _Field) -> _Field:
    """``additionalProperties``: a schema, or whether there may be any."""

    def field_of(field: int, value: Any) -> bytes:
        if isinstance(value, bool):
            return _bytes(field, _varint(2 << 3) + _varint(value))
        return _bytes(field, schema(1, value))

    return field_of


def _default(field: int, value: Any) -> bytes:
    """A default of version 3: of lists, objects and null there is only that they are there."""
    match value:
        case bool():
            inner = _varint(2 << 3) + _varint(value)
        case int() | float():
            inner = _varint(1 << 3 | 1) + struct.pack("<d", value)
        case str():
            inner = _bytes(3, value.encode())
        case _:
            inner = b""
    return _bytes(field, inner)


_EXTERNAL_DOCS = _Message()
_EXTERNAL_DOCS.fields = {"description": (1, _text), "url": (2, _text)}


_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")


def _message(fields: Mapping[str, tuple[int, _Field]], size: int = 0) -> _Message:
    made = _Message(size) if size else _Message()
    made.fields = dict(fields)
    return made


def _schema_2() -> _Message:
    schema = _Message(31)
    types: _Field = lambda field, value: _bytes(  # noqa: E731
        field, _each(_text)(1, value if isinstance(value, list) else [value])
    )
    numbers = dict.fromkeys(
        (
            "format title description default multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength "
            "minLength pattern maxItems minItems uniqueItems maxProperties minProperties required enum"
        ).split()
    )
    placed = {name: place for place, name in enumerate(numbers, 2)} | {"externalDocs": 29, "example": 30}
    schema.fields = {
        **_scalar_schema(placed),
        "$ref": (1, _text),
        "default": (5, _any),
        "additionalProperties": (21, _extra(schema)),
        "type": (22, types),
        "items": (23, _within(1, schema)),
        "allOf": (24, _each(schema)),
        "properties": (25, _map(schema)),
    }
    return schema


def _parameter_2(schema: _Message) -> _Field:
    described = {"description": (1, _text), "name": (2, _text), "in": (3, _text), "required": (4, _whole)}
    body = _message({**described, "schema": (5, schema)})
    shared: dict[str, tuple[int, _Field]] = {
        "required": (1, _whole),
        "in": (2, _text),
        "description": (3, _text),
        "name": (4, _text),
    }
    query = _message({**shared, "type": (6, _text), "uniqueItems": (20, _whole)})
    path = _message({**shared, "type": (5, _text), "uniqueItems": (19, _whole)})

    def parameter(field: int, value: Any) -> bytes:
        if value["in"] == "body":
            return _bytes(field, body(1, value))
        return _bytes(field, _bytes(2, path(4, value) if value["in"] == "path" else query(3, value)))

    return parameter


def _version_2() -> _Message:
    schema = _schema_2()
    parameter = _parameter_2(schema)
    parameters = _each(_one_or(1, parameter, 2))
    response = _message({"description": (1, _text), "schema": (2, _within(1, schema))})
    operation = _Message(13)
    operation.fields = {
        "tags": (1, _each(_text)),
        "description": (3, _text),
        "operationId": (5, _text),
        "produces": (6, _each(_text)),
        "consumes": (7, _each(_text)),
        "parameters": (8, parameters),
        "responses": (9, _map(_within(1, response))),
        "schemes": (10, _each(_text)),
    }
    item = _message({method: (number, operation) for number, method in enumerate(_METHODS, 2)})
    item.fields["parameters"] = (9, parameters)
    info = _message({"title": (1, _text), "version": (2, _text)})
    key = _message({"type": (1, _text), "name": (2, _text), "in": (3, _text), "description": (4, _text)})
    return _message(
        {
            "swagger": (1, _text),
            "info": (2, info),
            "paths": (8, _map(item, 2)),
            "definitions": (9, _map(schema)),
            "parameters": (10, _map(parameter)),
            "security": (12, _each(_map(_within_list))),
            "securityDefinitions": (13, _map(_within(2, key))),
        }
    )


def _within_list(field: int, value: Any) -> bytes:
    return _bytes(field, _each(_text)(1, value))


def _schema_3() -> _Field:
    """A schema or a reference to one."""
    schema = _Message(36)
    either = _one_or(1, schema, 2)
    numbers = dict.fromkeys(
        (
            "title multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern maxItems "
            "minItems uniqueItems maxProperties minProperties required enum"
        ).split()
    )
    placed = {name: place for place, name in enumerate(numbers, 9)}
    placed |= {"externalDocs": 6, "example": 7, "description": 34, "format": 35}
    schema.fields = {
        **_scalar_schema(placed),
        "nullable": (1, _whole),
        "type": (25, _text),
        "allOf": (26, _each(either)),
        "oneOf": (27, _each(either)),
        "anyOf": (28, _each(either)),
        "not": (29, schema),
        "items": (30, _within(1, either)),
        "properties": (31, _map(either)),
        "additionalProperties": (32, _extra(either)),
        "default": (33, _default),
    }
    return either


def _version_3() -> _Message:
    either = _schema_3()
    content = _map(_message({"schema": (1, either)}))
    response = _message({"description": (1, _text), "content": (3, content)})
    body = _message({"content": (2, content), "required": (3, _whole)})
    described = {"name": (1, _text), "in": (2, _text), "description": (3, _text), "required": (4, _whole)}
    parameter = _message({**described, "schema": (10, either)})
    parameters = _each(_within(1, parameter))
    operation = _Message(13)
    operation.fields = {
        "tags": (1, _each(_text)),
        "description": (3, _text),
        "operationId": (5, _text),
        "parameters": (6, parameters),
        "requestBody": (7, _within(1, body)),
        "responses": (8, _map(_within(1, response), 2)),
    }
    item = _message({method: (number, operation) for number, method in enumerate(_METHODS, 4)})
    item.fields["parameters"] = (13, parameters)
    info = _message({"title": (1, _text), "version": (6, _text)})
    key = _message({"type": (1, _text), "description": (2, _text), "name": (3, _text), "in": (4, _text)})
    components = _message({"schemas": (1, _map(either)), "securitySchemes": (7, _map(_within(1, key)))})
    return _message(
        {
            "openapi": (1, _text),
            "info": (2, info),
            "paths": (4, _map(item)),
            "components": (5, components),
        }
    )


_VERSION_2, _VERSION_3 = _version_2(), _version_3()


def encode_v2(document: Mapping[str, Any]) -> bytes:
    """The bytes of an OpenAPI v2 document."""
    return _VERSION_2.body(document)


def encode_v3(document: Mapping[str, Any]) -> bytes:
    """The bytes of an OpenAPI v3 document."""
    return _VERSION_3.body(document)
