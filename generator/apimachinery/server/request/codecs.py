"""Media types of bodies and answers: one codec each, in the order in which messages list them.

A codec is a pair of functions over plain JSON values, so a new encoding is one more entry here and nothing else in the
server knows of it. Protobuf has messages for built-in kinds and metadata only, those of the packages that an API
serves: every API has its own ``Codecs``, so two servers in one process do not share what they know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from apimachinery.wire import json, yaml
from apimachinery.wire.json import DecodeFault

if TYPE_CHECKING:
    from apimachinery.wire.protobuf import Messages


PROTOBUF_TYPE = "application/vnd.kubernetes.protobuf"


class WireCodec(Protocol):
    """One media type."""

    @property
    def media_type(self) -> str:
        """Of bodies and answers."""

    @property
    def stream_media_type(self) -> str:
        """Of watches."""

    @property
    def quick_bytes(self) -> int:
        """Of how many bytes of JSON its own are made in a few milliseconds."""

    @property
    def checks_duplicates(self) -> bool:
        """Whether keys that occur twice are looked for in the bytes."""

    def decode(self, data: bytes, duplicates: list[str], wanted: tuple[str, str] = ("", "")) -> Any:
        """A body's value; ``duplicates`` takes texts about keys that occur twice, ``wanted`` is the apiVersion and
        kind of a body that says none. Raises DecodeFault."""

    def encode(self, value: Any) -> bytes:
        """A value's bytes."""

    def encode_list(
        self, value: dict[str, Any], items: Iterable[Any], count: int, member: str
    ) -> Iterable[bytes]:
        """The bytes of a list with ``count`` items, which ``value`` leaves empty in its ``member``: few of them are in
        memory at once, and others have their turn between two parts."""

    def frame(self, data: bytes) -> bytes:
        """Bytes of one event as they are in a stream."""

    def explain(self, fault: str) -> str:
        """A DecodeFault's text where the kind of a body could not be found."""


@dataclass(frozen=True, slots=True)
class _Plain:
    media_type: str
    stream_media_type: str
    quick_bytes: int
    checks_duplicates: bool
    reads: Callable[[bytes, list[str]], Any]
    encode: Callable[[Any], bytes]
    encode_list: Callable[[dict[str, Any], Iterable[Any], int, str], Iterable[bytes]]
    frame: Callable[[bytes], bytes]
    prefix: str = ""

    def decode(self, data: bytes, duplicates: list[str], wanted: tuple[str, str] = ("", "")) -> Any:
        return self.reads(data, duplicates)

    def explain(self, fault: str) -> str:
        return f"{self.prefix}{fault}"


class Protobuf:
    """Protobuf for the kinds of an API's packages. ``loaders`` are called when protobuf is first used."""

    media_type = PROTOBUF_TYPE
    stream_media_type = f"{PROTOBUF_TYPE};stream=watch"
    quick_bytes = 32 << 10
    checks_duplicates = False

    def __init__(self, loaders: Iterable[Callable[[], Messages | None]]) -> None:
        self._loaders = tuple(loaders)
        self._loaded: tuple[Messages, ...] | None = None
        self.is_cold = True
        """Whether the first use has to load what ``warm`` loads."""

    def decode(self, data: bytes, duplicates: list[str], wanted: tuple[str, str] = ("", "")) -> Any:
        """A body's object. Raises DecodeFault."""
        value: Any = None
        for messages in self._messages():
            value = messages.decode(data, wanted)
            if messages.covers(value["apiVersion"], value["kind"]):
                break
        if value is None:
            raise DecodeFault("no kind is registered for the protobuf form")
        return value

    def encode(self, value: Any) -> bytes:
        """An object's envelope, or that of a watch event."""
        is_event = value.keys() == {"type", "object"}
        shown = value["object"] if is_event else value
        for messages in self._messages():
            if messages.covers(shown.get("apiVersion", ""), shown.get("kind", "")):
                return messages.encode_event(value) if is_event else messages.encode(value)
        raise DecodeFault(f"{shown.get('apiVersion')} {shown.get('kind')} has no protobuf form")

    def encode_list(
        self, value: dict[str, Any], items: Iterable[Any], count: int, member: str
    ) -> Iterable[bytes]:
        """A list's envelope."""
        for messages in self._messages():
            if messages.covers(value.get("apiVersion", ""), value.get("kind", "")):
                return messages.encode_list(value, items)
        raise DecodeFault(f"{value.get('apiVersion')} {value.get('kind')} has no protobuf form")

    def frame(self, data: bytes) -> bytes:
        """An event behind its length, in four bytes."""
        return len(data).to_bytes(4, "big") + data

    def explain(self, fault: str) -> str:
        """The fault itself."""
        return fault

    def warm(self) -> None:
        """Loads what the first use needs; for another thread than the loop's."""
        for messages in self._messages():
            messages.warm()
        self.is_cold = False

    def _messages(self) -> tuple[Messages, ...]:
        # Loaded on first use: protobuf tables take memory that JSON clients never need.
        if self._loaded is None:
            self._loaded = tuple(messages for load in self._loaders if (messages := load()) is not None)
        return self._loaded


@dataclass(frozen=True, slots=True)
class _Cbor:
    media_type: str = "application/cbor"
    stream_media_type: str = "application/cbor-seq"
    quick_bytes: int = 32 << 10
    checks_duplicates: bool = False

    def decode(self, data: bytes, duplicates: list[str], wanted: tuple[str, str] = ("", "")) -> Any:
        # Imported here: most servers never see CBOR.
        from apimachinery.wire import cbor

        return cbor.decode(data)

    def encode(self, value: Any) -> bytes:
        from apimachinery.wire import cbor

        return cbor.encode(value)

    def encode_list(
        self, value: dict[str, Any], items: Iterable[Any], count: int, member: str
    ) -> Iterable[bytes]:
        from apimachinery.wire import cbor

        return cbor.encode_list(value, items, count, member)

    def frame(self, data: bytes) -> bytes:
        return data

    def explain(self, fault: str) -> str:
        return f"unable to determine group/version/kind: {fault}"


class Codecs:
    """The codecs of an API by media type. ``loaders`` give the protobuf messages of its packages."""

    def __init__(self, loaders: Iterable[Callable[[], Messages | None]] = ()) -> None:
        codecs: tuple[WireCodec, ...] = (JSON, YAML, Protobuf(loaders), CBOR)
        self._by_type = {codec.media_type: codec for codec in codecs}
        self.media_types = tuple(self._by_type)

    def reading(self, media_type: str) -> WireCodec | None:
        """The codec of a body."""
        return self._by_type.get(media_type)

    def __iter__(self) -> Iterator[WireCodec]:
        return iter(self._by_type.values())


JSON: WireCodec = _Plain(
    "application/json",
    "application/json",
    1 << 20,
    True,
    lambda data, duplicates: json.decode(data),
    json.encode,
    lambda value, items, count, member: [json.encode({**value, member: [*items]})],
    lambda data: data + b"\n",
    "couldn't get version/kind; json parse error: ",
)
YAML: WireCodec = _Plain(
    "application/yaml",
    "application/yaml",
    8 << 10,
    False,
    yaml.decode,
    yaml.encode,
    yaml.encode_list,
    lambda data: b"---\n" + data,
)
CBOR: WireCodec = _Cbor()
MEDIA_TYPES = (JSON.media_type, YAML.media_type, PROTOBUF_TYPE, CBOR.media_type)


def whole(codec: WireCodec, value: Any) -> bytes:
    """A value as a whole answer: text ends with a line."""
    data = codec.encode(value)
    return data + b"\n" if codec is JSON else data
