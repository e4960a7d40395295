"""The values of literal tokens: numbers, strings and bytes with their escapes."""

from __future__ import annotations

import re

from apimachinery.cel.values.values import INT_MAX, INT_MIN, UINT_MAX, Uint


class LiteralError(ValueError):
    """A literal that the lexer took and whose value does not exist; the text is the message."""


MAX_DIGITS = 1000
"""Longer numbers are not worth reading."""


def int_value(text: str) -> int:
    """Value of ``12``, ``-0x1f``."""
    if len(text) > MAX_DIGITS:
        raise LiteralError("invalid int literal")
    value = int(text, 16) if "0x" in text else int(text)
    if not INT_MIN <= value <= INT_MAX:
        raise LiteralError("invalid int literal")
    return value


def uint_value(text: str) -> Uint:
    """Value of ``12u``, ``0x1fU``."""
    digits = text[:-1]
    if len(digits) > MAX_DIGITS:
        raise LiteralError("invalid uint literal")
    value = int(digits, 16) if digits.startswith("0x") else int(digits)
    if value > UINT_MAX:
        raise LiteralError("invalid uint literal")
    return Uint(value)


def double_value(text: str) -> float:
    """Value of ``1.5e3``."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise LiteralError("invalid double literal")
    return value


_ESCAPE = re.compile(
    r"\\(?:([bfnrtav\"'\\?`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))"
)
_SIMPLE = dict(zip("abfnrtv\"'\\?`", "\a\b\f\n\r\t\v\"'\\?`", strict=True))


def _body(text: str) -> tuple[str, bool]:
    """What is between the quotes, line ends made one, and whether it is raw."""
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    quotes = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
    inner = text[quotes:-quotes]
    if "\r" in inner:
        inner = inner.replace("\r\n", "\n").replace("\r", "\n")
    return inner, raw


def string_value(text: str) -> str:
    """Value of a string literal in any of its forms."""
    inner, raw = _body(text)
    if raw or "\\" not in inner:
        return inner

    def one(found: re.Match[str]) -> str:
        simple, hexa, short, long, octal = found.groups()
        if simple:
            return _SIMPLE[simple]
        code = int(octal, 8) if octal else int(hexa or short or long, 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise LiteralError("invalid unicode code point")
        return chr(code)

    return _ESCAPE.sub(one, inner)


def bytes_value(text: str) -> bytes:
    """Value of a bytes literal; hexadecimal and octal escapes are bytes, all else is UTF-8."""
    inner, raw = _body(text[1:])
    if raw or "\\" not in inner:
        return inner.encode("utf-8", "surrogatepass")
    out = bytearray()
    at = 0
    for found in _ESCAPE.finditer(inner):
        out += inner[at : found.start()].encode("utf-8", "surrogatepass")
        simple, hexa, short, long, octal = found.groups()
        if simple:
            out += _SIMPLE[simple].encode()
        elif short or long:
            raise LiteralError("unable to unescape string")
        else:
            out.append(int(octal, 8) if octal else int(hexa, 16))
        at = found.end()
    out += inner[at:].encode("utf-8", "surrogatepass")
    return bytes(out)
