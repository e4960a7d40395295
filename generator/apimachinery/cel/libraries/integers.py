"""Integers of 64 bits, with and without a sign: Python has no bounds, so each result is checked."""

from __future__ import annotations

from apimachinery.cel.values.errors import EvalError
from apimachinery.cel.values.values import (
    INT_MIN,
    UINT_MAX,
    Uint,
)

INT_OVERFLOW = "integer overflow"
UINT_OVERFLOW = "unsigned integer overflow"


def check_int(value: int) -> int:
    """``value`` if it is an int64."""
    if -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
        return value
    raise EvalError(INT_OVERFLOW)


def check_uint(value: int) -> Uint:
    """``value`` as a uint64."""
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise EvalError(UINT_OVERFLOW)


def divide(a: int, b: int) -> int:
    """Divides toward zero, as Go does. Raises EvalError for 0 and where the quotient has no room."""
    if b == 0:
        raise EvalError("division by zero")
    quotient = abs(a) // abs(b)
    return check_int(-quotient if (a < 0) != (b < 0) else quotient)


def modulo(a: int, b: int) -> int:
    """The remainder with the sign of ``a``, as in Go. Raises EvalError for 0 and for the one quotient without room."""
    if b == 0:
        raise EvalError("modulus by zero")
    if a == INT_MIN and b == -1:
        raise EvalError(INT_OVERFLOW)
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def divide_uint(a: int, b: int) -> Uint:
    """Raises EvalError for 0."""
    if b == 0:
        raise EvalError("division by zero")
    return Uint(int(a) // int(b))


def modulo_uint(a: int, b: int) -> Uint:
    """Raises EvalError for 0."""
    if b == 0:
        raise EvalError("modulus by zero")
    return Uint(int(a) % int(b))
