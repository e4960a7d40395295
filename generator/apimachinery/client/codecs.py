"""Between bytes and values: objects, the items of a list, and the lines of a watch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast

import msgspec

from apimachinery.client.access import resource_version_of
from apimachinery.client.errors import (
    UNDECODABLE,
    BadRequest,
    UnreadableAnswer,
    UnreadableObject,
    error_of_status,
)
from apimachinery.typed import decoders, lossless
from apimachinery.typed.object import Object

T = TypeVar("T")

JSON: Final = "application/json"

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


class Event(
    msgspec.Struct, Generic[T], frozen=True
):  # a Struct is made in a tenth of a frozen dataclass' time
    """One event of a watch. A BOOKMARK has no object; ``initial_events_end`` marks the one that closes the
    initial state of a streaming list."""

    type: EventType
    object: T | None
    resource_version: str
    initial_events_end: bool = False


def no_event(line: bytes) -> None:
    """Reads no line of a watch: it is to be read in steps."""


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """How objects of one resource are read, one or the items of a list, and written. ``form`` is the kind that the
    server is to convert answers to (``PartialObjectMetadata``), empty for the resource's own. ``decode_event`` reads a
    line of a watch at once, where that can be; a codec with another ``decode`` has to have ``no_event`` there."""

    decode: Callable[[lossless.Origin], T]
    encode: Callable[[Any], bytes]
    decode_all: Callable[[Sequence[lossless.Origin]], list[T]]
    form: str = ""
    decode_event: Callable[[bytes], Event[T] | None] = no_event

    def accept(self, *, as_list: bool) -> dict[str, str]:
        """The headers that ask for ``form``."""
        if not self.form:
            return {}
        kind = f"{self.form}List" if as_list else self.form
        return {"Accept": f"{JSON};as={kind};g=meta.k8s.io;v=v1,{JSON}"}

    def transformed(self, transform: Callable[[T], T]) -> Codec[T]:
        """A codec whose objects pass through ``transform``, which may change them: to keep less of them.
        Reading raises UnreadableObject where ``transform`` raises."""

        def read(obj: T) -> T:
            raw = lossless.origin_of(obj) if isinstance(obj, Object) else None
            try:
                return transform(obj)
            except (
                Exception
            ) as error:  # somebody else's function: its object is left out, as one that is unreadable
                raise UnreadableObject(
                    f"{type(obj).__name__} (transform)", bytes(raw or b"{}"), error
                ) from error

        return replace(
            self,
            decode=lambda raw: read(self.decode(raw)),
            decode_all=lambda parts: [read(obj) for obj in self.decode_all(parts)],
            decode_event=no_event,
        )


class _Meta(msgspec.Struct):
    resourceVersion: str = ""  # noqa: N815 - the wire's name
    annotations: dict[str, str] | None = None


class _EventEnvelope(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Bookmark(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


_EVENT: Final = msgspec.json.Decoder(_EventEnvelope)
_BOOKMARK: Final = msgspec.json.Decoder(_Bookmark)
_ANY: Final = msgspec.json.Decoder()
_CHANGES: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})
_CODECS: Final[dict[type[Any], Codec[Any]]] = {}


def typed_codec(model: type[T]) -> Codec[T]:
    """The codec of a generated model class, made once. Decoded objects remember their bytes (``lossless``)."""
    known = _CODECS.get(model)
    if known is None:
        known = _CODECS.setdefault(model, _make_codec(model))
    return known


def _make_codec(model: type[T]) -> Codec[T]:
    decoder: msgspec.json.Decoder[T] = decoders.decoder(model)

    def read(raw: lossless.Origin) -> T:
        try:
            return decoder.decode(raw)
        except msgspec.ValidationError as refusal:
            try:
                return lossless.read_as(model, raw, refusal)
            except UNDECODABLE as error:
                raise UnreadableObject(model.__name__, bytes(raw), error) from None
        except UNDECODABLE as error:
            raise UnreadableObject(model.__name__, bytes(raw), error) from None

    def decode(raw: lossless.Origin) -> T:
        obj = read(raw)
        if isinstance(obj, Object):
            lossless.remember(obj, raw)
        return obj

    def decode_all(parts: Sequence[lossless.Origin]) -> list[T]:
        found = [read(part) for part in parts]
        if issubclass(model, Object):
            lossless.remember_all(cast("list[Object]", found), parts)
        return found

    def encode(obj: Any) -> bytes:
        try:
            return lossless.encode(obj) if isinstance(obj, Object) else msgspec.json.encode(obj)
        except RecursionError:
            raise BadRequest(
                400, "BadRequest", f"the {model.__name__} is nested too deep", has_details=False
            ) from None

    return Codec(decode, encode, decode_all, decode_event=_event_reader(model))


def _event_reader(model: type[T]) -> Callable[[bytes], Event[T] | None]:
    """Reads a change of an object in one pass; None for other events, and objects that do not fit."""
    if not issubclass(model, Object):
        return no_event
    decoder: msgspec.json.Decoder[Any] | None = None

    def read(line: bytes) -> Event[T] | None:
        nonlocal decoder
        if decoder is None:
            fields = [("type", Literal["ADDED", "MODIFIED", "DELETED"]), ("object", model)]
            decoder = decoders.decoder(msgspec.defstruct("_Change", fields))
        try:
            change = decoder.decode(line)
        except UNDECODABLE:
            return None
        obj = change.object
        lossless.remember_event(obj, line)
        version = getattr(getattr(obj, "metadata", None), "resource_version", None)
        return Event(change.type, obj, version or resource_version_of(obj))

    return read


def _decode_any(raw: lossless.Origin) -> dict[str, Any]:
    try:
        value = _ANY.decode(raw)
    except UNDECODABLE as error:
        raise UnreadableAnswer("JSON", error) from None
    if not isinstance(value, dict):
        raise UnreadableAnswer("an object", ValueError(f"it is a {type(value).__name__}"))
    return value


UNSTRUCTURED: Final[Codec[dict[str, Any]]] = Codec(
    _decode_any, msgspec.json.encode, lambda parts: [_decode_any(part) for part in parts]
)


def decode_items(codec: Codec[T], parts: Sequence[lossless.Origin]) -> tuple[list[T], list[UnreadableObject]]:
    """The items of a list, and those that their model refuses: one bad object must not hide all others."""
    try:
        return codec.decode_all(parts), []
    except UnreadableObject:
        items: list[T] = []
        unreadable: list[UnreadableObject] = []
        for part in parts:
            try:
                items.append(codec.decode(part))
            except UnreadableObject as error:
                unreadable.append(error)
        return items, unreadable


class RawEvent(msgspec.Struct, frozen=True):
    """One line of a watch, its object as JSON (None for a BOOKMARK)."""

    type: EventType
    raw: msgspec.Raw | None
    resource_version: str
    initial_events_end: bool = False

    def decoded(self, codec: Codec[T]) -> Event[T]:
        """The event of a typed object. Raises ``UnreadableObject``."""
        obj = None if self.raw is None else codec.decode(self.raw)
        return Event(self.type, obj, self.resource_version, self.initial_events_end)


def raw_event(line: bytes) -> RawEvent:
    """Reads one line of a watch. Raises the ``ApiError`` of an ERROR event's Status, UnreadableAnswer for no event."""
    kind, raw = _opened(line)
    try:
        meta = _BOOKMARK.decode(raw).metadata
    except UNDECODABLE as error:
        raise UnreadableAnswer("a watch event", error) from None
    if kind == "BOOKMARK":
        ended = (meta.annotations or {}).get("k8s.io/initial-events-end") == "true"
        return RawEvent("BOOKMARK", None, meta.resourceVersion, ended)
    if kind not in _CHANGES:
        raise UnreadableAnswer("a watch event", ValueError(f'unknown type "{kind}"'))
    return RawEvent(cast("EventType", kind), raw, meta.resourceVersion)


def event(line: bytes, codec: Codec[T]) -> Event[T]:
    """Reads one line of a watch. An ERROR event is raised as the ``ApiError`` of its Status; an object that does not
    fit its model as ``UnreadableObject``."""
    if (change := codec.decode_event(line)) is not None:
        return change
    kind, raw = _opened(line)
    if kind not in _CHANGES:
        return raw_event(line).decoded(codec)
    obj = codec.decode(raw)
    return Event(cast("EventType", kind), obj, resource_version_of(obj))


def _opened(line: bytes) -> tuple[str, msgspec.Raw]:
    try:
        envelope = _EVENT.decode(line)
        if envelope.type == "ERROR":
            raise error_of_status(UNSTRUCTURED.decode(envelope.object))
    except UNDECODABLE as error:
        raise UnreadableAnswer("a watch event", error) from None
    return envelope.type, envelope.object
