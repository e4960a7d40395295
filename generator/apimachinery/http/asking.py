"""HTTP/1.1 as the side speaks it that asks: heads of requests are written, answers read. No sockets here.

Clients for threads and for asyncio share this, so both take the same answers and refuse the same ones. It is strict
where two readers could disagree (RFC 9112, section 11.2): folded fields, lone line ends, lengths that differ and
codings other than ``chunked`` are refused. Heads are bounded by ``HEAD_BYTES``; bodies are passed on as they come.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

HEAD_BYTES: Final = 1 << 16
LINE_BYTES: Final = 1 << 12
"""Of a line that says how large a chunk is, and of a field after the last chunk."""

_STATUS: Final = re.compile(r"HTTP/1\.([0-9]) ([1-9][0-9]{2})(?: .*)?")
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Eighteen digits fit 64 bits; Python would take any number of them, slowly.
_LENGTH: Final = re.compile(r"[0-9]{1,18}")
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?")
_UNFIT: Final = re.compile(r"[\x00-\x1f\x7f]")
_HEAD, _BODY, _CHUNKS, _TRAILERS, _ENDED = range(5)
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})


class BadAnswer(Exception):
    """What came is no HTTP/1.1 answer, or not a whole one."""


def request_head(method: str, target: str, fields: Iterable[tuple[str, str]], body: bytes | None) -> bytes:
    """The head of a request, with the length of its body. Raises ValueError for what cannot be sent, and never
    repeats the value of a field, which may be a secret."""
    if not _NAME.fullmatch(method):
        raise ValueError(f"the method {method!r} is no HTTP method")
    if " " in target or not target.isascii() or _UNFIT.search(target):
        raise ValueError(f"the target {target!r} has a character that must be escaped")
    lines = [f"{method} {target} HTTP/1.1"]
    for name, value in fields:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of an HTTP header")
        # A tab is allowed within a value (RFC 9110 §5.5).
        if _UNFIT.search(value) and _UNFIT.search(value.replace("\t", " ")):
            raise ValueError(f"the header {name} has a control character in its value")
        lines.append(f"{name}: {value}")
    # A POST without a body says so: some servers answer 411 otherwise (RFC 9110 §8.6).
    if body is not None or method in _WITH_BODY:
        lines.append(f"Content-Length: {len(body or b'')}")
    try:
        return "\r\n".join([*lines, "", ""]).encode()
    except UnicodeEncodeError:
        raise ValueError("a header has a value that is no Unicode text") from None


def _other(data: bytes | bytearray) -> str:
    return f"the answer is not HTTP/1.1: it begins with {bytes(data[:40])!r}"


class AnswerReader:
    """One answer, read as its bytes come. ``code`` is 0 until the head has come; names in ``headers`` are in lower
    case, values of repeated ones joined by newlines. ``keeps``: the connection is good for another request."""

    __slots__ = ("_kept", "_left", "_method", "_seen", "_state", "code", "headers", "keeps", "length")

    def __init__(self, method: str) -> None:
        self.code = 0
        self.headers: dict[str, str] = {}
        self.length: int | None = None
        self.keeps = False
        self._method = method
        self._state = _HEAD
        self._kept = bytearray()
        self._seen = 0
        self._left = 0

    @property
    def ended(self) -> bool:
        """Whether all of it has come."""
        return self._state == _ENDED

    def take(self, data: bytes) -> bytes:
        """Takes what came, which is not empty, and returns what of it is the body. Raises ``BadAnswer``."""
        if self._state == _HEAD:
            data = self._take_head(data)
            if not data:
                return data
        if self._state == _CHUNKS:
            return self._take_chunks(data)
        if self._state == _BODY:
            if self.length is None:
                return data
            return self._take_counted(data)
        if self._state == _TRAILERS:
            self._take_trailers(data)
        elif self._state == _ENDED:
            self.keeps = False  # unrequested bytes would be taken for the next answer
        return b""

    def end(self) -> None:
        """Ends it with its connection. Raises ``BadAnswer`` where it is not whole."""
        self.keeps = False
        # Without a length the body ends with the connection (RFC 9112 §6.3).
        if self._state == _BODY and self.length is None:
            self._state = _ENDED
        if self._state == _HEAD:
            raise BadAnswer("the connection was closed before an answer came")
        if self._state != _ENDED:
            raise BadAnswer("the connection was closed in the middle of the answer")

    # The head.

    def _take_head(self, data: bytes) -> bytes:
        """Returns what follows the head."""
        kept = self._kept
        while True:
            if kept:
                kept += data
                at = kept.find(b"\r\n\r\n", self._seen)
                data = bytes(kept) if at >= 0 else b""
            else:
                # Nearly always the head comes in one piece, which need not be copied.
                at = data.find(b"\r\n\r\n")
                if at < 0:
                    kept += data
            if at > HEAD_BYTES or (at < 0 and len(kept) > HEAD_BYTES):
                raise BadAnswer(f"the head of the answer has more than {HEAD_BYTES} bytes")
            if at < 0:
                # Another protocol is refused at its first bytes, before much of it is kept.
                if not kept.startswith(b"HTTP/"[: len(kept)]):
                    raise BadAnswer(_other(kept))
                # The end may lie across two pieces.
                self._seen = max(0, len(kept) - 3)
                return b""
            kept.clear()
            self._seen = 0
            self._read_head(data[:at])
            data = data[at + 4 :]
            # After 100 Continue, or another interim answer, the real head follows.
            if self.code or not data:
                return data

    def _read_head(self, head: bytes) -> None:
        try:
            text = head.decode()
        except UnicodeDecodeError:
            # Field values were Latin-1 once, and some proxies still send it.
            text = head.decode("latin-1")
        lines = text.split("\r\n")
        ends = len(lines) - 1
        status = _STATUS.fullmatch(lines[0])
        if status is None or "\0" in text or text.count("\n") != ends or text.count("\r") != ends:
            raise BadAnswer(_other(head))
        code = int(status[2])
        # Upgrades are asked for elsewhere; here it would leave both sides waiting.
        if code == 101:
            raise BadAnswer("the server speaks another protocol, which was not asked for")
        if code < 200:
            return  # more is to come
        headers = self.headers
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon or not _NAME.fullmatch(name):
                raise BadAnswer("the answer has a line among its headers that is none")
            key, value = name.lower(), value.strip(" \t")
            headers[key] = f"{headers[key]}\n{value}" if key in headers else value
        self._frame(code, status[1] != "0")
        self.code = code

    def _frame(self, code: int, is_new: bool) -> None:
        """Says how the body ends (RFC 9112, section 6.3)."""
        headers = self.headers
        connection = headers.get("connection", "").lower()
        self.keeps = "close" not in connection if is_new else "keep-alive" in connection
        coding, length = headers.get("transfer-encoding"), headers.get("content-length")
        # Such answers have no body, whatever length they state (RFC 9112 §6.3).
        if self._method == "HEAD" or code in (204, 304) or (self._method == "CONNECT" and code < 300):
            self._state = _ENDED
        elif coding is not None:
            if coding.lower() != "chunked":
                raise BadAnswer(f"the answer has a transfer coding that is not chunked: {coding[:40]!r}")
            # Both given may be an attempt at smuggling: the coding counts, and the connection is not used again.
            self.keeps = self.keeps and length is None
            self._state = _CHUNKS
        elif length is not None:
            # A length may be repeated if all its values agree (RFC 9112 §6.3).
            told = {each.strip() for each in re.split("[\n,]", length)}
            first = told.pop()
            if told or not _LENGTH.fullmatch(first):
                raise BadAnswer(f"the answer has a length that is no number: {length[:40]!r}")
            self.length = self._left = int(first)
            self._state = _BODY if self.length else _ENDED
        else:
            self.keeps, self._state = False, _BODY

    # The body.

    def _take_counted(self, data: bytes) -> bytes:
        self._left -= len(data)
        if self._left <= 0:
            self._state = _ENDED
            # More than the length said: nothing after this can be trusted.
            if self._left:
                data, self.keeps = data[: self._left], False
        return data

    def _take_chunks(self, data: bytes) -> bytes:
        """``_left`` counts what is to come of a chunk with the CRLF after it; 0 where a size is next."""
        if self._kept:
            data = bytes(self._kept) + data
            self._kept.clear()
        blocks: list[bytes] = []
        at, end, left = 0, len(data), self._left
        while at < end:
            # Two bytes of ``left`` are the CRLF after the chunk.
            if left > 2:
                block = data[at : at + left - 2]
                blocks.append(block)
                at += len(block)
                left -= len(block)
                # The usual case, a whole line end in this piece; below, one that is split between two pieces.
                if left == 2 and data.startswith(b"\r\n", at):
                    at, left = at + 2, 0
                continue
            if left:
                if data[at] != b"\n\r"[left - 1]:
                    raise BadAnswer("the answer has a chunk that is longer than it says")
                at, left = at + 1, left - 1
                continue
            stop = data.find(b"\r\n", at, at + LINE_BYTES)
            if stop < 0:
                if end - at >= LINE_BYTES:
                    raise BadAnswer("the answer has a chunk whose size has no end")
                self._kept += data[at:]
                break
            size = _SIZE.fullmatch(data, at, stop)
            if size is None:
                raise BadAnswer(f"the answer has a chunk of no size: {data[at : min(stop, at + 40)]!r}")
            at = stop + 2
            left = int(size[1], 16)
            if not left:
                self._state, self._left, self._seen = _TRAILERS, 0, 0
                self._take_trailers(data[at:])
                break
            left += 2
        # One chunk is the usual case, and is passed on without a copy.
        self._left = left
        return blocks[0] if len(blocks) == 1 else b"".join(blocks)

    def _take_trailers(self, data: bytes) -> None:
        """Skips the fields after the last chunk, up to an empty line."""
        data = bytes(self._kept) + data
        self._kept.clear()
        at = 0
        while (stop := data.find(b"\r\n", at)) >= 0:
            self._seen += stop + 2 - at
            if stop == at:
                self._state = _ENDED
                self.keeps = self.keeps and stop + 2 == len(data)
                return
            at = stop + 2
        self._kept += data[at:]
        if len(self._kept) > LINE_BYTES or self._seen > HEAD_BYTES:
            raise BadAnswer("the answer has too many fields after its end")
