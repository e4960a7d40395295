"""The heads of answers (status line and fields) as bytes, and the methods that heads of requests begin with."""

from __future__ import annotations

import re
import time
from http import HTTPStatus
from typing import Any, cast

_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}
_heads: dict[tuple[int, str, bool, bool], bytes] = {}
_date: list[Any] = [0, b""]
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

USUAL_METHODS = frozenset({b"GET ", b"POST", b"PUT ", b"PATC", b"DELE", b"HEAD", b"OPTI"})
_METHOD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+(?= /)")
# Those that the parser knows begin with these; of the others it says no more than that the request is bad.
_PARSED = re.compile(
    rb"(?:CONNECT|TRACE|COPY|LOCK|MKCOL|MOVE|PROPFIND|PROPPATCH|SEARCH|UNLOCK|BIND|REBIND|UNBIND|ACL|REPORT|MKACTIVITY"
    rb"|CHECKOUT|MERGE|M-SEARCH|NOTIFY|SUBSCRIBE|UNSUBSCRIBE|PURGE|MKCALENDAR|LINK|UNLINK|SOURCE|QUERY) "
)


def readable(data: bytes) -> bytes:
    """The beginning of a request whose method the parser has not heard of, as one that no resource takes: RFC 9110
    section 9.1 wants such a request answered (405, 501), not refused as unreadable."""
    method = _METHOD.match(data)
    if method is None or _PARSED.match(data):
        return data
    return b"TRACE" + data[method.end() :]


def _says_cache(headers: tuple[tuple[str, str], ...]) -> bool:
    """Whether an answer says itself how it may be kept: of two such fields clients heed the first."""
    return any(name.lower() == "cache-control" for name, _ in headers)


def head_of(
    status: int,
    content_type: str,
    keep_alive: bool,
    stamp: bytes = b"",
    headers: tuple[tuple[str, str], ...] = (),
) -> bytes:
    """Status line and fields: those that every answer has, which are kept by what they depend on, the ``stamp``, and
    ``headers``."""
    own_cache = bool(headers) and _says_cache(headers)
    place = (status, content_type, keep_alive, own_cache)
    head = _heads.get(place)
    if head is None:
        # Content types come from clients' choices of version: bounded, or they would grow for ever.
        if len(_heads) > 1000:
            _heads.clear()
        head = _heads[place] = b"HTTP/1.1 %d %b\r\n%b%b%bX-Content-Type-Options: nosniff\r\n" % (
            status,
            _REASONS.get(status, b""),
            b"" if keep_alive else b"Connection: close\r\n",
            b"Content-Type: %b\r\n" % content_type.encode("latin-1") if content_type else b"",
            b"" if own_cache else b"Cache-Control: no-cache, private\r\n",
        )
    # Formatting a date takes longer than the rest of the head, and it changes once a second.
    now = int(time.time())
    if _date[0] != now:
        _date[0], _date[1] = now, _date_line(now)
    head += cast(bytes, _date[1]) + stamp
    return head + _lines_of(headers) if headers else head


def _date_line(now: int) -> bytes:
    """The Date field (RFC 9110 section 5.6.7). strftime would say it in another language where a locale is set, and
    email.utils brings a dozen modules to a start."""
    at = time.gmtime(now)
    day = f"{_DAYS[at.tm_wday]}, {at.tm_mday:02d} {_MONTHS[at.tm_mon - 1]} {at.tm_year}"
    return f"Date: {day} {at.tm_hour:02d}:{at.tm_min:02d}:{at.tm_sec:02d} GMT\r\n".encode()


def _lines_of(headers: tuple[tuple[str, str], ...]) -> bytes:
    """Further fields; what would end a line is a space."""
    return b"".join(
        [b"%b: %b\r\n" % (name.encode("latin-1"), _clean(value).encode("utf-8")) for name, value in headers]
    )


def _clean(value: str) -> str:
    """A value that cannot end its line (RFC 9110 §5.5)."""
    return value.replace("\r", " ").replace("\n", " ").replace("\0", " ")
