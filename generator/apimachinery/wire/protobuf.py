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

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from google.protobuf import unknown_fields
from google.protobuf.message import DecodeError, Message

from apimachinery.wire.blocks import in_blocks
from apimachinery.wire.json import InnerFault
from apimachinery.wire.protobuf_faults import EOF, LENGTH, message_fault
from apimachinery.wire.protobuf_faults import ProtobufFault as ProtobufFault
from apimachinery.wire.protobuf_fields import FieldCodecs
from apimachinery.wire.protobuf_kinds import FieldNumbers as FieldNumbers
from apimachinery.wire.protobuf_types import MessageTypes, message_name
from apimachinery.wire.protobuf_values import KeysBegin

MAGIC: Final = b"k8s\x00"
_RAW_TAG = bytes((2 << 3 | LENGTH,))
"""Of the field of an envelope that holds the object."""


class Messages:
    """The protobuf form of a package's kinds: made from its definitions and its numbers, when first used.

    ``by_entries`` writes maps entry by entry, in the order of their keys as Go does. The library's own order is the
    same unless one key begins with another, and is faster.
    """

    def __init__(
        self, definitions: Mapping[str, Any], numbers: Mapping[str, FieldNumbers], *, by_entries: bool = False
    ) -> None:
        self._given = definitions, numbers
        self._types = MessageTypes(definitions, numbers, by_entries=by_entries)
        self._fields = FieldCodecs(self._types)

    def warm(self) -> None:
        """Describes all messages, which the first use does otherwise."""
        self._types.new("Unknown")

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
        # Go tells an empty body from one without the prefix.
        if len(data) == len(MAGIC):
            raise ProtobufFault("empty body")
        envelope = self._types.new("Unknown")
        self._parse(envelope, data[len(MAGIC) :], "Unknown")
        # The library keeps what it cannot place as unknown fields; Go refuses some of that.
        if len(unknown_fields.UnknownFieldSet(envelope)):
            fault = message_fault(data[len(MAGIC) :], "Unknown", self._types.fields_of)
            if fault != EOF:
                raise ProtobufFault(fault)
        meta = envelope.typeMeta
        api_version, kind = _named(meta.apiVersion), _named(meta.kind) or wanted[1]
        # An apiVersion of too many parts counts as absent.
        if not api_version or api_version.count("/") > 1:
            api_version = wanted[0]
        value: dict[str, Any] = {"apiVersion": api_version, "kind": kind}
        name = self._types.kinds.get((api_version, kind))
        if name is None:
            # A kind of another package: the envelope alone is enough to say so.
            return value
        message = self._types.new(message_name(name))
        try:
            self._parse(message, envelope.raw, name)
            value.update(self._fields.read(message, name))
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
            raise ProtobufFault(message_fault(data, name, self._types.fields_of)) from None

    def encode(self, value: Mapping[str, Any]) -> bytes:
        """The envelope of an object. Raises ``ProtobufFault`` for a kind that has no numbers."""
        api_version, kind = value.get("apiVersion", ""), value.get("kind", "")
        name = self._types.kinds.get((api_version, kind))
        if name is None:
            raise ProtobufFault(f"{api_version} {kind} has no protobuf form")
        return self._in_envelope(api_version, kind, self._raw(name, value))

    def encode_list(self, value: Mapping[str, Any], items: Iterable[Any]) -> Iterator[bytes]:
        """The same of a long list, whose items come one by one: bytes of repeated fields are joined as they are, so no
        message has to hold them all. Raises ``ProtobufFault``."""
        api_version, kind = value.get("apiVersion", ""), value.get("kind", "")
        name = self._types.kinds.get((api_version, kind))
        if name is None:
            raise ProtobufFault(f"{api_version} {kind} has no protobuf form")
        # Everything but the items, then the items, which are joined as bytes of a repeated field.
        parts = [self._raw(name, {**value, "items": None})]
        parts += in_blocks(self._raw(name, {"items": [item]}) for item in items)
        opening, closing = self._types.new("Unknown"), self._types.new("Unknown")
        opening.typeMeta.apiVersion, opening.typeMeta.kind = api_version, kind
        # Fields that are always written by Go, and come after raw.
        closing.contentEncoding = closing.contentType = ""
        yield MAGIC + bytes(opening.SerializeToString()) + _RAW_TAG + _varint(sum(map(len, parts)))
        yield from parts
        yield bytes(closing.SerializeToString())

    def _raw(self, name: str, value: Mapping[str, Any]) -> bytes:
        message = self._types.new(message_name(name))
        try:
            self._fields.put(message, name, value)
        except KeysBegin:
            # The library orders such keys otherwise than Go.
            return self._with_entries._raw(name, value)
        return bytes(message.SerializeToString(deterministic=True))  # maps by their keys

    @cached_property
    def _with_entries(self) -> Messages:
        return Messages(*self._given, by_entries=True)

    def _in_envelope(self, api_version: str, kind: str, raw: bytes) -> bytes:
        envelope = self._types.new("Unknown")
        envelope.typeMeta.apiVersion, envelope.typeMeta.kind = api_version, kind
        envelope.raw = raw
        envelope.contentEncoding = envelope.contentType = ""
        return MAGIC + bytes(envelope.SerializeToString())

    def encode_event(self, event: Mapping[str, Any]) -> bytes:
        """A watch event: its type, and its object in an envelope of its own."""
        message = self._types.new("WatchEvent")
        message.type = event["type"]
        message.object.raw = self.encode(event["object"])
        return bytes(message.SerializeToString())

    def covers(self, api_version: str, kind: str) -> bool:
        """Whether objects of the kind have a protobuf form."""
        return (api_version, kind) in self._types.kinds


def _named(value: Any) -> str:
    """A string field whose odd bytes ``go_quote`` is to show one by one: surrogates stand for them."""
    return value if isinstance(value, str) else bytes(value).decode("utf-8", "surrogateescape")


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
