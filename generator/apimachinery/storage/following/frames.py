"""What the writer and a reader say to each other: messages on a stream socket, each after its length.

writer → reader   Records (the state, in pieces), LogPiece, Condition; Answer (to an Ask)
reader → writer   Ask (about the past)
both              ProcessNote: what those who run the processes have to say to each other
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import cast

import msgspec

from apimachinery.storage.interface import Event, Record

LENGTH_BYTES = 8
Row = tuple[str, int, int, bytes, bool, bool]
"""A record: key, revision, created, value, whether it is foreign; and whether it was deleted."""


class StatePiece(msgspec.Struct, array_like=True, tag="records"):
    """A piece of the state at ``revision``; ``last`` ends it."""

    revision: int
    rows: list[Row]
    last: bool


class LogPiece(msgspec.Struct, array_like=True, tag="changes"):
    """Events that were committed together, in order."""

    rows: list[Row]


class StorageCondition(msgspec.Struct, array_like=True, tag="condition"):
    """How the writer's storage is."""

    failed: str
    trouble: str
    unreadable: dict[str, str]


class PastRequest(msgspec.Struct, array_like=True, tag="ask"):
    """A read of the past: ``get``, ``list`` or ``events``, and what its arguments are in the contract."""

    number: int
    call: str
    place: str
    at: int
    after: str = ""
    limit: int = 0


class PastPiece(msgspec.Struct, array_like=True, tag="answer"):
    """A piece of what was asked; ``last`` ends it. ``fault`` is the name of a refusal, ``numbers`` are its numbers, or
    those of a list (revision and remaining) and of events (the revision that they reach). Before the rows of events
    come their records of before, None for a creation."""

    number: int
    rows: list[Row]
    last: bool
    fault: str = ""
    numbers: tuple[int, int] = (0, 0)
    before: list[Row | None] = []


class ProcessNote(msgspec.Struct, array_like=True, tag="note"):
    """Something that the log is not concerned with."""

    topic: str
    body: bytes = b""


Message = StatePiece | LogPiece | StorageCondition | PastRequest | PastPiece | ProcessNote
_decode = msgspec.msgpack.Decoder(Message).decode
_encode = msgspec.msgpack.Encoder().encode


def framed(message: Message) -> bytes:
    """A message as bytes, which may be sent to several."""
    body = _encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def row_of(record: Record, deleted: bool = False) -> Row:
    """A record as it is sent."""
    return record.key, record.revision, record.created, record.value, record.foreign, deleted


def record_of(row: Row) -> Record:
    """The record that was sent."""
    return Record(row[0], row[1], row[2], row[3], foreign=row[4])


def changes_of(events: Sequence[Event]) -> LogPiece:
    """Events as they are sent."""
    return LogPiece([row_of(event.record, event.deleted) for event in events])


class FrameConnection(asyncio.Protocol):
    """One side of the socket. ``take`` is called with each message, ``lost`` when the other side is gone."""

    def __init__(self, take: Callable[[Message], None], lost: Callable[[], None] = lambda: None) -> None:
        self._take, self._lost = take, lost
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._came = bytearray()
        self._drained = asyncio.Event()
        self._drained.set()
        self.closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes the socket."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Takes what came."""
        came = self._came
        came += data
        at = 0
        while len(came) - at >= LENGTH_BYTES:
            body = at + LENGTH_BYTES
            end = body + int.from_bytes(came[at:body], "big")
            if len(came) < end:
                break
            at = end
            self._take(_decode(memoryview(came)[body:end].tobytes()))
        del came[:at]

    def connection_lost(self, exc: Exception | None) -> None:
        """Notes the end."""
        self.closed = True
        self._drained.set()
        self._lost()

    def pause_writing(self) -> None:
        """Notes that the other side takes no more for now."""
        self._drained.clear()

    def resume_writing(self) -> None:
        """Goes on."""
        self._drained.set()

    def send(self, message: Message) -> None:
        """Sends a message; nothing where the other side is gone."""
        self.send_framed(framed(message))

    def send_framed(self, data: bytes) -> None:
        """Sends one that was encoded for several."""
        if not self.closed:
            self._transport.write(data)

    async def drain(self) -> None:
        """Waits until the other side takes more, or is gone."""
        await self._drained.wait()

    @property
    def unsent(self) -> int:
        """How many bytes wait for the other side."""
        return 0 if self.closed else self._transport.get_write_buffer_size()

    def abort(self) -> None:
        """Ends it at once."""
        if not self.closed:
            self._transport.abort()
