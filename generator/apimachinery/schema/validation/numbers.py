"""Numbers as Go sees them: an int64 where the JSON number is an integer that fits, else a float64.

Rules of kube-openapi's number validator: bounds are compared as integers for integers, ``multipleOf`` of
fractions allows for rounding, and a constraint that does not fit its own type is itself reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from apimachinery.meta.printing import go_float
from apimachinery.schema.node import Node
from apimachinery.schema.validation.faults import Fault, Rule

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_SAFE = float(2**53 - 1)
_EPSILON = 1e-9
_FLOAT32_MAX = 3.4028235677973366e38
_RANGES = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}


def as_go(number: int | float) -> int | float:
    """The number as Go's decoder holds it: an integer beyond int64 is a float."""
    if isinstance(number, int) and not INT64_MIN <= number <= INT64_MAX:
        return float(number)
    return number


def is_json_integer(number: float) -> bool:
    """Is a float an integer, but for rounding, and small enough to be exact."""
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
    """Is the number a multiple of the factor; the factor zero has every multiple."""
    if factor == 0:
        return True
    if isinstance(number, int):
        whole = int(factor)
        return whole == 0 or number % whole == 0
    quotient = 1 / factor * number if factor < 1 else number / factor
    return is_json_integer(quotient)


def number_faults(node: Node, number: int | float, path: str) -> Iterator[Fault]:
    """The faults of a number, in order: its range, multipleOf, minimum, maximum."""
    number = as_go(number)
    kind = node.types[0] if len(node.types) == 1 else ""
    yield from _range_fault(number, kind, node.format, "Checked", path)
    if node.multiple_of is not None:
        yield from _range_fault(node.multiple_of, kind, node.format, "MultipleOf", path)
        if node.multiple_of < 0:
            text = (
                f"factor MultipleOf declared for {path} must be positive: {_shown(number, node.multiple_of)}"
            )
            yield Fault(Rule.OTHER, path, text, node.multiple_of)
        elif not is_multiple(number, node.multiple_of):
            text = f"{path} in body should be a multiple of {_shown(number, node.multiple_of)}"
            yield Fault(Rule.OTHER, path, text, number)
    if node.minimum is not None:
        yield from _range_fault(node.minimum, kind, node.format, "Minimum boundary", path)
        bound = int(node.minimum) if isinstance(number, int) else node.minimum
        if number < bound or (node.exclusive_minimum and number == bound):
            words = "greater than" if node.exclusive_minimum else "greater than or equal to"
            yield Fault(Rule.OTHER, path, f"{path} in body should be {words} {_shown(number, bound)}", number)
    if node.maximum is not None:
        yield from _range_fault(node.maximum, kind, node.format, "Maximum boundary", path)
        bound = int(node.maximum) if isinstance(number, int) else node.maximum
        if number > bound or (node.exclusive_maximum and number == bound):
            words = "less than" if node.exclusive_maximum else "less than or equal to"
            yield Fault(Rule.OTHER, path, f"{path} in body should be {words} {_shown(number, bound)}", number)


def _shown(number: int | float, limit: Any) -> str:
    return str(int(limit)) if isinstance(number, int) else go_float(float(limit))


def _range_fault(number: int | float, kind: str, wanted: str, what: str, path: str) -> Iterator[Fault]:
    if not fits_range(number, kind, wanted):
        form = f"with format {wanted}" if wanted else "(default format)"
        yield Fault(Rule.PLAIN, path, f"{what} value must be of type {kind} {form} in {path}")
