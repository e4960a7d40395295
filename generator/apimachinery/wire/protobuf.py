"""Protobuf bodies of the built-in kinds: ``k8s\\0`` and an envelope around a message, to and from plain JSON values.

The envelope is runtime.Unknown: 1 = type (1 apiVersion, 2 kind), 2 = the object's bytes. Field numbers are facts of
Kubernetes' published messages, in ``kubernetes_protobuf.json``: definition → JSON field → [number, form, type],
where form is ``repeated``, ``map`` or ``inline`` (a message of its own in protobuf, no object of its own in JSON).
A few messages have a JSON form that is not theirs: times, quantities, int-or-string, raw JSON; ``_SPECIAL`` has
those. A message is compiled when it is first met.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any

from apimachinery.wire.json import DecodeFault
from apimachinery.wire.json import decode as decode_json
from apimachinery.wire.json import encode as encode_json

MAGIC = b"k8s\x00"
MAX_DEPTH = 100
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_END = "unexpected EOF"
Json = dict[str, Any]
Fields = dict[int, Any]


@cache
def messages() -> dict[str, dict[str, tuple[int, str, str]]]:
    """The table of messages."""
    data = resources.files("apimachinery.wire").joinpath("kubernetes_protobuf.json").read_bytes()
    table: dict[str, dict[str, tuple[int, str, str]]] = json.loads(data)
    return table


def unwrap(data: bytes) -> tuple[str, str, bytes]:
    """apiVersion, kind and the object's bytes of an envelope. Raises DecodeFault."""
    if not data:
        raise DecodeFault("empty data")
    if not data.startswith(MAGIC):
        raise DecodeFault(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    if len(data) == len(MAGIC):
        raise DecodeFault("empty body")
    api_version = kind = ""
    raw = b""
    for number, _, value in _fields(data[len(MAGIC) :]):
        if number == 1 and isinstance(value, bytes):
            for inner, _, text in _fields(value):
                if inner == 1 and isinstance(text, bytes):
                    api_version = text.decode("utf-8", "replace")
                elif inner == 2 and isinstance(text, bytes):
                    kind = text.decode("utf-8", "replace")
        elif number == 2 and isinstance(value, bytes):
            raw = value
    return api_version, kind, raw


def wrap(api_version: str, kind: str, raw: bytes) -> bytes:
    """An envelope."""
    names = _lengthy(1, api_version.encode()) + _lengthy(2, kind.encode())
    return MAGIC + _lengthy(1, names) + _lengthy(2, raw) + _lengthy(3, b"") + _lengthy(4, b"")


_PACKAGES = {
    "": "io.k8s.api.core",
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
    "internal.apiserver.k8s.io": "io.k8s.api.apiserverinternal",
    "meta.k8s.io": "io.k8s.apimachinery.pkg.apis.meta",
}
_META_KINDS = frozenset({"DeleteOptions", "Status", "PartialObjectMetadata", "PartialObjectMetadataList"})


def message_name(api_version: str, kind: str) -> str:
    """The definition of a kind; empty where there is no message of it."""
    group, _, version = api_version.rpartition("/")
    if kind in _META_KINDS:
        return f"{_META}{kind}"
    package = _PACKAGES.get(group) or f"io.k8s.api.{group.partition('.')[0]}"
    name = f"{package}.{version}.{kind}"
    return name if name in messages() else ""


def decode(data: bytes) -> Json:
    """The object in an envelope; of a kind without a message only its names. Raises DecodeFault."""
    api_version, kind, raw = unwrap(data)
    name = message_name(api_version, kind)
    value = decode_message(name, raw) if name else {}
    return {"kind": kind, "apiVersion": api_version, **value}


def encode(value: Json) -> bytes:
    """An object in its envelope, or a watch event. Raises KeyError for a kind without a message."""
    if "kind" not in value and "object" in value:
        inner = _lengthy(1, encode(value["object"]))
        return _lengthy(1, value["type"].encode()) + _lengthy(2, inner)
    name = message_name(value["apiVersion"], value["kind"])
    return wrap(value["apiVersion"], value["kind"], encode_message(name, value))


def frame(data: bytes) -> bytes:
    """One event of a stream: its length in four bytes, then the event."""
    return struct.pack(">I", len(data)) + data


def decode_message(name: str, data: bytes) -> Any:
    """A message of a definition as JSON. Raises DecodeFault, KeyError for a definition without a message."""
    return _reader(name)(data, 0)


def encode_message(name: str, value: Any) -> bytes:
    """JSON as a message of a definition. Raises KeyError likewise."""
    return _writer(name)(value)


def _varint(data: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if place >= len(data):
            raise DecodeFault(_END)
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & (1 << 64) - 1, place
        shift += 7
        if shift > 63:
            raise DecodeFault("proto: integer overflow")


def _fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Number, wire type and raw value of each field."""
    place, length = 0, len(data)
    while place < length:
        tag, place = _varint(data, place)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise DecodeFault("proto: illegal tag 0 (wire type 0)")
        if kind == 0:
            value, place = _varint(data, place)
            yield number, kind, value
            continue
        size = 8 if kind == 1 else 4 if kind == 5 else 0
        if kind == 2:
            size, place = _varint(data, place)
        elif not size:
            raise DecodeFault(f"proto: wrong wireType = {kind}")
        if place + size > length:
            raise DecodeFault(_END)
        yield number, kind, data[place : place + size]
        place += size


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


def _scalar_reader(kind: str) -> Callable[[int | bytes, int], Any]:
    def read(value: int | bytes, depth: int) -> Any:
        if isinstance(value, int):
            if kind == "bool":
                return bool(value)
            if kind not in ("int32", "int64", "uint32", "uint64"):
                raise DecodeFault("proto: wrong wireType = 0")
            return _signed(value) if kind.startswith("int") else value
        match kind:
            case "string":
                return value.decode("utf-8", "replace")
            case "bytes":
                return base64.b64encode(value).decode()
            case "double" if len(value) == 8:
                return struct.unpack("<d", value)[0]
            case "float" if len(value) == 4:
                return struct.unpack("<f", value)[0]
        raise DecodeFault("proto: wrong wireType = 2")

    return read


_SCALARS = frozenset({"string", "bytes", "bool", "int32", "int64", "uint32", "uint64", "double", "float"})


def _of(kind: str) -> Callable[[Any, int], Any]:
    return _scalar_reader(kind) if kind in _SCALARS else lambda value, depth: _reader(kind)(value, depth + 1)


@cache
def _reader(name: str) -> Callable[[bytes, int], Any]:
    """The function that reads messages of a definition."""
    if name in _LISTS:
        return lambda data, depth: [_text_of(value) for number, _, value in _fields(data) if number == 1]
    if name in _SPECIAL:
        special = _SPECIAL[name][0]
        return lambda data, depth: special(dict(_last(data)))
    fields = messages()[name]
    by_number = {number: (field, form, _of(kind)) for field, (number, form, kind) in fields.items()}

    def read(data: bytes, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise DecodeFault("exceeded max depth")
        if not isinstance(data, bytes):
            raise DecodeFault("proto: wrong wireType = 0")
        found: Json = {}
        for number, _, value in _fields(data):
            entry = by_number.get(number)
            if entry is None:
                continue
            field, form, convert = entry
            if form == "repeated":
                found.setdefault(field, []).append(convert(value, depth))
            elif form == "map":
                key, item = _entry(value, convert, depth)
                found.setdefault(field, {})[key] = item
            elif form == "inline":
                found.update(convert(value, depth))
            else:
                found[field] = convert(value, depth)
        return found

    return read


def _entry(value: int | bytes, convert: Callable[[Any, int], Any], depth: int) -> tuple[str, Any]:
    if not isinstance(value, bytes):
        raise DecodeFault("proto: wrong wireType = 0")
    key, item = "", convert(b"", depth)
    for number, _, inner in _fields(value):
        if number == 1 and isinstance(inner, bytes):
            key = inner.decode("utf-8", "replace")
        elif number == 2:
            item = convert(inner, depth)
    return key, item


def _last(data: bytes) -> Iterator[tuple[int, Any]]:
    for number, _, value in _fields(data):
        yield number, value


def _number_of(value: Any) -> int:
    return _signed(value) if isinstance(value, int) else 0


def _text_of(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _read_time(fields: Fields, digits: int = 0) -> str | None:
    if not fields:
        return None
    try:
        moment = datetime.fromtimestamp(_number_of(fields.get(1)), UTC)
    except (OverflowError, ValueError, OSError):
        raise DecodeFault("proto: a time is out of range") from None
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{_number_of(fields.get(2)) // 1000:06d}Z" if digits else f"{text}Z"


def _read_raw(fields: Fields) -> Any:
    raw = fields.get(1, b"")
    return decode_json(raw) if isinstance(raw, bytes) and raw else None


def _read_int_or_string(fields: Fields) -> Any:
    return _text_of(fields.get(3)) if fields.get(1) else _number_of(fields.get(2))


def _read_schema_or(fields: Fields, other: Callable[[Fields], Any]) -> Any:
    schema = fields.get(1)
    return _reader(f"{_EXTENSIONS}JSONSchemaProps")(schema, 1) if isinstance(schema, bytes) else other(fields)


def _read_schema_or_bool(fields: Fields) -> Any:
    schema = fields.get(2)
    if isinstance(schema, bytes):
        return _reader(f"{_EXTENSIONS}JSONSchemaProps")(schema, 1)
    return bool(fields.get(1))


def _varint_of(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _lengthy(field: int, data: bytes) -> bytes:
    return _varint_of(field << 3 | 2) + _varint_of(len(data)) + data


def _whole(field: int, number: int) -> bytes:
    return _varint_of(field << 3) + _varint_of(number)


def _scalar_writer(kind: str) -> Callable[[int, Any], bytes]:
    def write(field: int, value: Any) -> bytes:
        match kind:
            case "string":
                return _lengthy(field, str(value).encode("utf-8", "replace"))
            case "bytes":
                try:
                    return _lengthy(field, base64.b64decode(value))
                except (binascii.Error, TypeError):
                    return _lengthy(field, b"")
            case "double":
                return _varint_of(field << 3 | 1) + struct.pack("<d", value)
            case "float":
                return _varint_of(field << 3 | 5) + struct.pack("<f", value)
        return _whole(field, int(value))

    return write


def _to(kind: str) -> Callable[[int, Any], bytes]:
    if kind in _SCALARS:
        return _scalar_writer(kind)
    return lambda field, value: _lengthy(field, _writer(kind)(value))


@cache
def _writer(name: str) -> Callable[[Any], bytes]:
    """The function that writes messages of a definition."""
    if name in _LISTS:
        return lambda value: b"".join(_lengthy(1, str(each).encode()) for each in value or ())
    if name in _SPECIAL:
        return _SPECIAL[name][1]
    fields = sorted(
        ((number, field, form, _to(kind), kind) for field, (number, form, kind) in messages()[name].items()),
        key=lambda entry: entry[0],
    )

    def write(value: Any) -> bytes:
        out: list[bytes] = []
        for number, field, form, convert, kind in fields:
            if form == "inline":
                out.append(_lengthy(number, _writer(kind)(value)))
                continue
            item = value.get(field)
            if item is None:
                continue
            if form == "repeated":
                out.extend(convert(number, each) for each in item)
            elif form == "map":
                out.extend(
                    _lengthy(number, _lengthy(1, key.encode()) + convert(2, each))
                    for key, each in sorted(item.items())
                )
            else:
                out.append(convert(number, item))
        return b"".join(out)

    return write


def _write_time(value: Any) -> bytes:
    try:
        moment = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        return b""
    return _whole(1, int(moment.timestamp() // 1)) + _whole(2, moment.microsecond * 1000)


def _write_raw(value: Any) -> bytes:
    return _lengthy(1, encode_json(value))


def _write_int_or_string(value: Any) -> bytes:
    if isinstance(value, str):
        return _whole(1, 1) + _whole(2, 0) + _lengthy(3, value.encode())
    return _whole(1, 0) + _whole(2, int(value)) + _lengthy(3, b"")


def _write_schema(value: Any) -> bytes:
    return _writer(f"{_EXTENSIONS}JSONSchemaProps")(value)


_Pair = tuple[Callable[[Fields], Any], Callable[[Any], bytes]]
_RAW: _Pair = (_read_raw, _write_raw)
_SPECIAL: dict[str, _Pair] = {
    f"{_META}Time": (_read_time, _write_time),
    f"{_META}MicroTime": (lambda fields: _read_time(fields, 6), _write_time),
    f"{_META}FieldsV1": _RAW,
    f"{_META}Duration": (lambda fields: f"{_number_of(fields.get(1)) / 1e9:g}s", lambda value: b""),
    "io.k8s.apimachinery.pkg.runtime.RawExtension": _RAW,
    f"{_EXTENSIONS}JSON": _RAW,
    "io.k8s.apimachinery.pkg.api.resource.Quantity": (
        lambda fields: _text_of(fields.get(1)),
        lambda value: _lengthy(1, str(value).encode()),
    ),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": (_read_int_or_string, _write_int_or_string),
    f"{_EXTENSIONS}JSONSchemaPropsOrBool": (
        _read_schema_or_bool,
        lambda value: (
            _whole(1, int(value))
            if isinstance(value, bool)
            else _whole(1, 1) + _lengthy(2, _write_schema(value))
        ),
    ),
    f"{_EXTENSIONS}JSONSchemaPropsOrArray": (
        lambda fields: _read_schema_or(fields, lambda _: []),
        lambda value: (
            b"".join(_lengthy(2, _write_schema(each)) for each in value)
            if isinstance(value, list)
            else _lengthy(1, _write_schema(value))
        ),
    ),
    f"{_EXTENSIONS}JSONSchemaPropsOrStringArray": (
        lambda fields: _read_schema_or(fields, lambda _: []),
        lambda value: (
            b"".join(_lengthy(2, str(each).encode()) for each in value)
            if isinstance(value, list)
            else _lengthy(1, _write_schema(value))
        ),
    ),
}
_LISTS = frozenset(
    (
        "io.k8s.api.authentication.v1.ExtraValue",
        "io.k8s.api.authorization.v1.ExtraValue",
        "io.k8s.api.certificates.v1.ExtraValue",
        f"{_META}Verbs",
    )
)
