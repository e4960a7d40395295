"""Conversions between CEL types, ``int("1")`` and its kin, with what each refuses."""

from __future__ import annotations

import math
from typing import Any

from apimachinery.cel.libraries.declarations import Library
from apimachinery.cel.libraries.integers import INT_OVERFLOW, UINT_OVERFLOW, check_int, check_uint
from apimachinery.cel.values.errors import EvalError
from apimachinery.cel.values.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Duration,
    Timestamp,
    TypeValue,
    Uint,
    go_double,
    type_name,
)


def _int_of_double(value: float) -> int:
    if value != value or value in (math.inf, -math.inf) or not -(2.0**63) < value < 2.0**63:
        raise EvalError(INT_OVERFLOW)
    return int(value)


def _uint_of_double(value: float) -> Uint:
    if value != value or not 0 <= value < 2.0**64:
        raise EvalError(UINT_OVERFLOW)
    return Uint(int(value))


_DIGITS = frozenset("0123456789")


def _parse_failure(kind: str, text: str) -> EvalError:
    return EvalError(f"type conversion error from 'string' to '{kind}'")


def _int_of_string(text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if digits and len(digits) < 25 and _DIGITS.issuperset(digits):
        value = int(text)
        if INT_MIN <= value <= INT_MAX:
            return value
    raise _parse_failure("int", text)


def _uint_of_string(text: str) -> Uint:
    if text and len(text) < 25 and _DIGITS.issuperset(text):
        value = int(text)
        if value <= UINT_MAX:
            return Uint(value)
    raise _parse_failure("uint", text)


def _double_of_string(text: str) -> float:
    plain = text.replace("_", "x").lower()
    unsigned = plain.lstrip("+-")
    if unsigned in ("nan", "inf", "infinity") or (unsigned and unsigned[0] in "0123456789."):
        try:
            value = float.fromhex(plain) if unsigned.startswith("0x") else float(plain)
        except (ValueError, OverflowError):
            raise _parse_failure("double", text) from None
        if value not in (math.inf, -math.inf) or unsigned.startswith("inf"):
            return value
    raise _parse_failure("double", text)


_BOOLS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def _bool_of_string(text: str) -> bool:
    try:
        return _BOOLS[text]
    except KeyError:
        raise _parse_failure("bool", text) from None


def _string_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvalError("invalid UTF-8 in bytes, cannot convert to string") from None


def _bytes_of_string(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


def _timestamp_of_string(text: str) -> Timestamp:
    stamp = Timestamp.parse(text)
    if stamp is None:
        raise _parse_failure("google.protobuf.Timestamp", text)
    return stamp


def _duration_of_string(text: str) -> Duration:
    span = Duration.parse(text)
    if span is None:
        raise _parse_failure("google.protobuf.Duration", text)
    return span


def _timestamp_of_int(seconds: int) -> Timestamp:
    return Timestamp(seconds)


def _bool_text(value: bool) -> str:
    return "true" if value else "false"


def _decimal(value: int) -> str:
    return str(int(value))


def _same(value: Any) -> Any:
    return value


def _type(value: Any) -> TypeValue:
    return TypeValue(type_name(value))


def conversions(lib: Library) -> None:
    """Adds the conversions to a library."""
    lib.add(
        "int",
        ("int64_to_int64", "(int) int", _same),
        ("uint64_to_int64", "(uint) int", lambda a: check_int(int(a))),
        ("double_to_int64", "(double) int", _int_of_double),
        ("string_to_int64", "(string) int", _int_of_string),
        ("timestamp_to_int64", "(timestamp) int", lambda a: a.seconds),
        ("duration_to_int64", "(duration) int", lambda a: a.nanos),
    )
    lib.add(
        "uint",
        ("uint64_to_uint64", "(uint) uint", _same),
        ("int64_to_uint64", "(int) uint", check_uint),
        ("double_to_uint64", "(double) uint", _uint_of_double),
        ("string_to_uint64", "(string) uint", _uint_of_string),
    )
    lib.add(
        "double",
        ("double_to_double", "(double) double", _same),
        ("int64_to_double", "(int) double", float),
        ("uint64_to_double", "(uint) double", float),
        ("string_to_double", "(string) double", _double_of_string),
    )
    lib.add(
        "bool", ("bool_to_bool", "(bool) bool", _same), ("string_to_bool", "(string) bool", _bool_of_string)
    )
    lib.add(
        "string",
        ("string_to_string", "(string) string", _same),
        ("bool_to_string", "(bool) string", _bool_text),
        ("bytes_to_string", "(bytes) string", _string_of_bytes),
        ("double_to_string", "(double) string", go_double),
        ("duration_to_string", "(duration) string", str),
        ("int64_to_string", "(int) string", str),
        ("timestamp_to_string", "(timestamp) string", str),
        ("uint64_to_string", "(uint) string", _decimal),
    )
    lib.add(
        "bytes",
        ("bytes_to_bytes", "(bytes) bytes", _same),
        ("string_to_bytes", "(string) bytes", _bytes_of_string),
    )
    lib.add(
        "timestamp",
        ("timestamp_to_timestamp", "(timestamp) timestamp", _same),
        ("int64_to_timestamp", "(int) timestamp", _timestamp_of_int),
        ("string_to_timestamp", "(string) timestamp", _timestamp_of_string),
    )
    lib.add(
        "duration",
        ("duration_to_duration", "(duration) duration", _same),
        ("int64_to_duration", "(int) duration", Duration),
        ("string_to_duration", "(string) duration", _duration_of_string),
    )
    lib.add("dyn", ("to_dyn", "(A) dyn", _same))
    lib.add("type", ("type", "(A) type(A)", _type))
