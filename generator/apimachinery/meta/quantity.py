"""Resource quantities: ``100m``, ``1.5Gi``, ``2e3``.

Grammar and canonical form as resource.Quantity documents them: a signed decimal and a suffix (binary ``Ki``-``Ei``,
decimal ``n``-``E``, or an exponent). Canonical means no fraction digits, the largest suffix that loses nothing, and
the kind of suffix as it was written, save that binary ones below 1024 and with fractions turn decimal. Digits below
a nano are rounded up, away from zero; binary ones that are too big become the largest number of 64 bits. What is
written canonically except for a sign or zeros at its start stays as it is written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Context
from fractions import Fraction
from functools import lru_cache

QUANTITY = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?"
"""The form of a quantity, in the syntax that Python and RE2 share."""
_FORM = re.compile(
    r"(?P<sign>[+-]?)0*(?P<number>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<suffix>[eEinumkKMGTP]*[-+]?[0-9]*)",
    re.ASCII,
)
"""Wider than what is allowed, as Go reads it: a missing number is 0, and a suffix is looked at afterwards."""
_EXPONENT = re.compile(r"[eE][+-]?[0-9]+", re.ASCII)
_WRONG_FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_SUFFIX = "unable to parse quantity's suffix"
_WRONG_NUMBER = "unable to parse numeric part of quantity"
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_NAMES = {power: name for name, power in _BINARY.items()}
_DECIMAL_NAMES = {power: name for name, power in _DECIMAL.items()}
_NANO = Fraction(1, 10**9)
_LARGEST = 2**63 - 1
_EXACT = Context(prec=60)
_MOST_DIGITS = 18
"""Digits that a number of 64 bits has room for in any case."""
_MOST_POWER = 1000
"""Powers of ten beyond are taken for this one, as nobody means them and they would fill the memory."""
LONGEST_KEPT = 64
"""Longer texts are reread each time, so that what is remembered stays small."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A parsed quantity: its exact ``value`` and the kind of suffix (``binary``, ``decimal`` or ``exponent``).

    ``written`` is the text that it keeps, empty where it is spelled again.
    """

    value: Fraction
    form: str
    written: str = field(default="", compare=False)

    def __str__(self) -> str:
        if self.written:
            return self.written
        form = self.form
        if form == "binary" and (-1024 < self.value < 1024 or self.value.denominator != 1):
            form = "decimal"
        if not self.value:
            return "0"
        if form == "binary":
            number, power = int(self.value), 0
            while number % 1024 == 0 and power < 6:
                number, power = number // 1024, power + 1
            return f"{number}{_BINARY_NAMES.get(power, '')}"
        number, power = int(self.value / _NANO), -9
        while number % 1000 == 0:
            number, power = number // 1000, power + 3
        if form == "exponent":
            return f"{number}e{power}" if power else str(number)
        return f"{number}{_DECIMAL_NAMES.get(power, '')}"


def parse_quantity(text: str) -> Quantity:
    """The quantity that ``text`` names. Raises ``ValueError`` where it names none."""
    return _parsed(text) if len(text) < LONGEST_KEPT else _parsed.__wrapped__(text)


# The same few quantities come again and again: requests and limits of containers made together.
@lru_cache(maxsize=4096)
def _parsed(text: str) -> Quantity:
    match = _FORM.fullmatch(text)
    if match is None or not text or len(text) > 100:
        raise ValueError(_WRONG_FORM)
    suffix, number, fraction = match["suffix"], match["number"] or "0", match["fraction"] or ""
    form, power = _meaning(suffix)
    digits = number + fraction
    sign = -1 if match["sign"] == "-" else 1
    if form == "binary":
        room = -1 if fraction else 14 - len(number) - power * 3  # ten powers of two are three digits
        scale = Fraction(1024) ** power
    else:
        room = _MOST_DIGITS - len(digits) if power - len(fraction) >= -9 else -1
        scale = Fraction(10) ** (power - len(fraction))
    value = int(digits) * scale
    if room >= 0 and value.numerator <= _LARGEST * value.denominator:
        return Quantity(sign * value, form, text if _keeps(digits, power, len(fraction), form) else "")
    if not match["number"] and not fraction and "0" not in text[: match.start("suffix")]:
        raise ValueError(_WRONG_NUMBER)
    if form == "binary":
        scale /= 10 ** len(fraction)
    value = _in_nanos(int(digits) * scale)
    if form == "binary":
        value = min(value, Fraction(_LARGEST))
        form = "decimal" if 0 < value < 1 else form
    return Quantity(sign * value, form)


def _meaning(suffix: str) -> tuple[str, int]:
    """The kind of a suffix and its power, of 1024 or of ten."""
    if suffix in _BINARY:
        return "binary", _BINARY[suffix]
    if suffix in _DECIMAL:
        return "decimal", _DECIMAL[suffix]
    if not _EXPONENT.fullmatch(suffix) or abs(int(suffix[1:])) >= 2**63:
        raise ValueError(_WRONG_SUFFIX)
    return "exponent", max(-_MOST_POWER, min(int(suffix[1:]), _MOST_POWER))


def _keeps(digits: str, power: int, places: int, form: str) -> bool:
    """Whether a number is written well enough to stay as it is."""
    if form == "binary":
        return int(digits) & 7 != 0
    return (power - places) % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


def canonical(text: str | int | float) -> str:
    """The canonical spelling of a quantity. Raises ``ValueError`` where it is none."""
    written = text.strip() if isinstance(text, str) else _plain(text)
    return _spelt(written) if len(written) < LONGEST_KEPT else _spelt.__wrapped__(written)


@lru_cache(maxsize=4096)
def _spelt(text: str) -> str:
    return str(parse_quantity(text))


def _plain(number: int | float) -> str:
    return str(number) if isinstance(number, int) else format(_EXACT.create_decimal(repr(number)), "f")


def _in_nanos(value: Fraction) -> Fraction:
    """``value``, rounded up to whole nanos."""
    return Fraction(-(-value.numerator * 10**9 // value.denominator), 10**9)
