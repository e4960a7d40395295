"""Protobuf as Kubernetes speaks it: JSON values to and from the ``k8s\\0`` envelope.

Rules (the protobuf serializer of k8s.io/apimachinery, and the generated.proto files):

* Bytes begin with ``k8s\\0``, then a message Unknown: typeMeta (apiVersion, kind), raw (the object's own message),
  contentEncoding, contentType.
* A message's types follow from the definition: numbers alone are facts of their own (a package's ``protobuf.py``).
  Quantity is a message that holds its string; a time holds seconds and nanoseconds, and nothing where it is zero;
  int-or-string holds its type and both values; raw extensions, FieldsV1 and JSON hold JSON as bytes; a list that
  is a map's value is a message with ``items``.
* apiVersion and kind are in the envelope alone, so what stands inside another object has none.
* A field is there or not (proto2): zero values that were sent come through, and the typed form of the kind, which
  JSON passes through as well, decides about them.

Messages are built at run time for the protobuf library, which does the parsing and its limits on depth.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, TypeAlias

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, unknown_fields
from google.protobuf.message import DecodeError, Message

from apimachinery.meta.gvk import GroupVersion
from apimachinery.meta.times import instant, utc_text
from apimachinery.wire.blocks import in_blocks
from apimachinery.wire.durations import duration_text, nanoseconds
from apimachinery.wire.json import DecodeFault, InnerFault
from apimachinery.wire.protobuf_faults import EOF, FIXED64, LENGTH, VARINT, Expected, message_fault

FieldNumbers: TypeAlias = "dict[str, int | tuple[int, FieldNumbers]]"

MAGIC: Final = b"k8s\x00"
_RAW_TAG = bytes((2 << 3 | LENGTH,))
"""Of the field of an envelope that holds the object."""
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_FIELD: Final = descriptor_pb2.FieldDescriptorProto
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_RAW: Final = frozenset(
    {
        "io.k8s.apimachinery.pkg.runtime.RawExtension",
        f"{_META}FieldsV1",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
    }
)
_TIMES: Final = {f"{_META}Time": 0, f"{_META}MicroTime": 6}
_DURATION: Final = f"{_META}Duration"
_SCHEMA_OR: Final = {
    "JSONSchemaPropsOrArray": "jSONSchemas",
    "JSONSchemaPropsOrBool": "allows",
    "JSONSchemaPropsOrStringArray": "property",
}


def _meta_kind(kind: str, fields: Mapping[str, Any], *versions: str) -> dict[str, Any]:
    found = [{"group": "meta.k8s.io", "version": version, "kind": kind} for version in versions]
    return {"properties": dict(fields), "x-kubernetes-group-version-kind": found}


_META_BETA: Final = "io.k8s.apimachinery.pkg.apis.meta.v1beta1."
_LIST: Final = {
    "metadata": {"$ref": f"#/definitions/{_META}ListMeta"},
    "items": {"type": "array", "items": {"$ref": f"#/definitions/{_META}PartialObjectMetadata"}},
}
# Kinds of meta.k8s.io that no schema document defines; their numbers are those of generated.proto of both versions.
_META_KINDS: Final[dict[str, Any]] = {
    f"{_META}PartialObjectMetadata": _meta_kind(
        "PartialObjectMetadata", {"metadata": {"$ref": f"#/definitions/{_META}ObjectMeta"}}, "v1", "v1beta1"
    ),
    f"{_META}PartialObjectMetadataList": _meta_kind("PartialObjectMetadataList", _LIST, "v1"),
    f"{_META_BETA}PartialObjectMetadataList": _meta_kind("PartialObjectMetadataList", _LIST, "v1beta1"),
}
_META_NUMBERS: Final[dict[str, FieldNumbers]] = {
    f"{_META}PartialObjectMetadata": {"metadata": 1},
    f"{_META}PartialObjectMetadataList": {"metadata": 1, "items": 2},
    f"{_META_BETA}PartialObjectMetadataList": {"items": 1, "metadata": 2},
}
_DISCOVERY: Final = "io.k8s.api.apidiscovery.v2."
_STRING: Final = {"type": "string"}
_STRINGS: Final = {"type": "array", "items": _STRING}


def _of(name: str) -> dict[str, Any]:
    return {"$ref": f"#/definitions/{_DISCOVERY}{name}"}


def _list_of(name: str) -> dict[str, Any]:
    return {"type": "array", "items": _of(name)}


# Aggregated discovery (KEP-3352), with the numbers of apidiscovery/v2's generated.proto.
_DISCOVERY_KINDS: Final[dict[str, Any]] = {
    f"{_DISCOVERY}APIGroupDiscoveryList": {
        "properties": {
            "metadata": {"$ref": f"#/definitions/{_META}ListMeta"},
            "items": _list_of("APIGroupDiscovery"),
        },
        "x-kubernetes-group-version-kind": [
            {"group": "apidiscovery.k8s.io", "version": "v2", "kind": "APIGroupDiscoveryList"}
        ],
    },
    f"{_DISCOVERY}APIGroupDiscovery": {
        "properties": {
            "metadata": {"$ref": f"#/definitions/{_META}ObjectMeta"},
            "versions": _list_of("APIVersionDiscovery"),
        }
    },
    f"{_DISCOVERY}APIVersionDiscovery": {
        "properties": {
            "version": _STRING,
            "resources": _list_of("APIResourceDiscovery"),
            "freshness": _STRING,
        }
    },
    f"{_DISCOVERY}APIResourceDiscovery": {
        "properties": {
            "resource": _STRING,
            "responseKind": _of("GroupVersionKind"),
            "scope": _STRING,
            "singularResource": _STRING,
            "verbs": _STRINGS,
            "shortNames": _STRINGS,
            "categories": _STRINGS,
            "subresources": _list_of("APISubresourceDiscovery"),
        }
    },
    f"{_DISCOVERY}APISubresourceDiscovery": {
        "properties": {"subresource": _STRING, "responseKind": _of("GroupVersionKind"), "verbs": _STRINGS}
    },
    f"{_DISCOVERY}GroupVersionKind": {"properties": {"group": _STRING, "version": _STRING, "kind": _STRING}},
}
_DISCOVERY_NUMBERS: Final[dict[str, FieldNumbers]] = {
    f"{_DISCOVERY}APIGroupDiscoveryList": {"metadata": 1, "items": 2},
    f"{_DISCOVERY}APIGroupDiscovery": {"metadata": 1, "versions": 2},
    f"{_DISCOVERY}APIVersionDiscovery": {"version": 1, "resources": 2, "freshness": 3},
    f"{_DISCOVERY}APIResourceDiscovery": {
        "resource": 1,
        "responseKind": 2,
        "scope": 3,
        "singularResource": 4,
        "verbs": 5,
        "shortNames": 6,
        "categories": 7,
        "subresources": 8,
    },
    f"{_DISCOVERY}APISubresourceDiscovery": {"subresource": 1, "responseKind": 2, "verbs": 4},
    f"{_DISCOVERY}GroupVersionKind": {"group": 1, "version": 2, "kind": 3},
}
_VERBS: Final = f"{_META}Verbs"
"""A list in a message of its own, which the definitions show as the list."""


class ProtobufFault(DecodeFault):
    """Bytes that are not an object, or an object that has no protobuf form."""


class _Field:
    """How one field is read from a message and put into one."""

    __slots__ = ("attribute", "name", "put", "read")

    def __init__(
        self, name: str, attribute: str, read: Callable[[Any], Any], put: Callable[[Message, str, Any], None]
    ) -> None:
        self.name = name
        self.attribute = attribute
        self.read = read
        self.put = put


class Messages:
    """The protobuf form of a package's kinds: made from its definitions and its numbers, when first used.

    ``by_entries`` writes maps entry by entry, in the order of their keys as Go does. The library's own order is the
    same unless one key begins with another, and is faster.
    """

    def __init__(
        self, definitions: Mapping[str, Any], numbers: Mapping[str, FieldNumbers], *, by_entries: bool = False
    ) -> None:
        self._given = definitions, numbers
        self._by_entries = by_entries
        has_metadata = f"{_META}ObjectMeta" in numbers
        self._definitions = dict(definitions)
        self._numbers = dict(numbers)
        if has_metadata:
            self._definitions |= _META_KINDS | _DISCOVERY_KINDS
            self._numbers |= _META_NUMBERS | _DISCOVERY_NUMBERS
        if (resource := self._definitions.get(f"{_META}APIResource")) is not None:
            properties = {**resource["properties"], "verbs": {"$ref": f"#/definitions/{_VERBS}"}}
            self._definitions[f"{_META}APIResource"] = {**resource, "properties": properties}
        self._tables: dict[str, dict[int, _Field]] = {}
        self._expected: dict[str, tuple[str, dict[int, Expected]]] = {}

    def decode(self, data: bytes, wanted: tuple[str, str] = ("", "")) -> dict[str, Any]:
        """The object of an envelope; an envelope without apiVersion or kind has those that are ``wanted``.

        Raises ``ProtobufFault``, for an object whose kind is known ``InnerFault``.
        """
        if not data:
            raise ProtobufFault("empty data")
        if not data.startswith(MAGIC):
            raise ProtobufFault(
                "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
            )
        if len(data) == len(MAGIC):
            raise ProtobufFault("empty body")
        envelope = self._new("Unknown")
        self._parse(envelope, data[len(MAGIC) :], "Unknown")
        if len(unknown_fields.UnknownFieldSet(envelope)):
            fault = message_fault(data[len(MAGIC) :], "Unknown", self._fields_of)
            if fault != EOF:
                raise ProtobufFault(fault)
        meta = envelope.typeMeta
        api_version, kind = _named(meta.apiVersion), _named(meta.kind) or wanted[1]
        if not api_version or api_version.count("/") > 1:
            api_version = wanted[0]
        value: dict[str, Any] = {"apiVersion": api_version, "kind": kind}
        name = self._kinds.get((api_version, kind))
        if name is None:
            return value
        message = self._new(_message_name(name))
        try:
            self._parse(message, envelope.raw, name)
            value.update(self._read(message, name))
        except ProtobufFault as fault:
            raise InnerFault(str(fault), api_version, kind) from None
        except UnicodeDecodeError:
            # The library gives such strings as bytes, but not as keys of a map.
            raise InnerFault("proto: a key of a map is not valid UTF-8", api_version, kind) from None
        return value

    def _parse(self, message: Message, data: bytes, name: str) -> None:
        try:
            message.ParseFromString(data)
        except (DecodeError, UnicodeDecodeError):
            raise ProtobufFault(message_fault(data, name, self._fields_of)) from None

    def _fields_of(self, name: str) -> tuple[str, dict[int, Expected]]:
        """What faults say of a message: a definition's, or one of those below that stand for none."""
        if name in _ENVELOPE:
            return name, _ENVELOPE[name]
        if name not in self._numbers or name not in self._definitions:
            return name, {}
        # Kept: a message that holds itself asks once a level.
        described = self._expected.get(name)
        if described is not None:
            return described
        fields: dict[int, Expected] = {}
        properties = self._definitions[name].get("properties") or {}
        for wire_name, entry in self._numbers[name].items():
            if isinstance(entry, tuple) or wire_name not in properties:
                continue
            schema = properties[wire_name]
            kind = self._type_of(schema)
            items = self._resolved(schema).get("items")
            held = _reference(items if kind.startswith("*") and items else schema)
            wire_type = {"int32": VARINT, "int64": VARINT, "bool": VARINT, "double": FIXED64}
            wanted = wire_type.get(kind.removeprefix("*"), LENGTH)
            called = "ListMeta" if held == f"{_META}ListMeta" else _go_name(wire_name)
            fields[entry] = (wanted, called, held if held in self._numbers else "")
        described = self._expected[name] = name.rpartition(".")[2], fields
        return described

    def encode(self, value: Mapping[str, Any]) -> bytes:
        """The envelope of an object. Raises ``ProtobufFault`` for a kind that has no numbers."""
        api_version, kind = value.get("apiVersion", ""), value.get("kind", "")
        name = self._kinds.get((api_version, kind))
        if name is None:
            raise ProtobufFault(f"{api_version} {kind} has no protobuf form")
        return self._in_envelope(api_version, kind, self._raw(name, value))

    def encode_list(self, value: Mapping[str, Any], items: Iterable[Any]) -> Iterator[bytes]:
        """The same of a long list, whose items come one by one: bytes of repeated fields are joined as they are, so no
        message has to hold them all. Raises ``ProtobufFault``."""
        api_version, kind = value.get("apiVersion", ""), value.get("kind", "")
        name = self._kinds.get((api_version, kind))
        if name is None:
            raise ProtobufFault(f"{api_version} {kind} has no protobuf form")
        parts = [self._raw(name, {**value, "items": None})]
        parts += in_blocks(self._raw(name, {"items": [item]}) for item in items)
        opening, closing = self._new("Unknown"), self._new("Unknown")
        opening.typeMeta.apiVersion, opening.typeMeta.kind = api_version, kind
        closing.contentEncoding = closing.contentType = ""
        yield MAGIC + bytes(opening.SerializeToString()) + _RAW_TAG + _varint(sum(map(len, parts)))
        yield from parts
        yield bytes(closing.SerializeToString())

    def _raw(self, name: str, value: Mapping[str, Any]) -> bytes:
        message = self._new(_message_name(name))
        try:
            self._put(message, name, value)
        except _KeysBegin:
            return self._with_entries._raw(name, value)
        return bytes(message.SerializeToString(deterministic=True))  # maps by their keys

    @cached_property
    def _with_entries(self) -> Messages:
        return Messages(*self._given, by_entries=True)

    def _in_envelope(self, api_version: str, kind: str, raw: bytes) -> bytes:
        envelope = self._new("Unknown")
        envelope.typeMeta.apiVersion, envelope.typeMeta.kind = api_version, kind
        envelope.raw = raw
        envelope.contentEncoding = envelope.contentType = ""
        return MAGIC + bytes(envelope.SerializeToString())

    def encode_event(self, event: Mapping[str, Any]) -> bytes:
        """A watch event: its type, and its object in an envelope of its own."""
        message = self._new("WatchEvent")
        message.type = event["type"]
        message.object.raw = self.encode(event["object"])
        return bytes(message.SerializeToString())

    def covers(self, api_version: str, kind: str) -> bool:
        """Whether objects of the kind have a protobuf form."""
        return (api_version, kind) in self._kinds

    # -------------------------------------------------------------- kinds and messages

    @cached_property
    def _kinds(self) -> dict[tuple[str, str], str]:
        found: dict[tuple[str, str], str] = {}
        for name in self._numbers:
            for gvk in self._definitions.get(name, {}).get("x-kubernetes-group-version-kind", ()):
                group, version = gvk["group"], gvk["version"]
                found.setdefault((str(GroupVersion(group, version)), gvk["kind"]), name)
        found[("v1", "Status")] = f"{_META}Status"
        for kind in ("APIVersions", "APIResourceList"):
            # What discovery says of the core group has no apiVersion.
            if f"{_META}{kind}" in self._numbers:
                found[("", kind)] = f"{_META}{kind}"
        return found

    def _new(self, name: str) -> Any:
        return message_factory.GetMessageClass(self._pool.FindMessageTypeByName(f"k.{name}"))()

    @cached_property
    def _pool(self) -> descriptor_pool.DescriptorPool:
        file = descriptor_pb2.FileDescriptorProto(name="kubernetes", package="k", syntax="proto2")
        _add(file, "TypeMeta", {"apiVersion": (1, "string"), "kind": (2, "string")})
        _add(file, "Unknown", {"typeMeta": (1, ".k.TypeMeta"), "raw": (2, "bytes"), "contentEncoding": (3, "string"),
                               "contentType": (4, "string")})  # fmt: skip
        _add(file, "Raw", {"raw": (1, "bytes")})
        _add(file, "Instant", {"seconds": (1, "int64"), "nanos": (2, "int32")})
        _add(file, "Text", {"string": (1, "string")})
        _add(file, "Duration", {"duration": (1, "int64")})
        _add(file, "IntOrString", {"type": (1, "int64"), "intVal": (2, "int32"), "strVal": (3, "string")})
        _add(file, "Strings", {"items": (1, "*string")})
        _add(file, "WatchEvent", {"type": (1, "string"), "object": (2, ".k.Raw")})
        for name, numbers in self._numbers.items():
            if name in self._definitions and name not in _RAW:
                properties = self._definitions[name].get("properties") or {}
                self._describe(file, _message_name(name), properties, numbers)
        for name in self._schema_alternatives:
            prefix = name.rpartition("JSONSchemaPropsOr")[0]
            schema = f".k.{_message_name(prefix + 'JSONSchemaProps')}"
            fields = {
                "JSONSchemaPropsOrArray": {"schema": (1, schema), "jSONSchemas": (2, f"*{schema}")},
                "JSONSchemaPropsOrBool": {"allows": (1, "bool"), "schema": (2, schema)},
                "JSONSchemaPropsOrStringArray": {"schema": (1, schema), "property": (2, "*string")},
            }[name[len(prefix) :]]
            _add(file, _message_name(name), fields)
        for message in file.message_type if self._by_entries else ():
            for entry in message.nested_type:
                entry.options.ClearField("map_entry")
        pool = descriptor_pool.DescriptorPool()
        pool.Add(file)
        return pool

    @cached_property
    def _schema_alternatives(self) -> tuple[str, ...]:
        return tuple(sorted(n for n in self._definitions if n.rpartition(".")[2] in _SCHEMA_OR))

    def _describe(
        self, file: Any, name: str, properties: Mapping[str, Any], numbers: Mapping[str, Any]
    ) -> None:
        fields: dict[str, tuple[int, str]] = {}
        for wire_name, entry in numbers.items():
            if isinstance(entry, tuple):
                inner = f"{name}_{wire_name}"
                self._describe(file, inner, properties, entry[1])
                fields[f"f{entry[0]}"] = (entry[0], f".k.{inner}")
            elif wire_name in properties:
                kind = self._type_of(properties[wire_name])
                if kind:
                    fields[f"f{entry}"] = (entry, kind)
        _add(file, name, fields)

    def _type_of(self, schema: Mapping[str, Any]) -> str:
        """The type of a field: a scalar, ``.k.Message``, ``*`` before repeated ones, ``%`` before map values;
        empty where it has no protobuf form."""
        reference = _reference(schema)
        if reference:
            return self._message_of(reference)
        kind, form = schema.get("type"), schema.get("format", "")
        if kind == "array":
            return f"*{self._type_of(schema['items'])}"
        if isinstance(schema.get("additionalProperties"), Mapping):
            value = self._type_of(schema["additionalProperties"])
            return "%.k.Strings" if value == "*string" else f"%{value}"
        if kind == "integer":
            return "int64" if form == "int64" else "int32"
        if kind == "string" and form == "int-or-string":
            return ".k.IntOrString"
        if kind == "string" and form in ("date-time", "micro-time"):
            return ".k.Instant"
        return {"string": "bytes" if form == "byte" else "string", "boolean": "bool", "number": "double"}.get(
            str(kind), ".k.Raw" if kind == "object" or kind is None else ""
        )

    def _message_of(self, name: str) -> str:
        if name in _RAW:
            return ".k.Raw"
        if name in _TIMES:
            return ".k.Instant"
        if name == _QUANTITY:
            return ".k.Text"
        if name == _DURATION:
            return ".k.Duration"
        if name == _INT_OR_STRING:
            return ".k.IntOrString"
        if name == _VERBS:
            return ".k.Strings"
        if name in self._numbers or name in self._schema_alternatives:
            return f".k.{_message_name(name)}"
        return self._type_of(self._definitions.get(name, {}))

    # -------------------------------------------------------------- values

    def _read(self, message: Message, name: str) -> dict[str, Any]:
        return self._read_fields(message, self._table(name))

    def _read_fields(self, message: Message, table: dict[int, _Field]) -> dict[str, Any]:
        value: dict[str, Any] = {}
        strangers = unknown_fields.UnknownFieldSet(message)
        for place in range(len(strangers)):
            # What the library could not read into a field that it knows.
            stranger = strangers[place]
            if (field := table.get(stranger.field_number)) is not None:
                wrong = f"wrong wireType = {stranger.wire_type} for field {_go_name(field.name)}"
                raise ProtobufFault(f"proto: {wrong}")
        for descriptor, item in message.ListFields():
            field = table.get(descriptor.number)
            if field is None:
                continue
            read = field.read(item)
            if field.name:
                value[field.name] = read
            else:
                value.update(read)
        return value

    def _put(self, message: Message, name: str, value: Mapping[str, Any]) -> None:
        for field in self._table(name).values():
            if not field.name:
                field.put(message, field.attribute, value)
            elif (item := value.get(field.name)) is not None:
                field.put(message, field.attribute, item)

    def _table(self, name: str) -> dict[int, _Field]:
        table = self._tables.get(name)
        if table is None:
            properties = self._definitions[name].get("properties") or {}
            table = {}
            self._fill(table, properties, self._numbers[name])
            self._tables[name] = table  # once it is whole: other threads read it from then on
        return table

    def _fill(
        self, table: dict[int, _Field], properties: Mapping[str, Any], numbers: Mapping[str, Any]
    ) -> None:
        for wire_name, entry in numbers.items():
            if isinstance(entry, tuple):
                number, inner_numbers = entry
                inner: dict[int, _Field] = {}
                self._fill(inner, properties, inner_numbers)
                table[number] = _Field(
                    "", f"f{number}", self._inline_reader(inner), self._inline_putter(inner)
                )
            elif wire_name in properties and self._type_of(properties[wire_name]):
                read, put = self._codec(properties[wire_name])
                table[entry] = _Field(wire_name, f"f{entry}", read, put)

    def _inline_reader(self, table: dict[int, _Field]) -> Callable[[Any], Any]:
        return lambda message: self._read_fields(message, table)

    def _inline_putter(self, table: dict[int, _Field]) -> Callable[[Message, str, Any], None]:
        def put(message: Message, attribute: str, value: Any) -> None:
            inner = getattr(message, attribute)
            for field in table.values():
                if not field.name:
                    field.put(inner, field.attribute, value)
                elif (item := value.get(field.name)) is not None:
                    field.put(inner, field.attribute, item)

        return put

    def _codec(
        self, schema: Mapping[str, Any]
    ) -> tuple[Callable[[Any], Any], Callable[[Message, str, Any], None]]:
        kind = self._type_of(schema)
        if kind.startswith("*"):
            return self._repeated(self._resolved(schema)["items"])
        if kind.startswith("%"):
            return self._mapped(self._resolved(schema)["additionalProperties"])
        read, fill = self._single(schema)
        if kind.startswith("."):

            def put_message(message: Message, attribute: str, value: Any) -> None:
                inner = getattr(message, attribute)
                inner.SetInParent()
                fill(inner, value)

            return read, put_message
        make = _SCALARS.get(kind, _same)

        def put_scalar(message: Message, attribute: str, value: Any) -> None:
            setattr(message, attribute, make(value))

        return read, put_scalar

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        reference = _reference(schema)
        return self._definitions.get(reference, {}) if reference else schema

    def _repeated(
        self, items: Mapping[str, Any]
    ) -> tuple[Callable[[Any], Any], Callable[[Message, str, Any], None]]:
        kind = self._type_of(items)
        read, fill = self._single(items)
        if kind.startswith("."):

            def put_messages(message: Message, attribute: str, value: Any) -> None:
                target = getattr(message, attribute)
                for item in value:
                    inner = target.add()
                    if item is not None:  # null is a zero value, whose message is empty
                        fill(inner, item)

            return lambda found: [read(item) for item in found], put_messages
        make, zero = _SCALARS.get(kind, _same), _ZEROS.get(kind, 0)

        def put_scalars(message: Message, attribute: str, value: Any) -> None:
            getattr(message, attribute).extend([zero if item is None else make(item) for item in value])

        return lambda found: [read(item) for item in found], put_scalars

    def _mapped(
        self, values: Mapping[str, Any]
    ) -> tuple[Callable[[Any], Any], Callable[[Message, str, Any], None]]:
        kind, by_entries = self._type_of(values), self._by_entries
        values_of = _in_entries if by_entries else _in_map
        if kind == "*string":

            def put_lists(message: Message, attribute: str, value: Any) -> None:
                for inner, item in values_of(message, attribute, value):
                    inner.items.extend(item or ())

            return lambda found: {
                _text(k): [*map(_text, v.items)] for k, v in sorted(found.items())
            }, put_lists
        read, fill = self._single(values)
        if kind.startswith("."):

            def put_messages(message: Message, attribute: str, value: Any) -> None:
                for inner, item in values_of(message, attribute, value):
                    if item is not None:
                        fill(inner, item)

            return lambda found: {_text(k): read(v) for k, v in sorted(found.items())}, put_messages
        make, zero = _SCALARS.get(kind, _same), _ZEROS.get(kind, 0)

        def put_scalars(message: Message, attribute: str, value: Any) -> None:
            target = getattr(message, attribute)
            if by_entries:
                for key in sorted(value):
                    item = value[key]
                    target.add(key=key, value=zero if item is None else make(item))
                return
            _check_keys(value)
            for key, item in value.items():
                target[key] = zero if item is None else make(item)

        return lambda found: {_text(k): read(v) for k, v in sorted(found.items())}, put_scalars

    def _single(self, schema: Mapping[str, Any]) -> tuple[Callable[[Any], Any], Callable[[Any, Any], None]]:
        """Reader and filler of one value: of a message, or (reader alone) of a scalar."""
        kind, reference = self._type_of(schema), _reference(schema)
        if kind == ".k.Raw":
            return _read_raw, _fill_raw
        if kind == ".k.Instant":
            digits = _TIMES.get(reference, 6 if schema.get("format") == "micro-time" else 0)
            return lambda found: _read_instant(found, digits), _fill_instant
        if kind == ".k.Text":
            return lambda found: _text(found.string), _fill_text
        if kind == ".k.Duration":
            return lambda found: duration_text(found.duration), _fill_duration
        if kind == ".k.Strings":
            return lambda found: [*map(_text, found.items)], lambda target, value: target.items.extend(value)
        if kind == ".k.IntOrString":
            return lambda found: _text(found.strVal) if found.type else found.intVal, _fill_int_or_string
        if reference in self._schema_alternatives:
            return self._alternative(reference)
        if kind.startswith("."):
            return lambda found: self._read(found, reference), lambda target, value: self._put(
                target, reference, value
            )
        if kind == "bytes":
            return lambda found: base64.b64encode(found).decode("ascii"), _no_message
        return (_text if kind == "string" else _same), _no_message

    def _alternative(self, name: str) -> tuple[Callable[[Any], Any], Callable[[Any, Any], None]]:
        prefix, _, _ = name.rpartition("JSONSchemaPropsOr")
        schema, other = f"{prefix}JSONSchemaProps", _SCHEMA_OR[name[len(prefix) :]]

        def read(found: Any) -> Any:
            if found.HasField("schema"):
                return _without_zeros(self._read(found.schema, schema))
            rest = getattr(found, other)
            if other == "allows":
                return rest
            return (
                [*map(_text, rest)]
                if other == "property"
                else [_without_zeros(self._read(item, schema)) for item in rest]
            )

        def fill(target: Any, value: Any) -> None:
            if isinstance(value, Mapping):
                if other == "allows":
                    target.allows = True  # what a schema describes is allowed
                target.schema.SetInParent()
                self._put(target.schema, schema, value)
            elif other == "allows":
                target.allows = bool(value)
            elif other == "property":
                target.property.extend(value)
            else:
                for item in value:
                    self._put(target.jSONSchemas.add(), schema, item)

        return read, fill


