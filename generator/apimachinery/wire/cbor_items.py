"""CBOR item by item (RFC 8949): whether bytes are well-formed, which keys repeat, and diagnostic notation.

All in the words and the order of the decoder that Kubernetes reads with: all of a document must be well-formed before
any of it is read, so a cut end is noticed before text that is not UTF-8.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Final

_TYPES: Final = (
    "positive integer", "negative integer", "byte string", "UTF-8 text string", "array", "map", "tag", "primitives",
)  # fmt: skip
_FLOATS: Final = {25: ">e", 26: ">f", 27: ">d"}
_NAMED: Final = {20: "false", 21: "true", 22: "null", 23: "undefined"}
_BYTES, _TEXT, _ARRAY, _MAP, _TAG, _PRIMITIVE = range(2, 8)
_BREAK: Final = 0xFF
_INDEFINITE: Final = 31
_MAX_NESTED: Final = 250  # three frames each of the 1,000 that Python has; Kubernetes reads 10,000
_ESCAPES: Final = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"}


class Malformed(ValueError):
    """Bytes that are no CBOR; the text is what a client is told."""


def form_fault(data: bytes) -> str | None:
    """Why ``data`` is not one well-formed item, None where it is."""
    walk = _Walk(data)
    try:
        walk.check(0)
    except Malformed as fault:
        return str(fault)
    if walk.at < len(data):
        return f"cbor: {len(data) - walk.at} bytes of extraneous data starting at index {walk.at}"
    return None


def first_repeated(data: bytes) -> tuple[int, str, int] | None:
    """(depth of its map, name, place there) of the first key of a well-formed document that is there before; keys of
    the outermost map are read before those within."""
    found: list[tuple[int, str, int]] = []
    _Walk(data).collect_repeated(0, found)
    return next((each for each in found if not each[0]), found[0] if found else None)


def diagnosed(data: bytes) -> str:
    """A well-formed item in diagnostic notation; what has none is shown in hexadecimal."""
    try:
        return _Walk(data).shown()
    except (Malformed, UnicodeDecodeError, RecursionError):
        return data.hex()


class _Walk:
    """Goes over the items of a document, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def _next(self) -> int:
        if self.at >= len(self._data):
            raise Malformed("unexpected EOF")
        return self._data[self.at]

    def _take(self, size: int) -> bytes:
        if len(self._data) - self.at < size:
            raise Malformed("unexpected EOF")
        self.at += size
        return self._data[self.at - size : self.at]

    def _breaks(self) -> bool:
        if self._next() != _BREAK:
            return False
        self.at += 1
        return True

    def _head(self) -> tuple[int, int, int]:
        """Major type, additional information and argument of the next item."""
        first = self._next()
        self.at += 1
        major, extra = first >> 5, first & 31
        # Below 24 the additional information is the argument itself (RFC 8949 section 3).
        if extra < 24:
            return major, extra, extra
        if extra < 28:
            raw = self._take(1 << extra - 24)
            argument = int.from_bytes(raw, "big")
            if major == _PRIMITIVE:
                _check_primitive(extra, argument, raw)
            return major, extra, argument
        if extra == _INDEFINITE and major not in (0, 1, _TAG):
            if major == _PRIMITIVE:
                raise Malformed('cbor: unexpected "break" code')
            return major, extra, 0
        raise Malformed(f"cbor: invalid additional information {extra} for type {_TYPES[major]}")

    def check(self, depth: int) -> None:
        """Passes over one item. Raises Malformed."""
        major, extra, argument = self._head()
        if major in (_BYTES, _TEXT):
            if extra == _INDEFINITE:
                self._check_chunks(major, depth)
            elif argument >= 1 << 63:
                raise Malformed(
                    f"cbor: {_TYPES[major]} length {argument} is too large, causing integer overflow"
                )
            else:
                self._take(argument)
        elif major in (_ARRAY, _MAP):
            self._check_items(major, extra, argument, depth + 1)
        elif major == _TAG:
            if argument in (2, 3) and self.at < len(self._data):
                raise Malformed("cbor: data item of cbor type tag is not accepted by protocol: bignum")
            self._deeper(depth + 1)

    def _deeper(self, depth: int) -> None:
        if depth > _MAX_NESTED:
            raise Malformed(f"cbor: exceeded max nested level {_MAX_NESTED}")
        self.check(depth)

    def _check_items(self, major: int, extra: int, argument: int, depth: int) -> None:
        if extra == _INDEFINITE:
            count = 0
            while not self._breaks():
                self._deeper(depth)
                count += 1
            if major == _MAP and count % 2:
                raise Malformed('cbor: unexpected "break" code')
            return
        if argument >= 1 << 63:
            raise Malformed(
                f"cbor: {_TYPES[major]} length {argument} is too large, it would cause integer overflow"
            )
        # The defaults of the Go library for elements and pairs.
        what, most = ("elements", 2147483647) if major == _ARRAY else ("key-value pairs", 2097152)
        if argument > most:
            raise Malformed(f"cbor: exceeded max number of {what} {most} for CBOR {_TYPES[major]}")
        for _ in range(argument * (2 if major == _MAP else 1)):
            self._deeper(depth)

    def _check_chunks(self, major: int, depth: int) -> None:
        while not self._breaks():
            first = self._next()
            if first >> 5 != major:
                raise Malformed(
                    f"cbor: wrong element type {_TYPES[first >> 5]} for indefinite-length {_TYPES[major]}"
                )
            if first & 31 == _INDEFINITE:
                raise Malformed(f"cbor: indefinite-length {_TYPES[major]} chunk is not definite-length")
            self.check(depth)

    def collect_repeated(self, depth: int, found: list[tuple[int, str, int]]) -> str:
        """Passes over one item, notes the keys that are in its maps before, and gives its text if it is a string."""
        major, extra, argument = self._head()
        if major in (_BYTES, _TEXT):
            if extra == _INDEFINITE:
                parts = []
                while not self._breaks():
                    parts.append(self.collect_repeated(depth, found))
                return "".join(parts)
            return self._take(argument).decode("utf-8", "replace")
        if major == _TAG:
            return self.collect_repeated(depth, found)
        done, seen = 0, set()
        while major in (_ARRAY, _MAP) and not (self._breaks() if extra == _INDEFINITE else done == argument):
            name = self.collect_repeated(depth + 1, found)
            if major == _MAP:
                if name in seen:
                    found.append((depth, name, done))
                seen.add(name)
                self.collect_repeated(depth + 1, found)
            done += 1
        return ""

    def shown(self) -> str:
        """The next item in diagnostic notation (RFC 8949 section 8)."""
        major, extra, argument = self._head()
        if extra == _INDEFINITE:
            return self._shown_indefinite(major)
        if major == 0:
            return str(argument)
        if major == 1:
            return str(-1 - argument)
        if major == _BYTES:
            return _quoted_bytes(self._take(argument))
        if major == _TEXT:
            return _quoted(self._take(argument).decode(), '"')
        if major == _ARRAY:
            return f"[{', '.join(self.shown() for _ in range(argument))}]"
        if major == _MAP:
            return f"{{{', '.join(self._shown_pair() for _ in range(argument))}}}"
        if major == _TAG:
            return f"{argument}({self.shown()})"
        if extra in _FLOATS:
            return _shown_float(
                struct.unpack(_FLOATS[extra], self._data[self.at - (1 << extra - 24) : self.at])[0]
            )
        return _NAMED.get(argument, f"simple({argument})")

    def _shown_pair(self) -> str:
        key = self.shown()
        return f"{key}: {self.shown()}"

    def _shown_indefinite(self, major: int) -> str:
        parts = []
        while not self._breaks():
            parts.append(self._shown_pair() if major == _MAP else self.shown())
        if major in (_BYTES, _TEXT) and not parts:
            return "''_" if major == _BYTES else '""_'
        signs = {_ARRAY: "[]", _MAP: "{}"}.get(major, "()")
        return f"{signs[0]}_ {', '.join(parts)}{signs[1]}"


