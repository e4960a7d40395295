"""Query parameters as Go's ``url.ParseQuery`` reads them: a pair with ``;`` or a bad escape is dropped.

``parse_query`` reads all of a query, which is for requests that were let in. Before that somebody may only ask for the
values of one name (``values_of``): the query is searched for it, nothing is kept of the rest, and no name is decoded.
"""

from __future__ import annotations

import re
from binascii import unhexlify
from collections.abc import Iterator
from functools import lru_cache
from string import hexdigits


def parse_query(text: str) -> dict[str, list[str]]:
    """All values by name, in order."""
    found: dict[str, list[str]] = {}
    for pair in text.split("&") if text else ():
        if not pair or ";" in pair:
            continue
        # Go 1.17 and newer reject a semicolon as a separator, so the pair is dropped, not split.
        name, _, value = pair.partition("=")
        if "%" in pair or "+" in pair:
            if not _good_escapes(pair):
                continue
            name, value = _decoded(name), _decoded(value)
        found.setdefault(name, []).append(value)
    return found


def values_of(text: str, name: str, most: int | None = None) -> Iterator[str]:
    """The values of one name, as ``parse_query`` reads them. Those of more than ``most`` characters, as they came, are
    empty; that is for names whose long values nobody may use."""
    if name not in text and "%" not in text:
        return
    # The leading & lets one pattern serve the first pair too.
    for match in _pair_named(name).finditer(f"&{text}"):
        value = match[1] or ""
        # A bad one is no value, however long it is: the next of its name counts, as for the handler.
        if ";" in value:
            continue
        if "%" in value or "+" in value:
            if not _good_escapes(value):
                continue
            if most is None or len(value) <= most:
                value = _decoded(value)
        yield value if most is None or len(value) <= most else ""


@lru_cache(maxsize=100)
def _pair_named(name: str) -> re.Pattern[str]:
    """A pair of the name, each letter of which may be escaped. It begins with a literal; those are found fast."""
    letters = (f"(?:{re.escape(char)}|%{_either(ord(char) >> 4)}{_either(ord(char) & 15)})" for char in name)
    return re.compile(f"&{''.join(letters)}(?:=([^&]*))?(?=&|\\Z)")


# Hexadecimal letters may be upper or lower case (RFC 3986 §2.1).
def _either(digit: int) -> str:
    low = f"{digit:x}"
    return low if low.isdigit() else f"[{low}{low.upper()}]"


_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


_ESCAPES = re.compile(rb"((?:%[0-9A-Fa-f]{2})+)")
# A table of all 22 × 22 escapes: single ones are the usual case, and need no decoding.
_ESCAPED = {f"%{high}{low}".encode(): bytes([int(high + low, 16)]) for high in hexdigits for low in hexdigits}


def unescaped(data: bytes) -> str:
    """What ``urllib.parse.unquote`` makes of it, faster where much is escaped: a run of escapes is decoded at once.
    What is no escape stays, bytes that are no UTF-8 are replaced."""
    if b"%" in data:
        pieces = _ESCAPES.split(data)
        pieces[1::2] = [_ESCAPED.get(run) or unhexlify(run.replace(b"%", b"")) for run in pieces[1::2]]
        data = b"".join(pieces)
    return data.decode("utf-8", "replace")


def _decoded(text: str) -> str:
    # In a query, + is a space (application/x-www-form-urlencoded).
    return unescaped(text.replace("+", " ").encode())


def _good_escapes(text: str) -> bool:
    return _BAD_ESCAPE.search(text) is None
