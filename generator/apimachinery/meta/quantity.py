"""Resource quantities: ``100m``, ``1.5Gi``, ``2e3``.

Grammar and canonical form as resource.Quantity documents them: a signed decimal and a suffix (binary ``Ki``-``Ei``,
decimal ``n``-``E``, or an exponent). Canonical means no fraction digits, the largest suffix that loses nothing, and
the kind of suffix as it was written, save that binary ones below 1024 and with fractions turn decimal. Digits below
a nano are rounded up, away from zero; what is too big becomes the largest number of 64 bits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_UP, Context, Decimal
from fractions import Fraction
from functools import lru_cache

QUANTITY = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?"
"""The form of a quantity, in the syntax that Python and RE2 share."""
_FORM = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,9})?"
)
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_NAMES = {power: name for name, power in _BINARY.items()}
_DECIMAL_NAMES = {power: name for name, power in _DECIMAL.items()}
_NANO = Fraction(1, 10**9)
_LARGEST = 2**63 - 1
_EXACT = Context(prec=60)
LONGEST_KEPT = 64
"""Longer texts are read anew each time, so that what is remembered stays small."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A parsed quantity: its exact ``value`` and the kind of suffix (``binary``, ``decimal`` or ``exponent``)."""

    value: Fraction
    form: str

    def __str__(self) -> str:
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
        while number % 1000 == 0 and (power < 18 or form == "exponent"):
            number, power = number // 1000, power + 3
        if form == "exponent":
            return f"{number}e{power}" if power else str(number)
        return f"{number}{_DECIMAL_NAMES[power]}"


def parse_quantity(text: str) -> Quantity:
    """The quantity that ``text`` names. Raises ``ValueError`` where it names none."""
    return _parsed(text) if len(text) < LONGEST_KEPT else _parsed.__wrapped__(text)


# The same few quantities come again and again: requests and limits of containers made together.
@lru_cache(maxsize=4096)
def _parsed(text: str) -> Quantity:
    match = _FORM.fullmatch(text)
    if match is None or len(text) > 100:
        raise ValueError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    suffix = match["suffix"] or ""
    number = Fraction(match["number"])
    if suffix in _BINARY:
        form, scale = "binary", Fraction(1024) ** _BINARY[suffix]
    elif suffix in _DECIMAL:
        form, scale = "decimal", Fraction(10) ** _DECIMAL[suffix]
    else:
        power = int(suffix[1:])
        if abs(power) > 400:  # far beyond both limits: the largest number, or rounded up to one nano
            power = 400 if power > 0 else -400
        form, scale = "exponent", Fraction(10) ** power
    return Quantity(_limited(number * scale), form)


def canonical(text: str | int | float) -> str:
    """The canonical spelling of a quantity. Raises ``ValueError`` where it is none."""
    written = text.strip() if isinstance(text, str) else _plain(text)
    return _spelt(written) if len(written) < LONGEST_KEPT else _spelt.__wrapped__(written)


@lru_cache(maxsize=4096)
def _spelt(text: str) -> str:
    return str(parse_quantity(text))


def _plain(number: int | float) -> str:
    return str(number) if isinstance(number, int) else format(_EXACT.create_decimal(repr(number)), "f")


def _limited(value: Fraction) -> Fraction:
    nanos = value / _NANO
    if nanos.denominator != 1:
        whole = int(Decimal(nanos.numerator // nanos.denominator).to_integral_value(ROUND_UP))
        nanos = Fraction(whole + (1 if value > 0 else 0))
    return max(min(nanos * _NANO, Fraction(_LARGEST)), Fraction(-_LARGEST))