def _check_primitive(extra: int, argument: int, raw: bytes) -> None:
    if extra == 24:
        # Simple values below 32 must be written in one byte.
        if argument < 32:
            raise Malformed(f"cbor: invalid simple value {argument} for type primitives")
        return
    value = struct.unpack(_FLOATS[extra], raw)[0]
    if not math.isfinite(value):
        kind = "NaN" if math.isnan(value) else "infinity"
        raise Malformed(
            f"cbor: data item of cbor type primitives is not accepted by protocol: floating-point {kind}"
        )


def _quoted_bytes(value: bytes) -> str:
    if value:
        try:
            return _quoted(value.decode(), "'")
        except UnicodeDecodeError:
            pass
    return f"h'{value.hex()}'"


def _quoted(text: str, quote: str) -> str:
    return quote + "".join(_escaped(char, quote) for char in text) + quote


def _escaped(char: str, quote: str) -> str:
    if char == quote:
        return "\\" + char
    if char in _ESCAPES:
        return _ESCAPES[char]
    if " " <= char <= "~":
        return char
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _shown_float(value: float) -> str:
    """A float as JavaScript prints it, but always with a point."""
    size = abs(value)
    if size == 0 or 1e-6 <= size < 1e21:
        text = format(Decimal(repr(value)), "f")
        return text if "." in text else f"{text}.0"
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        mantissa, _, exponent = f"{value:e}".partition("e")
    sign = "-" if exponent[0] == "-" else "+"
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{sign}{exponent.lstrip('+-').lstrip('0')}"
