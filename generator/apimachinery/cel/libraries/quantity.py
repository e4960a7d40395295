"""Quantities: ``1500m``, ``2Gi``, ``3e9``.

A quantity is exact. ``isInteger`` and ``asInteger`` look, as Kubernetes does, at how it is written as well: a
quantity held with decimals (``1000m``) or as an exact decimal (``1.5Gi``) is none, though its value may be whole.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, ClassVar

from apimachinery.cel.libraries.declarations import Library
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import EvalError
from apimachinery.cel.values.values import INT_MAX, INT_MIN, Opaque

_FORM = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_MAX = Fraction(INT_MAX)
_MOST_POWER = 1000
"""Powers of ten beyond are taken for this one, as they would fill the memory."""
WRONG_FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
WRONG_SUFFIX = "unable to parse quantity's suffix"


class CelQuantity(Opaque):
    """``kubernetes.Quantity``. ``scale`` is the power of ten it is held in, None where it is held exactly."""

    __slots__ = ("amount", "scale")
    type_name: ClassVar[str] = "kubernetes.Quantity"

    def __init__(self, amount: Fraction, scale: int | None):
        self.amount = amount
        self.scale = scale

    def equals(self, other: Any) -> bool:
        """By value."""
        return bool(self.amount == other.amount)

    def integer(self) -> int | None:
        """The value as an int64, or None."""
        if self.scale is None or self.scale < 0:
            return None
        value = int(self.amount)
        return value if INT_MIN <= value <= INT_MAX else None


def parse_quantity(text: str) -> CelQuantity:
    """Read a quantity; EvalError. A missing number is 0."""
    if text == "0":
        return CelQuantity(Fraction(0), 0)
    found = _FORM.fullmatch(text)
    if not found or not text:
        raise EvalError(WRONG_FORM)
    sign, whole, decimals, suffix = found[1], found[2] or "", found[3] or "", found[4]
    if len(whole) + len(decimals) > 4000:
        raise EvalError(WRONG_FORM)
    whole = whole.lstrip("0")
    digits = int(whole + decimals or "0")
    binary = _BINARY.get(suffix)
    if binary is not None:
        amount = Fraction(digits, 10 ** len(decimals)) * 2**binary
        simple = not decimals and 15 - len(whole) - int(binary * 3 / 10) - 1 >= 0
        scale: int | None = 0 if simple else None
    else:
        power = _exponent(suffix)
        amount = Fraction(digits) * Fraction(10) ** (power - len(decimals))
        simple = len(whole) + len(decimals) <= 18 and power - len(decimals) >= -9
        scale = power - len(decimals) if simple else None
    if binary is not None and amount > _MAX:
        amount, scale = _MAX, None
    if scale is None:
        # Held exactly: rounded up to nano.
        nanos = amount * 10**9
        amount = Fraction(-(-nanos.numerator // nanos.denominator), 10**9)
    return CelQuantity(-amount if sign == "-" else amount, scale)


def _exponent(suffix: str) -> int:
    power = _DECIMAL.get(suffix)
    if power is not None:
        return power
    if suffix[:1] in ("e", "E") and re.fullmatch(r"[-+]?[0-9]{1,40}", suffix[1:], re.ASCII):
        power = int(suffix[1:])
        if abs(power) <= INT_MAX:
            return max(-_MOST_POWER, min(power, _MOST_POWER))
    raise EvalError(WRONG_SUFFIX)


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except EvalError:
        return False
    return True


def _sign(q: CelQuantity) -> int:
    return (q.amount > 0) - (q.amount < 0)


def _as_integer(q: CelQuantity) -> int:
    value = q.integer()
    if value is None:
        raise EvalError("cannot convert value to integer")
    return value


def _sum(a: CelQuantity, b: CelQuantity | int, sign: int) -> CelQuantity:
    other = CelQuantity(Fraction(b), 0) if isinstance(b, int) else b
    scale = None if a.scale is None or other.scale is None else min(a.scale, other.scale)
    return CelQuantity(a.amount + sign * other.amount, scale)


def _compare(a: CelQuantity, b: CelQuantity) -> int:
    return (a.amount > b.amount) - (a.amount < b.amount)


def quantities() -> Library:
    """``quantity``, ``isQuantity`` and arithmetic."""
    lib = Library("quantity")
    lib.declare_type("quantity", t.object_type("kubernetes.Quantity"), CelQuantity)
    lib.overload("quantity", "string_to_quantity", "(string) quantity", parse_quantity)
    lib.overload("isQuantity", "is_quantity_string", "(string) bool", _is_quantity)
    lib.overload("sign", "quantity_sign", "(quantity) int", _sign)
    lib.overload(
        "isGreaterThan",
        "quantity_is_greater_than",
        "quantity.(quantity) bool",
        lambda a, b: a.amount > b.amount,
    )
    lib.overload(
        "isLessThan", "quantity_is_less_than", "quantity.(quantity) bool", lambda a, b: a.amount < b.amount
    )
    lib.overload("compareTo", "quantity_compare_to", "quantity.(quantity) int", _compare)
    lib.overload("asApproximateFloat", "quantity_get_float", "quantity.() double", lambda q: float(q.amount))
    lib.overload("asInteger", "quantity_get_int", "quantity.() int", _as_integer)
    lib.overload("isInteger", "quantity_is_integer", "quantity.() bool", lambda q: q.integer() is not None)
    for name, sign in (("add", 1), ("sub", -1)):
        lib.overload(
            name, f"quantity_{name}", "quantity.(quantity) quantity", lambda a, b, s=sign: _sum(a, b, s)
        )
        lib.overload(
            name, f"quantity_{name}_int", "quantity.(int) quantity", lambda a, b, s=sign: _sum(a, b, s)
        )
    return lib
