"""Bodies of answers, unpacked and cut into lines, up to a limit. No sockets here.

A server that is hostile, or broken, may send without end, or a few megabytes that unpack to gigabytes. So a body is
unpacked in pieces, and what is past the limit is not read any more.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Final

PIECE: Final = 1 << 20


class TransportError(Exception):
    """The server could not be asked, or its answer did not arrive whole. ``sent`` is False where the request
    surely did not reach it; ``timed_out`` tells a deadline from a broken connection."""

    def __init__(self, message: str, *, sent: bool, timed_out: bool = False) -> None:
        super().__init__(message)
        self.sent = sent
        self.timed_out = timed_out


class AnswerTooLarge(TransportError):
    """An answer, or a line of one, is larger than ``Limits`` allows. It is not asked for again."""

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"{what} has more than {limit} bytes; Limits says how many are read", sent=True)


class Unpacker:
    """Undoes the content coding of an answer, in pieces."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._gzip = zlib.decompressobj(31) if headers.get("content-encoding") == "gzip" else None

    def pieces(self, block: bytes) -> Iterator[bytes]:
        """What a block holds. Raises ``TransportError`` where it is no gzip."""
        if self._gzip is None:
            yield block
            return
        while not self._gzip.eof:
            try:
                piece = self._gzip.decompress(block, PIECE)
            except zlib.error as error:
                raise TransportError(f"the answer says it is gzip: {error}", sent=True) from None
            if piece:
                yield piece
            block = self._gzip.unconsumed_tail
            if not block and len(piece) < PIECE:
                return

    def end(self) -> None:
        """Raises ``TransportError`` where the packed form is not complete."""
        if self._gzip is not None and not self._gzip.eof:
            raise TransportError("the answer ended within its gzip", sent=True)


class SentBody:
    """A whole body, of ``limit`` bytes at most."""

    def __init__(self, headers: Mapping[str, str], limit: int) -> None:
        self._unpacker = Unpacker(headers)
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._began = False
        length = headers.get("content-length", "")
        if length.isdecimal() and len(length) < 20 and int(length) > limit:
            raise AnswerTooLarge("the answer", limit)

    def take(self, block: bytes) -> None:
        """Adds what came. Raises ``AnswerTooLarge``."""
        self._began = self._began or bool(block)
        for piece in self._unpacker.pieces(block):
            self._size += len(piece)
            if self._size > self._limit:
                self._parts.clear()
                raise AnswerTooLarge("the answer", self._limit)
            self._parts.append(piece)

    def whole(self) -> bytes:
        """The body, which has ended."""
        if self._began:
            self._unpacker.end()
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


class Lines:
    """The lines of a body that goes on, each of ``limit`` bytes at most. Takes time in proportion to what comes: the
    parts of a line are joined once."""

    def __init__(self, headers: Mapping[str, str], limit: int) -> None:
        self._unpacker = Unpacker(headers)
        self._limit = limit
        self._keeps_empty = headers.get("content-type", "").startswith("text/event-stream")
        self._parts: list[bytes] = []
        self._size = 0

    def take(self, block: bytes) -> Iterator[bytes]:
        """The lines that end in a block; those that are empty only of events, which they end. Raises
        ``AnswerTooLarge``."""
        for piece in self._unpacker.pieces(block):
            lines = piece.split(b"\n")
            last = lines.pop()
            for line in lines:
                if self._parts:
                    self._parts.append(line)
                    line = self._joined()
                if line or self._keeps_empty:
                    yield line
            if last:
                self._parts.append(last)
                self._size += len(last)
                if self._size > self._limit:
                    self._parts.clear()
                    raise AnswerTooLarge("a line of the answer", self._limit)

    def rest(self) -> bytes:
        """The last line, which no newline ends; empty where there is none."""
        return self._joined()

    def _joined(self) -> bytes:
        line = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return line
