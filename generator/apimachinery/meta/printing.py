"""How Go prints values: the quotes, numbers and JSON that are in kube-apiserver's texts.

Sources: strconv.Quote (printable runes stay, the others are escaped), fmt's ``%v`` of a float64 (shortest
form, exponent below 1e-4 and from 1e6), encoding/json (sorted keys, ``<``, ``>`` and ``&`` escaped).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_SHORT = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}


@dataclass(frozen=True, slots=True)
class InOrder:
    """A value whose objects are printed with their keys in the order given: Go structs."""

    value: Any


@dataclass(frozen=True, slots=True)
class Printed:
    """A value of which only the print is known."""

    text: str


def go_value(value: Any) -> str:
    """Print a JSON value as a field error does: strings quoted, numbers plain, the rest as JSON."""
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, int | float) and isinstance(number := as_go(value), float):
        return go_float(number)
    if isinstance(value, InOrder):
        return go_struct_json(value.value)
    if isinstance(value, Printed):
        return value.text
    return go_json(value)


def go_quote(text: str) -> str:
    """Quote a string as ``%q``."""
    if not text.isprintable():
        return f'"{text.translate(_ESCAPES)}"'
    # Of what is printable only quotes and backslashes are escaped, as in JSON, whose encoder is 30 times as fast.
    # What is quoted may be as long as a request.
    return encode_basestring(text)


class _Escapes(dict[int, str]):
    """What is written for a code point; each is worked out once, of so many."""

    MOST = 10_000

    def __missing__(self, code: int) -> str:
        text = _escaped(chr(code))
        if len(self) < self.MOST:
            self[code] = text
        return text


_ESCAPES = _Escapes()


def _escaped(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    if 0xDC80 <= code <= 0xDCFF:  # stands for a byte that is not UTF-8 (PEP 383)
        return f"\\x{code - 0xDC00:02x}"
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def as_go(value: Any) -> Any:
    """A JSON value as Go's decoder holds it: an integer beyond int64 is a float."""
    if isinstance(value, int) and not INT64_MIN <= value <= INT64_MAX:
        return float(value)
    return value


def go_float(number: float) -> str:
    """Print a float64 as ``%v``."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    if number == 0:
        return "-0" if math.copysign(1, number) < 0 else "0"
    return shortest(number, -4, 6)


def shortest(number: float, low: int, high: int) -> str:
    """The shortest decimal that reads back as a finite ``number``.

    An exponent where it is below ``low`` or at ``high``.
    """
    digits, exponent = _digits(number)
    sign = "-" if number < 0 else ""
    if exponent < low or exponent >= high:
        mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    rest = digits[exponent + 1 :]
    return f"{sign}{whole}.{rest}" if rest else f"{sign}{whole}"


def _digits(number: float) -> tuple[str, int]:
    """The significant decimal digits of a number and the exponent of the first."""
    text = repr(abs(number))
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    exponent = len(whole) - 1 + int(power or 0)
    digits = whole + fraction
    stripped = digits.lstrip("0")
    exponent -= len(digits) - len(stripped)
    return stripped.rstrip("0") or "0", exponent


def go_json(value: Any) -> str:
    """Encode as Go's json.Marshal does a decoded value: compact, keys sorted, HTML characters escaped."""
    return html_escaped("".join(_json_pieces(value, by_name=True)))


def go_struct_json(value: Any, *, indent: int | None = None) -> str:
    """Encode with keys in the order given: a Go struct; on one line, or indented by so many spaces."""
    if indent is not None:
        return html_escaped(json.dumps(value, ensure_ascii=False, indent=indent))
    return html_escaped("".join(_json_pieces(value, by_name=False)))


def _json_pieces(value: Any, *, by_name: bool) -> Iterator[str]:
    if isinstance(value, dict):
        separator = "{"
        for name in sorted(value) if by_name else value:
            yield f"{separator}{json.dumps(name, ensure_ascii=False)}:"
            yield from _json_pieces(value[name], by_name=by_name)
            separator = ","
        yield "}" if value else "{}"
    elif isinstance(value, list):
        separator = "["
        for each in value:
            yield separator
            yield from _json_pieces(each, by_name=by_name)
            separator = ","
        yield "]" if value else "[]"
    elif isinstance(value, int | float) and isinstance(number := as_go(value), float):
        yield json_float(number)
    else:
        yield json.dumps(value, ensure_ascii=False)


def json_float(number: float) -> str:
    """A float as encoding/json writes it.

    An exponent below 1e-6 and from 1e21, with no zero before its digit.
    """
    if not math.isfinite(number):
        return "null"
    if number == 0:
        return "-0" if math.copysign(1, number) < 0 else "0"
    return shortest(number, -6, 21).replace("e-0", "e-")


def html_escaped(text: str) -> str:
    """JSON without the characters that mean something in HTML."""
    for char, escape in (
        ("<", r"\u003c"),
        (">", r"\u003e"),
        ("&", r"\u0026"),
        ("\u2028", r"\u2028"),
        ("\u2029", r"\u2029"),
    ):
        if char in text:
            text = text.replace(char, escape)
    return text


# Control characters of ASCII and Latin-1, line and paragraph separators, marks of the reading direction (Bidi_Control),
# and surrogates, which no terminal takes.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Write what could steer a terminal, or begin a line of a log, as escapes of Python: for text of others."""
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
