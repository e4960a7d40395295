"""Answers that go on: server-sent events (the HTML standard, 9.2) and JSON lines, read from lines as they arrive."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec

from apimachinery.typed.unions import decode

T = TypeVar("T")
EVENTS: Final = "text/event-stream"
LINES: Final = frozenset(
    {"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"}
    | {"application/json-lines", "application/jsonlines", "application/json-seq", "application/x-json-stream"}
)
"""Media types whose lines are JSON values each."""


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event: ``data`` is its text, ``event`` what it is called, ``id`` the last one that the server gave."""

    data: str
    event: str = "message"
    id: str = ""

    def json(self) -> Any:
        """The data as JSON. Raises ``msgspec.DecodeError`` where it is none, as the ``[DONE]`` of some APIs."""
        return msgspec.json.decode(self.data)

    def read(self, kind: type[T]) -> T:
        """The data as a value of ``kind``, a generated model. Raises ``msgspec.DecodeError``."""
        return decode(self.data, kind)


@dataclass(slots=True)
class EventReader:
    """Takes the lines of an event stream one by one, and gives an event with the line that ends it."""

    _data: list[str] = field(default_factory=list)
    _event: str = ""
    _id: str = ""

    def take(self, line: bytes) -> ServerSentEvent | None:
        """The event that ``line`` completes, if it does."""
        text = line.rstrip(b"\r").decode("utf-8", "replace").removeprefix("\ufeff")
        if not text:
            data, event = self._data, self._event
            self._data, self._event = [], ""
            return ServerSentEvent("\n".join(data), event or "message", self._id) if data else None
        name, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        return None


@dataclass(slots=True)
class LineReader:
    """Takes lines of JSON, and gives the value of each that is not empty."""

    decoder: msgspec.json.Decoder[Any]

    def take(self, line: bytes) -> Any:
        """The value of ``line``; ``None`` for an empty one. Raises ``msgspec.DecodeError``."""
        text = line.strip(b"\r\x1e \t")
        return self.decoder.decode(text) if text else None


def is_stream(media_type: str) -> bool:
    """Whether an answer of that type goes on."""
    return media_type == EVENTS or media_type in LINES
