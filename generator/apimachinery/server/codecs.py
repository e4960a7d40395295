"""Media types of bodies and answers: one codec each, in the order in which messages list them.

A codec is a pair of functions over plain JSON values, so a new form (protobuf, CBOR) is one more entry here and
nothing else in the server knows of it. Protobuf has messages for built-in kinds and metadata only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from apimachinery.wire import json, protobuf, yaml


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
PROTOBUF: Codec = _Plain(
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;stream=watch",
    False,
    lambda data, duplicates: protobuf.decode(data),
    protobuf.encode,
    protobuf.frame,
)
CODECS = Codecs((JSON, YAML, PROTOBUF))
TEXTS = Codecs((JSON, YAML))


def whole(codec: Codec, value: Any) -> bytes:
    """A value as a whole answer: text ends with a line."""
    data = codec.encode(value)
    return data + b"\n" if codec is JSON else data