_MAY_BE_FALSE: Final = frozenset(
    {"x-kubernetes-preserve-unknown-fields", "default", "example", "additionalProperties", "additionalItems"}
)


def _without_zeros(schema: Any) -> Any:
    """A schema within a schema without the empty texts and false flags that its struct leaves out. No definition says
    what is in such a place, so the typed form of the whole does not reach there."""
    if isinstance(schema, list):
        return [_without_zeros(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if (value == "" or value is False) and key not in _MAY_BE_FALSE:
            continue
        if key in ("properties", "patternProperties", "definitions"):
            kept[key] = {name: _without_zeros(each) for name, each in value.items()}
        elif key in ("allOf", "anyOf", "oneOf", "not"):
            kept[key] = _without_zeros(value)
        else:
            kept[key] = value
    return kept


def _add(file: Any, name: str, fields: Mapping[str, tuple[int, str]]) -> None:
    """Adds a message; types as ``Messages._type_of`` gives them."""
    message = file.message_type.add(name=name)
    for attribute, (number, kind) in fields.items():
        field = message.field.add(name=attribute, number=number, label=_FIELD.LABEL_OPTIONAL)
        if kind.startswith("*"):
            field.label = _FIELD.LABEL_REPEATED
        if kind.startswith("%"):
            field.label = _FIELD.LABEL_REPEATED
            entry = message.nested_type.add(name=f"{attribute.capitalize()}Entry")
            entry.options.map_entry = True
            key = entry.field.add(name="key", number=1, label=_FIELD.LABEL_OPTIONAL)
            key.type = _FIELD.TYPE_STRING
            value = entry.field.add(name="value", number=2, label=_FIELD.LABEL_OPTIONAL)
            _set_type(value, kind[1:])
            field.type, field.type_name = _FIELD.TYPE_MESSAGE, f".k.{name}.{entry.name}"
        else:
            _set_type(field, kind.removeprefix("*"))


def _set_type(field: Any, kind: str) -> None:
    if kind.startswith("."):
        field.type, field.type_name = _FIELD.TYPE_MESSAGE, kind
    else:
        field.type = getattr(_FIELD, f"TYPE_{kind.upper()}")


def _reference(schema: Mapping[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _message_name(definition: str) -> str:
    return definition.replace(".", "_").replace("-", "_")


def _same(value: Any) -> Any:
    return value


_ENVELOPE: Final[dict[str, dict[int, Expected]]] = {
    "Unknown": {
        1: (LENGTH, "TypeMeta", "TypeMeta"),
        2: (LENGTH, "Raw", ""),
        3: (LENGTH, "ContentEncoding", ""),
        4: (LENGTH, "ContentType", ""),
    },
    "TypeMeta": {1: (LENGTH, "APIVersion", ""), 2: (LENGTH, "Kind", "")},
}
_INITIALISMS: Final = re.compile(
    r"(api|cidr|csi|fc|fqdn|http|https|id|ip|ips|iscsi|json|nfs|os|rbd|tcp|tls|uid|url)(?=$|[A-Z])"
)


def _go_name(name: str) -> str:
    """The name of a field in Go, as its decoder's messages have it."""
    if name == "metadata":
        return "ObjectMeta"
    if found := _INITIALISMS.match(name):
        return found[1].upper() + name[found.end() :]
    return name[:1].upper() + name[1:]


def _text(value: Any) -> str:
    """A string field; the library gives bytes for what is not UTF-8, which becomes U+FFFD, as when Go writes JSON."""
    return value if isinstance(value, str) else bytes(value).decode("utf-8", "replace")


def _named(value: Any) -> str:
    """A string field whose odd bytes ``go_quote`` is to show one by one: surrogates stand for them."""
    return value if isinstance(value, str) else bytes(value).decode("utf-8", "surrogateescape")


class _KeysBegin(Exception):
    """One key of a map begins with another."""


def _check_keys(value: Mapping[str, Any]) -> None:
    """Raises _KeysBegin."""
    if len(value) > 1:
        before = "\x00"
        for key in sorted(value):
            if key.startswith(before):
                raise _KeysBegin
            before = key or "\x00"


def _in_map(message: Message, attribute: str, value: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The messages of a map, with what they are to hold. Raises _KeysBegin."""
    _check_keys(value)
    target = getattr(message, attribute)
    for key, item in value.items():
        yield target[key], item


def _in_entries(message: Message, attribute: str, value: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The same, of a map that is written entry by entry."""
    target = getattr(message, attribute)
    for key in sorted(value):
        yield target.add(key=key, value={}).value, value[key]


def _no_message(target: Any, value: Any) -> None:
    raise TypeError("a scalar is set, not filled")


def _to_bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(value)
    except (binascii.Error, ValueError, TypeError):
        raise ProtobufFault("illegal base64 data") from None


_SCALARS: Final[dict[str, Callable[[Any], Any]]] = {"bytes": _to_bytes, "double": float}
_ZEROS: Final[dict[str, Any]] = {"string": "", "bytes": b"", "bool": False}
"""What null is in lists and maps of scalars, where it is not 0."""


def _read_raw(found: Any) -> Any:
    try:
        return json.loads(found.raw) if found.raw else {}
    except (ValueError, RecursionError):
        raise ProtobufFault("raw extension is not JSON") from None


def _fill_raw(target: Any, value: Any) -> None:
    target.raw = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _fill_duration(target: Any, value: Any) -> None:
    target.duration = nanoseconds(value)


def _fill_text(target: Any, value: Any) -> None:
    target.string = str(value)


def _fill_int_or_string(target: Any, value: Any) -> None:
    if isinstance(value, str):
        target.type, target.intVal, target.strVal = 1, 0, value
    else:
        target.type, target.intVal, target.strVal = 0, value, ""


def _read_instant(found: Any, digits: int) -> str | None:
    if not found.HasField("seconds"):
        return None
    text = utc_text(found.seconds)
    return f"{text}.{found.nanos // 1000:06d}Z" if digits else f"{text}Z"


def _fill_instant(target: Any, value: Any) -> None:
    moment = instant(str(value))
    if moment is None:
        raise ProtobufFault(f"{value!r} is no time")
    target.seconds, target.nanos = moment


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
