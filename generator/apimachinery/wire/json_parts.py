"""Large JSON documents read a part at a time, as the decoder lets no other thread run meanwhile.

msgspec reads 1.5 MB of small values in 20 to 80 ms, for which the loop of a server would wait. Where the ends of parts
are is not looked for: the text between two commas is decoded in brackets of its own. The first comma is one between two
members of the object or array, so where the text up to the second one is good, that one is, too; within a nested value
or a text it would leave something open. Where members are larger than a part, they are told apart by msgspec.Raw, which
takes little time for each byte, and read in the same way.

Sources: RFC 8259. Of equal keys the last one counts, at the place of the first, as in ``json``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

_decode = msgspec.json.Decoder().decode
_members_of_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_members_of_array = msgspec.json.Decoder(list[msgspec.Raw]).decode

STEP_BYTES = 32 << 10
"""So much is read, searched or encoded at once."""
_FEW_BYTES = 2 << 10
"""Members that are larger are told apart one by one: there are few."""
_NESTED = 64
"""Values below this depth are read at once."""
_ENDS = (b",", b"},", b"],")
"""What ends a member that another follows: the first is meant for plain values, the others for nested ones."""
_BRACKETS = {b"{}": b"{%b}", b"[]": b"[%b]"}
_SPACE = b" \t\r\n"


def decode_in_parts(data: bytes, depth: int = _NESTED) -> Any:
    """The value of a document, as ``msgspec.json.decode`` makes it. Raises its DecodeError, for a part of the document
    or for all of it."""
    text = data.strip(_SPACE)
    brackets = _BRACKETS.get(text[:1] + text[-1:])
    # The whole text at once where it is small, or nested deeper than parts pay off.
    if len(text) <= STEP_BYTES or not depth or brackets is None:
        return _decode(text)
    parts = _parts(text[1:-1], brackets, depth)
    if brackets is _BRACKETS[b"[]"]:
        return [item for part in parts for item in part]
    found: dict[str, Any] = {}
    for part in parts:
        found.update(part)
    return found


def _parts(inner: bytes, brackets: bytes, depth: int) -> Iterator[Any]:
    """The members between a pair of brackets: objects, or arrays, of some each."""
    low = 0
    while len(inner) - low > STEP_BYTES:
        found = _part(inner, low, _FEW_BYTES, brackets) and _part(inner, low, STEP_BYTES, brackets)
        if not found:
            break
        part, high = found
        yield part
        low = high + 1
    rest = brackets % inner[low:] if low else brackets % inner
    if len(rest) <= STEP_BYTES:
        part = _decode(rest)
    # Members larger than a part: each is read by itself.
    elif brackets is _BRACKETS[b"[]"]:
        part = [decode_in_parts(bytes(item), depth - 1) for item in _members_of_array(rest)]
    else:
        part = {
            key: decode_in_parts(bytes(item), depth - 1) for key, item in _members_of_object(rest).items()
        }
    # A comma at the end of the last part is an error that the part alone would not show.
    if low and not part:
        raise msgspec.DecodeError("a member is missing after a comma")
    yield part


def _part(inner: bytes, low: int, size: int, brackets: bytes) -> tuple[Any, int] | None:
    """The members that begin at ``low`` and make ``size`` bytes or some more, and the comma after them; None where that
    comma is not found at once."""
    for end in _ENDS:
        high = inner.find(end, low + size, low + size + STEP_BYTES) + len(end) - 1
        if high >= low + size:
            try:
                part = _decode(brackets % inner[low:high])
            except msgspec.DecodeError:
                # The comma lies within a text or a nested value; another end is tried.
                continue
            if part:  # nothing but space has no comma after it
                return part, high
    return None
