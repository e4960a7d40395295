"""An OpenAPI v2 document in the protobuf form that kubectl asks for (gnostic's ``openapi.v2.Document``).

Only what clients read is encoded: info, the operations' names, parameters, kinds and media types, and all
definitions. Values of unknown type (defaults, enums, extensions) travel as YAML text, for which JSON serves.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

from apimachinery.wire.json import encode

MEDIA_TYPES = (
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
)
_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}


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


def _texts(field: int, texts: Iterable[Any]) -> bytes:
    return b"".join(_bytes(field, str(text).encode()) for text in texts)


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number & (1 << 64) - 1) if number else b""


def _double(field: int, number: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", number) if number else b""


def _any(field: int, value: Any) -> bytes:
    return _bytes(field, _bytes(2, encode(value)))


def _extensions(field: int, value: Mapping[str, Any]) -> bytes:
    return b"".join(
        _bytes(field, _text(1, key) + _any(2, item)) for key, item in value.items() if key.startswith("x-")
    )


def encode_document(document: Mapping[str, Any]) -> bytes:
    """The bytes of an OpenAPI v2 document."""
    info = document["info"]
    paths = b"".join(
        _bytes(2, _text(1, path) + _bytes(2, _path(item))) for path, item in document["paths"].items()
    )
    definitions = b"".join(_named(schema, name) for name, schema in document["definitions"].items())
    return b"".join(
        (
            _text(1, document["swagger"]),
            _bytes(2, _text(1, info["title"]) + _text(2, info["version"])),
            _bytes(8, paths),
            _bytes(9, definitions),
        )
    )


def _named(schema: Any, name: str) -> bytes:
    return _bytes(1, _text(1, name) + _bytes(2, _schema(schema)))


def _path(item: Mapping[str, Any]) -> bytes:
    made = [_bytes(number, _operation(item[method])) for method, number in _METHODS.items() if method in item]
    return b"".join(made)


def _operation(operation: Mapping[str, Any]) -> bytes:
    responses = b"".join(
        _bytes(1, _text(1, code) + _bytes(2, _bytes(1, _text(1, answer["description"]))))
        for code, answer in operation["responses"].items()
    )
    parameters = b"".join(_parameter(parameter) for parameter in operation["parameters"])
    return b"".join(
        (
            _text(5, operation["operationId"]),
            _texts(6, operation["produces"]),
            _texts(7, operation["consumes"]),
            parameters,
            _bytes(9, responses),
            _extensions(13, operation),
        )
    )


def _parameter(parameter: Mapping[str, Any]) -> bytes:
    if parameter["in"] == "body":
        required = _number(4, int(parameter.get("required", False)))
        body = (
            _text(2, parameter["name"])
            + _text(3, "body")
            + required
            + _bytes(5, _schema(parameter["schema"]))
        )
        return _bytes(8, _bytes(1, _bytes(1, body)))
    query = b"".join((_text(2, parameter["in"]), _text(4, parameter["name"]), _text(6, parameter["type"])))
    # parameter → non_body_parameter → query_parameter_sub_schema
    return _bytes(8, _bytes(1, _bytes(2, _bytes(3, query))))


def _schema(schema: Any) -> bytes:
    if not isinstance(schema, Mapping):
        return b""
    made = [
        _text(1, schema.get("$ref")),
        _text(2, schema.get("format")),
        _text(3, schema.get("title")),
        _text(4, schema.get("description")),
    ]
    if "default" in schema:
        made.append(_any(5, schema["default"]))
    made += [
        _double(7, schema.get("maximum") or 0),
        _double(9, schema.get("minimum") or 0),
        _number(11, schema.get("maxLength") or 0),
        _number(12, schema.get("minLength") or 0),
        _text(13, schema.get("pattern")),
        _number(14, schema.get("maxItems") or 0),
        _number(15, schema.get("minItems") or 0),
        _texts(19, schema.get("required") or ()),
    ]
    made += [_any(20, value) for value in schema.get("enum") or ()]
    extra = schema.get("additionalProperties")
    if isinstance(extra, Mapping):
        made.append(_bytes(21, _bytes(1, _schema(extra))))
    elif extra is True:
        made.append(_bytes(21, _number(2, 1)))
    if kind := schema.get("type"):
        made.append(_bytes(22, _texts(1, kind if isinstance(kind, list) else [kind])))
    if "items" in schema:
        made.append(_bytes(23, _bytes(1, _schema(schema["items"]))))
    made += [_bytes(24, _schema(part)) for part in schema.get("allOf") or ()]
    if properties := schema.get("properties"):
        made.append(_bytes(25, b"".join(_named(value, name) for name, value in properties.items())))
    made.append(_extensions(31, schema))
    return b"".join(made)
