"""Header fields in HTTP/2's compressed form (RFC 7541), as far as two sides need it that keep no dynamic table.

Theory. Who announces a dynamic table of zero bytes gets blocks that mean the same wherever they come in a connection.
So a block is decoded once: answers have few different ones, and those that repeat cost one look-up.
"""

from __future__ import annotations

from collections.abc import Iterable

Fields = dict[bytes, bytes]

_KEPT_BLOCKS = 256
_STATIC = [
    (name.encode(), value.encode())
    for name, _, value in (
        line.partition("=")
        for line in """:authority
:method=GET
:method=POST
:path=/
:path=/index.html
:scheme=http
:scheme=https
:status=200
:status=204
:status=206
:status=304
:status=400
:status=404
:status=500
accept-charset
accept-encoding=gzip, deflate
accept-language
accept-ranges
accept
access-control-allow-origin
age
allow
authorization
cache-control
content-disposition
content-encoding
content-language
content-length
content-location
content-range
content-type
cookie
date
etag
expect
expires
from
host
if-match
if-modified-since
if-none-match
if-range
if-unmodified-since
last-modified
link
location
max-forwards
proxy-authenticate
proxy-authorization
range
referer
refresh
retry-after
server
set-cookie
strict-transport-security
transfer-encoding
user-agent
vary
via
www-authenticate""".splitlines()
    )
]
# The bits of each byte's code as a digit in base 36. Codes follow from their lengths: in order of length, then byte.
_CODE_BITS = (
    "dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6ca"
    "d67777777777777777777777878djde6f56565666577666567655677777fbeds"
    "kmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmn"
    "qqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrq"
)
_LONGEST = 30


class BadBlock(ValueError):
    """A block of fields that cannot be decoded."""


def _codes() -> dict[tuple[int, int], int]:
    codes: dict[tuple[int, int], int] = {}
    code = before = 0
    for bits, byte in sorted((int(digit, 36), byte) for byte, digit in enumerate(_CODE_BITS)):
        code <<= bits - before
        codes[bits, code] = byte
        code, before = code + 1, bits
    return codes


_BYTES = _codes()


def encoded(fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Fields as a block, or a part of one: as they are, and not to be remembered."""
    block = bytearray()
    for name, value in fields:
        block += b"\0" + _number(len(name), 7) + name + _number(len(value), 7) + value
    return bytes(block)


def _number(number: int, bits: int) -> bytes:
    most = (1 << bits) - 1
    if number < most:
        return bytes((number,))
    number -= most
    octets = bytearray((most,))
    while number > 127:
        octets.append(number & 127 | 128)
        number >>= 7
    octets.append(number)
    return bytes(octets)


class BlockDecoder:
    """Decodes blocks of one connection."""

    def __init__(self) -> None:
        self._known: dict[bytes, Fields] = {}

    def fields(self, block: bytes) -> Fields:
        """The fields of a block, of several with one name the last; not to be changed. Raises BadBlock."""
        known = self._known.get(block)
        if known is None:
            if len(self._known) >= _KEPT_BLOCKS:
                self._known.clear()
            try:
                known = self._known[block] = dict(_Reading(block).fields())
            except IndexError:
                raise BadBlock("a block of header fields is cut off") from None
        return known


class _Reading:
    """Goes through a block; past its end is an IndexError."""

    def __init__(self, block: bytes) -> None:
        self._block = block
        self._at = 0

    def fields(self) -> Iterable[tuple[bytes, bytes]]:
        while self._at < len(self._block):
            first = self._block[self._at]
            if first & 0x80:
                yield _static(self._number(7))
            elif first & 0xE0 == 0x20:
                if self._number(5):
                    raise BadBlock("a dynamic table, where none was agreed on")
            else:
                index = self._number(6 if first & 0x40 else 4)
                name = _static(index)[0] if index else self._text()
                yield name, self._text()

    def _number(self, bits: int) -> int:
        most = (1 << bits) - 1
        number = self._block[self._at] & most
        self._at += 1
        if number < most:
            return number
        for shift in range(0, 35, 7):
            octet = self._block[self._at]
            self._at += 1
            number += (octet & 127) << shift
            if octet < 128:
                return number
        raise BadBlock("a number of more than five bytes")

    def _text(self) -> bytes:
        packed = self._block[self._at] & 0x80
        size = self._number(7)
        start, self._at = self._at, self._at + size
        if self._at > len(self._block):
            raise BadBlock("a block of header fields is cut off")
        text = self._block[start : self._at]
        return _unpacked(text) if packed else text


def _static(index: int) -> tuple[bytes, bytes]:
    if not 0 < index <= len(_STATIC):
        raise BadBlock(f"field {index} of a dynamic table, where none was agreed on")
    return _STATIC[index - 1]


def _unpacked(text: bytes) -> bytes:
    """Text out of its Huffman code."""
    unpacked = bytearray()
    code = bits = 0
    for octet in text:
        for shift in range(7, -1, -1):
            code, bits = code << 1 | octet >> shift & 1, bits + 1
            byte = _BYTES.get((bits, code))
            if byte is not None:
                unpacked.append(byte)
                code = bits = 0
            elif bits >= _LONGEST:
                raise BadBlock("text in an unknown code")
    if bits > 7 or code != (1 << bits) - 1:
        raise BadBlock("text that ends within a code")
    return bytes(unpacked)
