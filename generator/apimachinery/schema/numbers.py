"""Numbers as Go sees them: an int64 where the JSON number is an integer that fits, else a float64."""

from __future__ import annotations

import math

from apimachinery.meta.printing import INT64_MAX, INT64_MIN

_SAFE = float(2**53 - 1)
_EPSILON = 1e-9
_FLOAT32_MAX = 3.4028235677973366e38
_RANGES = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}


def is_json_integer(number: float) -> bool:
    """Is a float an integer, except for rounding, and small enough to be exact."""
    if not -_SAFE <= number <= _SAFE:
        return False
    if number == int(number):
        return True
    if number < 0:  # Go converts through uint64, which no negative fraction survives
        return False
    whole = float(int(number))
    if whole == 0:
        return False
    return abs(number - whole) / (abs(number) + abs(whole)) < _EPSILON


def fits_range(number: int | float, kind: str, wanted: str) -> bool:
    """Can the number be held by the schema's type and format without loss."""
    if kind == "integer":
        low, high = _RANGES.get(wanted, (INT64_MIN, INT64_MAX))
        if isinstance(number, float):
            return number == math.floor(number) and low <= number <= high if math.isfinite(number) else False
        return low <= number <= high
    if wanted in ("float", "float32"):
        return abs(number) < _FLOAT32_MAX
    return True


def is_multiple(number: int | float, factor: int | float) -> bool:
    """Is the number a multiple of a factor above zero; of two integers exactly, else allowing for rounding."""
    if isinstance(number, int) and isinstance(factor, int):
        return number % factor == 0
    quotient = 1 / factor * number if factor < 1 else number / factor
    return is_json_integer(quotient)
