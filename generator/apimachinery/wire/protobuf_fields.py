"""Fields of messages, one by one: a table a message, made when first used, of how each is read and put."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from google.protobuf import unknown_fields
from google.protobuf.message import Message

from apimachinery.wire.protobuf_faults import ProtobufFault
from apimachinery.wire.protobuf_types import SCHEMA_OR, TIMES, MessageTypes, go_name, reference_of
from apimachinery.wire.protobuf_values import (
    MESSAGES,
    Filler,
    Reader,
    check_keys,
    in_entries,
    in_map,
    instant_codec,
    scalar_codec,
    text_of,
    without_zeros,
)

Putter: TypeAlias = Callable[[Message, str, Any], None]


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    """In JSON; empty for a message whose fields are those of the object around it."""
    attribute: str
    read: Reader
    put: Putter


class FieldCodecs:
    """Values of messages of ``types``, read and put field by field."""

    def __init__(self, types: MessageTypes) -> None:
        self._types = types
        self._tables: dict[str, dict[int, _Field]] = {}

    def read(self, message: Message, name: str) -> dict[str, Any]:
        """Returns the fields of a message of the definition ``name``."""
        return self._read_fields(message, self._table(name))

    def _read_fields(self, message: Message, table: dict[int, _Field]) -> dict[str, Any]:
        value: dict[str, Any] = {}
        strangers = unknown_fields.UnknownFieldSet(message)
        for place in range(len(strangers)):
            # What the library could not read into a field that it knows.
            stranger = strangers[place]
            if (field := table.get(stranger.field_number)) is not None:
                wrong = f"wrong wireType = {stranger.wire_type} for field {go_name(field.name)}"
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

    def put(self, message: Message, name: str, value: Mapping[str, Any]) -> None:
        """Fills a message of the definition ``name``."""
        _put_fields(message, self._table(name), value)

    def _table(self, name: str) -> dict[int, _Field]:
        table = self._tables.get(name)
        if table is None:
            properties = self._types.definitions[name].get("properties") or {}
            table = {}
            self._fill(table, properties, self._types.numbers[name])
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
                table[number] = _Field("", f"f{number}", *self._inlined(inner))
            elif wire_name in properties and self._types.type_of(properties[wire_name]):
                table[entry] = _Field(wire_name, f"f{entry}", *self._codec(properties[wire_name]))

    def _inlined(self, table: dict[int, _Field]) -> tuple[Reader, Putter]:
        def put(message: Message, attribute: str, value: Any) -> None:
            _put_fields(getattr(message, attribute), table, value)

        return lambda message: self._read_fields(message, table), put

    def _codec(self, schema: Mapping[str, Any]) -> tuple[Reader, Putter]:
        kind = self._types.type_of(schema)
        if kind.startswith("*"):
            return self._repeated(self._types.resolved(schema)["items"])
        if kind.startswith("%"):
            return self._mapped(self._types.resolved(schema)["additionalProperties"])
        if kind.startswith("."):
            read, fill = self._message(kind, schema)

            def put_message(message: Message, attribute: str, value: Any) -> None:
                inner = getattr(message, attribute)
                # An empty message is present: it is not the same as none.
                inner.SetInParent()
                fill(inner, value)

            return read, put_message
        read, make, _ = scalar_codec(kind)

        def put_scalar(message: Message, attribute: str, value: Any) -> None:
            setattr(message, attribute, make(value))

        return read, put_scalar

    def _repeated(self, items: Mapping[str, Any]) -> tuple[Reader, Putter]:
        kind = self._types.type_of(items)
        if kind.startswith("."):
            read, fill = self._message(kind, items)

            def put_messages(message: Message, attribute: str, value: Any) -> None:
                target = getattr(message, attribute)
                for item in value:
                    inner = target.add()
                    if item is not None:  # null is a zero value, whose message is empty
                        fill(inner, item)

            return lambda found: [read(item) for item in found], put_messages
        read, make, zero = scalar_codec(kind)

        def put_scalars(message: Message, attribute: str, value: Any) -> None:
            getattr(message, attribute).extend([zero if item is None else make(item) for item in value])

        return lambda found: [read(item) for item in found], put_scalars

    def _mapped(self, values: Mapping[str, Any]) -> tuple[Reader, Putter]:
        kind, by_entries = self._types.type_of(values), self._types.by_entries
        # A list as the value of a map has a message of its own.
        if kind == "*string":
            kind = ".k.Strings"
        if kind.startswith("."):
            read, fill = self._message(kind, values)
            values_of = in_entries if by_entries else in_map

            def put_messages(message: Message, attribute: str, value: Any) -> None:
                for inner, item in values_of(message, attribute, value):
                    if item is not None:
                        fill(inner, item)

            # Maps have no order on the wire; answers must have one.
            return lambda found: {text_of(k): read(v) for k, v in sorted(found.items())}, put_messages
        read, make, zero = scalar_codec(kind)

        def put_scalars(message: Message, attribute: str, value: Any) -> None:
            target = getattr(message, attribute)
            if by_entries:
                for key in sorted(value):
                    item = value[key]
                    target.add(key=key, value=zero if item is None else make(item))
                return
            check_keys(value)
            for key, item in value.items():
                target[key] = zero if item is None else make(item)

        return lambda found: {text_of(k): read(v) for k, v in sorted(found.items())}, put_scalars

    def _message(self, kind: str, schema: Mapping[str, Any]) -> tuple[Reader, Filler]:
        reference = reference_of(schema)
        if (codec := MESSAGES.get(kind)) is not None:
            return codec
        if kind == ".k.Instant":
            return instant_codec(TIMES.get(reference, 6 if schema.get("format") == "micro-time" else 0))
        if reference in self._types.schema_alternatives:
            return self._alternative(reference)
        return lambda found: self.read(found, reference), lambda target, value: self.put(
            target, reference, value
        )

    def _alternative(self, name: str) -> tuple[Reader, Filler]:
        prefix, _, _ = name.rpartition("JSONSchemaPropsOr")
        schema, other = f"{prefix}JSONSchemaProps", SCHEMA_OR[name[len(prefix) :]]

        def read(found: Any) -> Any:
            if found.HasField("schema"):
                return without_zeros(self.read(found.schema, schema))
            rest = getattr(found, other)
            if other == "allows":
                return rest
            return (
                [*map(text_of, rest)]
                if other == "property"
                else [without_zeros(self.read(item, schema)) for item in rest]
            )

        def fill(target: Any, value: Any) -> None:
            if isinstance(value, Mapping):
                if other == "allows":
                    target.allows = True  # what a schema describes is allowed
                target.schema.SetInParent()
                self.put(target.schema, schema, value)
            elif other == "allows":
                target.allows = bool(value)
            elif other == "property":
                target.property.extend(value)
            else:
                for item in value:
                    self.put(target.jSONSchemas.add(), schema, item)

        return read, fill


def _put_fields(message: Message, table: dict[int, _Field], value: Mapping[str, Any]) -> None:
    for field in table.values():
        if not field.name:
            field.put(message, field.attribute, value)
        elif (item := value.get(field.name)) is not None:
            field.put(message, field.attribute, item)
