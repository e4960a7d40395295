"""Media types of bodies and answers: one codec each, in the order in which messages list them.

A codec is a pair of functions over plain JSON values, so a new form (protobuf, CBOR) is one more entry here and
nothing else in the server knows of it. Protobuf has messages for built-in kinds and metadata only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from apimachinery.wire import json, yaml
from apimachinery.wire.json import DecodeFault

if TYPE_CHECKING:
    from apimachinery.wire.protobuf import Messages


class Codec(Protocol):
    """One media type."""

    @property
    def media_type(self) -> str:
        """Of bodies and answers."""

    @property
    def stream_media_type(self) -> str:
        """Of watches."""

    @property
    def checks_duplicates(self) -> bool:
        """Whether keys that stand twice are looked for in the bytes."""

    def decode(self, data: bytes, duplicates: list[str]) -> Any:
        """A body's value; ``duplicates`` takes texts about keys that stand twice. Raises DecodeFault."""

    def encode(self, value: Any) -> bytes:
        """A value's bytes."""

    def frame(self, data: bytes) -> bytes:
        """Bytes of one event as they stand in a stream."""

    def explain(self, fault: str) -> str:
        """A DecodeFault's text where the kind of a body could not be found."""


@dataclass(frozen=True, slots=True)
class _Plain:
    media_type: str
    stream_media_type: str
    checks_duplicates: bool
    reads: Callable[[bytes, list[str]], Any]
    encode: Callable[[Any], bytes]
    frame: Callable[[bytes], bytes]
    prefix: str = ""

    def decode(self, data: bytes, duplicates: list[str]) -> Any:
        return self.reads(data, duplicates)

    def explain(self, fault: str) -> str:
        return f"{self.prefix}{fault}"


@dataclass(slots=True)
class Protobuf:
    """The protobuf form of the kinds of generated packages, which are made known when a package is loaded."""

    media_type: str = "application/vnd.kubernetes.protobuf"
    stream_media_type: str = "application/vnd.kubernetes.protobuf;stream=watch"
    checks_duplicates: bool = False
    _loaders: dict[str, Callable[[], Messages | None]] = field(default_factory=dict)
    _loaded: dict[str, Messages | None] = field(default_factory=dict)

    def learn(self, package: str, load: Callable[[], Messages | None]) -> None:
        """Makes the kinds of a package known; ``load`` is called when the form is first used."""
        self._loaders.setdefault(package, load)

    def decode(self, data: bytes, duplicates: list[str]) -> Any:
        """A body's object. Raises DecodeFault."""
        value: Any = None
        for messages in self._messages():
            value = messages.decode(data)
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

    def frame(self, data: bytes) -> bytes:
        """An event behind its length, in four bytes."""
        return len(data).to_bytes(4, "big") + data

    def explain(self, fault: str) -> str:
        """The fault itself."""
        return fault

    def _messages(self) -> Iterator[Messages]:
        for package, load in self._loaders.items():
            if package not in self._loaded:
                self._loaded[package] = load()
            messages = self._loaded[package]
            if messages is not None:
                yield messages


@dataclass(frozen=True, slots=True)
class _Cbor:
    media_type: str = "application/cbor"
    stream_media_type: str = "application/cbor-seq"
    checks_duplicates: bool = False

    def decode(self, data: bytes, duplicates: list[str]) -> Any:
        from apimachinery.wire import cbor

        return cbor.decode(data)

    def encode(self, value: Any) -> bytes:
        from apimachinery.wire import cbor

        return cbor.encode(value)

    def frame(self, data: bytes) -> bytes:
        return data

    def explain(self, fault: str) -> str:
        return f"unable to determine group/version/kind: {fault}"


class Codecs:
    """The codecs of a server by media type."""

    def __init__(self, codecs: tuple[Codec, ...]) -> None:
        self._by_type = {codec.media_type: codec for codec in codecs}
        self.media_types = tuple(self._by_type)

    def reading(self, media_type: str) -> Codec | None:
        """The codec of a body."""
        return self._by_type.get(media_type)

    def __iter__(self) -> Iterator[Codec]:
        return iter(self._by_type.values())


JSON: Codec = _Plain(
    "application/json",
    "application/json",
    True,
    lambda data, duplicates: json.decode(data),
    json.encode,
    lambda data: data + b"\n",
    "couldn't get version/kind; json parse error: ",
)
YAML: Codec = _Plain(
    "application/yaml",
    "application/yaml",
    False,
    yaml.decode,
    yaml.encode,
    lambda data: b"---\n" + data,
)
PROTOBUF = Protobuf()
CBOR: Codec = _Cbor()
CODECS = Codecs((JSON, YAML, PROTOBUF, CBOR))
TEXTS = Codecs((JSON, YAML))
OF_DISCOVERY = Codecs((JSON, YAML, PROTOBUF))


def whole(codec: Codec, value: Any) -> bytes:
    """A value as a whole answer: text ends with a line."""
    data = codec.encode(value)
    return data + b"\n" if codec is JSON else data
