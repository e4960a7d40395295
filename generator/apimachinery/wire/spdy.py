"""SPDY/3.1 frames, of commands and port-forwards before websockets, without any I/O: bytes in, events out, and back.

A frame has eight bytes of head: a stream and its length (data), or 0x8003, a type, flags and a length (control).
Headers are zlib-compressed with a dictionary of the protocol, in one stream of compression for each direction.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9
FIN: Final = 0x01
LARGEST_FRAME: Final = 1 << 20
PIECE: Final = 1 << 15
LARGEST_HEADERS: Final = 1 << 16
_WORDS: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status"
).split()
_TEXT: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _dictionary() -> bytes:
    words = [*_WORDS, "200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin"]
    return b"".join(struct.pack(">I", len(word)) + word.encode() for word in words) + _TEXT.encode()


DICTIONARY: Final = _dictionary()


class SpdyFault(ValueError):
    """Bytes that are no SPDY; the text says why."""


@dataclass(frozen=True, slots=True)
class OpenedStream:
    """A stream that the other side opened; ``ended`` where it sends nothing on it."""

    stream: int
    headers: Mapping[str, str]
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Came:
    """Bytes on a stream; ``ended`` where they are the last."""

    stream: int
    data: bytes
    ended: bool = False


@dataclass(slots=True)
class SpdyConnection:
    """One side of a connection; what must be sent is in ``outgoing``. Clients ``open`` streams, servers ``accept``
    them."""

    outgoing: bytearray = field(default_factory=bytearray)
    over: bool = False
    _opened: int = 0
    _held: bytearray = field(default_factory=bytearray)
    _unpack: zlib._Decompress = field(default_factory=lambda: zlib.decompressobj(zdict=DICTIONARY))
    _pack: zlib._Compress = field(default_factory=lambda: zlib.compressobj(zdict=DICTIONARY))

    def receive(self, data: bytes) -> Iterator[OpenedStream | Came]:
        """What bytes say. Raises SpdyFault."""
        self._held += data
        while len(self._held) >= 8:
            first, second = struct.unpack_from(">II", self._held)
            size = second & 0xFFFFFF
            if size > LARGEST_FRAME:
                raise SpdyFault(f"a frame of {size} bytes")
            if len(self._held) < 8 + size:
                return
            body = bytes(self._held[8 : 8 + size])
            del self._held[: 8 + size]
            ended = bool(second >> 24 & FIN)
            if first >> 31:
                yield from self._control(first & 0xFFFF, body, ended)
            else:
                if size:
                    self.outgoing += _frame(WINDOW_UPDATE, struct.pack(">II", first, size))
                yield Came(first, body, ended)

    def _control(self, kind: int, body: bytes, ended: bool) -> Iterator[OpenedStream | Came]:
        match kind:
            case _ if kind == SYN_STREAM:
                if len(body) < 10:
                    raise SpdyFault("a SYN_STREAM that is too short")
                stream = struct.unpack_from(">I", body)[0] & 0x7FFFFFFF
                yield OpenedStream(stream, self._headers(body[10:]), ended)
            case _ if kind in (SYN_REPLY, HEADERS):
                self._headers(
                    body[4:]
                )  # read for what comes after it: all headers are compressed as one text
            case _ if kind == PING:
                self.outgoing += _frame(PING, body)
            case _ if kind == GOAWAY:
                self.over = True
            case _ if kind == RST_STREAM and len(body) >= 4:
                yield Came(struct.unpack_from(">I", body)[0] & 0x7FFFFFFF, b"", True)

    def _headers(self, packed: bytes) -> dict[str, str]:
        try:
            plain = self._unpack.decompress(packed, LARGEST_HEADERS)
            (count,) = struct.unpack_from(">I", plain)
            place, words = 4, []
            for _ in range(2 * min(count, 1000)):
                (size,) = struct.unpack_from(">I", plain, place)
                words.append(plain[place + 4 : place + 4 + size].decode("latin-1"))
                place += 4 + size
        except (zlib.error, struct.error) as fault:
            raise SpdyFault(f"headers that cannot be read: {fault}") from None
        return dict(zip(words[::2], words[1::2], strict=True))

    def open(self, headers: Mapping[str, str]) -> int:
        """Opens a stream, the client's side; gives its number."""
        stream, self._opened = 2 * self._opened + 1, self._opened + 1
        self.outgoing += _frame(SYN_STREAM, struct.pack(">IIH", stream, 0, 0) + self._packed(headers))
        return stream

    def accept(self, stream: int) -> None:
        """Answers a stream that was opened."""
        self.outgoing += _frame(SYN_REPLY, struct.pack(">I", stream) + self._packed({}))

    def send(self, stream: int, data: bytes, *, ended: bool = False) -> None:
        """Writes bytes to a stream; ``ended`` where no more come."""
        for low in range(0, len(data), PIECE):
            piece = data[low : low + PIECE]
            self.outgoing += struct.pack(">II", stream, len(piece)) + piece
        if ended:
            self.outgoing += struct.pack(">II", stream, FIN << 24)

    def _packed(self, headers: Mapping[str, str]) -> bytes:
        plain = struct.pack(">I", len(headers))
        for word in (word for pair in headers.items() for word in pair):
            plain += struct.pack(">I", len(word)) + word.encode("latin-1")
        return self._pack.compress(plain) + self._pack.flush(zlib.Z_SYNC_FLUSH)

    def take_outgoing(self) -> bytes:
        """What is to be sent now."""
        data = bytes(self.outgoing)
        self.outgoing.clear()
        return data


def _frame(kind: int, body: bytes) -> bytes:
    return struct.pack(">II", 0x80030000 | kind, len(body)) + body
