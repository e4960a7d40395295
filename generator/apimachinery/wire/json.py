"""JSON bodies: decoded fast, and where that fails explained in the words of Go's decoder.

msgspec decodes; only a document it refuses is scanned again, by ``syntax_fault``, which follows the state
machine of Go's ``encoding/json`` scanner (RFC 8259) to say at which character the document ends to be JSON.
Invalid UTF-8 becomes U+FFFD, as in Go. Nesting is bounded by the interpreter's recursion limit.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from itertools import islice
from json.decoder import JSONArray, JSONObject  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any, cast

import msgspec

from apimachinery.meta.printing import json_float
from apimachinery.wire.json_parts import STEP_BYTES, decode_in_parts

_decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode


_FLOAT = rb"-?(?:\d+[.eE]|\d{19})"
"""What begins a number that Go may write otherwise; texts may hold it too."""
_FLOAT_FIRST = re.compile(_FLOAT).match
# One search for each sign before a number: a pattern that begins with a literal is found many times faster.
_FLOAT_AFTER = tuple(re.compile(sign + _FLOAT).search for sign in (b":", b",", rb"\["))
_LONGEST_FLOAT = 32
"""More than what they match has: a sign, a minus, 19 digits."""
_NUMBER = re.compile(rb'((?:[^"0-9-]|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+)(-?\d[\d.eE+-]*+)?')


def with_go_numbers(data: bytes) -> bytes:
    """A document as ``encode`` makes it, its numbers as Go writes them: a double without a fraction is whole, and one
    from 1e21 or below 1e-6 has an exponent; an integer beyond 64 bits is a double."""
    # Searched in steps, since a search lets no other thread run.
    if _FLOAT_FIRST(data) or any(
        search(data, low, low + STEP_BYTES + _LONGEST_FLOAT)
        for low in range(0, len(data), STEP_BYTES)
        for search in _FLOAT_AFTER
    ):
        return _NUMBER.sub(_go_number, data)
    return data


_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode


def encode_as_go(value: Any) -> bytes:
    """The document of a value, its numbers as Go writes them (``with_go_numbers``)."""
    data = encode(value)
    return with_go_numbers(data) if may_have_doubles(value) else data


def copied_as_go(value: Any) -> Any:
    """What ``encode_as_go`` and ``decode`` make of a value."""
    try:
        packed = _pack(value)
    # An integer beyond 64 bits cannot be packed, and needs the slow way anyway.
    except OverflowError:
        packed = _PACKED_LARGE
    if _PACKED_DOUBLE in packed or _PACKED_LARGE in packed:
        return decode(with_go_numbers(encode(value)))
    # MessagePack packs and unpacks faster than JSON, and keeps integers.
    return _unpack(packed)


def may_have_doubles(value: Any) -> bool:
    """Whether a value may hold a double, or an integer beyond 64 bits. Errs on yes only."""
    # MessagePack tells in a byte before each number what it is. To look for two bytes takes a tenth of what looking for
    # such numbers in the document takes; texts may have these bytes too.
    try:
        packed = _pack(value)
    except OverflowError:
        return True
    return _PACKED_DOUBLE in packed or _PACKED_LARGE in packed


_PACKED_DOUBLE, _PACKED_LARGE = b"\xcb", b"\xcf"


def _go_number(found: re.Match[bytes]) -> bytes:
    number = found[2] or b"0"  # none at the end, where it must match too: it would start again within a text
    if number.lstrip(b"-").isdigit() and -(2**63) <= int(number) < 2**63:
        return found[0]
    return found[1] + json_float(float(number)).encode()


def indented(data: bytes) -> bytes:
    """A JSON document with two spaces for each level, as Go indents one; what is no document stays as it is."""
    try:
        return msgspec.json.format(data, indent=2)
    except msgspec.DecodeError:
        return data


class DecodeFault(ValueError):
    """A body that cannot be read; the text is what kube-apiserver says of it."""


class InnerFault(DecodeFault):
    """An object whose apiVersion and kind can be read, and the rest cannot."""

    def __init__(self, text: str, api_version: str, kind: str) -> None:
        super().__init__(text)
        self.version = api_version.rpartition("/")[2]
        self.kind = kind


LONGEST_INTEGER = 4000


class NumberFault(DecodeFault):
    """A number that is not a double; everything around it can be read."""


def decode(data: bytes) -> Any:
    """The value of a JSON document. Raises DecodeFault, for a number beyond a double NumberFault."""
    try:
        return _decode(data) if len(data) <= LARGE_BYTES else decode_in_parts(data)
    except RecursionError:
        raise DecodeFault("exceeded max depth") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    if fault := syntax_fault(data):
        raise DecodeFault(fault)
    try:
        # What is left is bad text (broken UTF-8, or half of a surrogate pair written as an escape) or a huge number.
        text = _LONE_SURROGATE.sub(r"\\ufffd", data.decode("utf-8", "replace"))
        try:
            return _decode(text)
        except msgspec.DecodeError as fault:
            json.loads(text, parse_float=_double, parse_int=whole_number)
            raise DecodeFault(str(fault)) from None
    except RecursionError:
        raise DecodeFault("exceeded max depth") from None


def _in_python(decoder: Any) -> json.JSONDecoder:
    """The decoder of json without its parts in C, which let no other thread run meanwhile."""
    decoder.parse_object, decoder.parse_array = JSONObject, JSONArray
    decoder.scan_once = py_make_scanner(decoder)
    return cast(json.JSONDecoder, decoder)


_decode_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode


STEP = 2_000
"""So many members of an object or array are encoded at once, fewer where they are large..."""
STEPS_DEPTH = 4
"""...where they lie no deeper than this."""
_FIRST_STEP = 10


def encode_in_steps(value: Any, depth: int = STEPS_DEPTH) -> bytes:
    """The bytes of a large value, encoded a part at a time, as the encoder lets no other thread run meanwhile."""
    kind = type(value)
    if not depth or (kind is not dict and kind is not list) or not value:
        return encode(value)
    if kind is list:
        if len(value) > STEP:
            parts = _encoded_parts(iter(value), list)
        else:
            parts = [encode_in_steps(item, depth - 1) for item in value]
        return b"[%b]" % b",".join(parts)
    if len(value) > STEP:
        parts = _encoded_parts(iter(value.items()), dict)
    else:
        parts = [
            b"%b:%b" % (encode(str(key)), encode_in_steps(item, depth - 1)) for key, item in value.items()
        ]
    return b"{%b}" % b",".join(parts)


def _encoded_parts(members: Iterator[Any], gather: Callable[[Iterator[Any]], Any]) -> list[bytes]:
    """Some members at a time, as many as the last ones say make ``STEP_BYTES``."""
    parts: list[bytes] = []
    step = _FIRST_STEP
    while part := gather(islice(members, step)):
        # Without the brackets or braces around them.
        parts.append(encode(part)[1:-1])
        step = max(1, min(STEP, step * STEP_BYTES // len(parts[-1])))
    return parts


ELEMENTS_BYTES = 1 << 20


def elements(items: bytes) -> tuple[int, Iterator[Any]]:
    """How many values there are between the brackets of a JSON array, and the values. Each is made when it is asked
    for: a long array is never in memory whole. Nor is it looked through at once, which would let no other thread run:
    where a part of it is an array by itself, the end of the part is between two values. Raises DecodeFault."""
    found: list[msgspec.Raw] = []
    low = 0
    while low < len(items):
        step = ELEMENTS_BYTES
        while True:
            high = items.find(b",{", low + step)
            try:
                # A wrong guess ends inside a value and is refused; a longer part is tried then.
                found += _decode_elements(b"[%b]" % items[low : high if high >= 0 else None])
                break
            except msgspec.DecodeError as fault:  # it ends inside a value, maybe in a text
                if high < 0:
                    raise DecodeFault(str(fault)) from None
                step *= 2
        low = high + 1 if high >= 0 else len(items)
    return len(found), (decode(bytes(element)) for element in found)


def _double(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise NumberFault(f"json: cannot unmarshal number {text} into Go value of type float64")
    return value


def whole_number(text: str) -> int | float:
    """An integer; Python reads none of more than 4,300 digits, and what is that large is not a double either. Raises
    NumberFault."""
    return int(text) if len(text) <= LONGEST_INTEGER else _double(text)


LARGE_BYTES = 1 << 18


def decode_pairs(
    data: bytes, as_object: Callable[[list[tuple[str, Any]]], Any], as_integer: Callable[[str], Any]
) -> Any:
    """A good document where an object is what ``as_object`` makes of its members, and an integer what ``as_integer``
    makes of its text. A large one is read by a decoder in Python: that in C lets no other thread run meanwhile."""
    decoder = json.JSONDecoder(object_pairs_hook=as_object, parse_int=as_integer)
    if len(data) > LARGE_BYTES:
        decoder = _in_python(decoder)
    return decoder.decode(data.decode("utf-8", "replace"))


def decode_merging(data: bytes) -> Any:
    """A good document where equal keys are joined, objects member by member: what reading into a struct does."""
    return decode_pairs(data, _joined, whole_number)


def _joined(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        old = found.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            found[key] = _joined([*old.items(), *value.items()])
        else:
            found[key] = value
    return found


def decode_first(data: bytes) -> Any:
    """A good document where the first of equal keys counts."""
    # The last pair wins in a dict, so the order is reversed.
    return decode_pairs(data, lambda pairs: dict(reversed(pairs)), whole_number)


_LONE_SURROGATE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_SPACE = re.compile(rb"[ \t\r\n]*")
_STRING_RUN = re.compile(rb'[^"\\\x00-\x1f]*')
_HEX = frozenset(b"0123456789abcdefABCDEF")
MAX_DEPTH = 10_000
_END = "unexpected end of JSON input"


class _Fault(Exception):
    pass


def syntax_fault(data: bytes) -> str:
    """Why ``data`` is not a JSON document, as Go says it; empty where its syntax is good."""
    try:
        _Scan(data).document()
    except _Fault as fault:
        return str(fault)
    return ""


class _Scan:
    """One document, read without recursion."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    def document(self) -> None:
        open_: list[int] = []
        wants_value = True
        while True:
            if wants_value:
                char = self._next("looking for beginning of value")
                if char in b"{[":
                    open_.append(char)
                    # Go's limit, which is checked without recursion here.
                    if len(open_) > MAX_DEPTH:
                        raise _Fault("exceeded max depth")
                    closing = b"}" if char == ord("{") else b"]"
                    if self._peek() == closing:
                        self.place += 1
                        open_.pop()
                    elif char == ord("{"):
                        self._key("looking for beginning of object key string")
                        continue
                    else:
                        continue
                else:
                    self._scalar(char)
                wants_value = False
            if not open_:
                if (rest := self._peek()) != b"":
                    raise self._bad(rest[0], "after top-level value")
                return
            in_object = open_[-1] == ord("{")
            char = self._next("after object key:value pair" if in_object else "after array element")
            if char == ord(","):
                if in_object:
                    self._key("looking for beginning of object key string")
                wants_value = True
            elif char == (ord("}") if in_object else ord("]")):
                open_.pop()
            else:
                raise self._bad(char, "after object key:value pair" if in_object else "after array element")

    def _peek(self) -> bytes:
        found = _SPACE.match(self.data, self.place)
        self.place = found.end() if found else self.place
        return self.data[self.place : self.place + 1]

    def _next(self, context: str) -> int:
        found = self._peek()
        if not found:
            raise _Fault(_END)
        self.place += 1
        return found[0]

    def _bad(self, char: int, context: str) -> _Fault:
        return _Fault(f"invalid character {_quoted(char)} {context}")

    def _key(self, context: str) -> None:
        char = self._next(context)
        if char != ord('"'):
            raise self._bad(char, context)
        self._string()
        char = self._next("after object key")
        if char != ord(":"):
            raise self._bad(char, "after object key")

    def _scalar(self, char: int) -> None:
        if char == ord('"'):
            self._string()
        elif char in b"tfn":
            word = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}[char]
            for index, wanted in enumerate(word[1:], 1):
                if self._one() != wanted:
                    bad = self.data[self.place - 1]
                    raise self._bad(bad, f"in literal {word.decode()} (expecting {_quoted(word[index])})")
        elif char in b"-0123456789":
            self._number(char)
        else:
            raise self._bad(char, "looking for beginning of value")

    def _one(self) -> int:
        if self.place >= len(self.data):
            raise _Fault(_END)
        self.place += 1
        return self.data[self.place - 1]

    def _string(self) -> None:
        while True:
            found = _STRING_RUN.match(self.data, self.place)
            self.place = found.end() if found else self.place
            char = self._one()
            if char == ord('"'):
                return
            if char != ord("\\"):
                raise self._bad(char, "in string literal")
            char = self._one()
            if char == ord("u"):
                for _ in range(4):
                    if (digit := self._one()) not in _HEX:
                        raise self._bad(digit, "in \\u hexadecimal character escape")
            elif char not in b'"\\/bfnrt':
                raise self._bad(char, "in string escape code")

    def _number(self, char: int) -> None:
        if char == ord("-"):
            char = self._one()
            if char not in b"0123456789":
                raise self._bad(char, "in numeric literal")
        if char != ord("0"):
            self._digits()
        if self.data[self.place : self.place + 1] == b".":
            self.place += 1
            if (char := self._one()) not in b"0123456789":
                raise self._bad(char, "after decimal point in numeric literal")
            self._digits()
        if self.data[self.place : self.place + 1] in (b"e", b"E"):
            self.place += 1
            char = self._one()
            if char in b"+-":
                char = self._one()
            if char not in b"0123456789":
                raise self._bad(char, "in exponent of numeric literal")
            self._digits()

    def _digits(self) -> None:
        while self.data[self.place : self.place + 1].isdigit():
            self.place += 1


def _quoted(char: int) -> str:
    """A character as Go's quoteChar shows it."""
    if char == ord("'"):
        return r"'\''"
    if char == ord('"'):
        return "'\"'"
    text = chr(char)
    if 0x20 <= char < 0x7F:
        return f"'{text}'" if text != "\\" else r"'\\'"
    short = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r"}
    if char in short:
        return f"'\\{short[char]}'"
    return (
        f"'{text}'"
        if char >= 0xA1 and char != 0xAD
        else f"'\\x{char:02x}'"
        if char < 0x80
        else f"'\\u{char:04x}'"
    )


def type_name(value: Any) -> str:
    """What Go's decoder calls a JSON value: ``array``, ``bool``, ``number``, ``object``, ``string``."""
    if isinstance(value, bool):
        return "bool"
    for kind, name in ((str, "string"), (list, "array"), (dict, "object")):
        if isinstance(value, kind):
            return name
    return "number"
