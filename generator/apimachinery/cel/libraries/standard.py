"""The functions and operators of the CEL specification."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

from apimachinery.cel.libraries.declarations import Library
from apimachinery.cel.patterns import LargePattern, PatternError, compile_pattern, match_test
from apimachinery.cel.values import values as v
from apimachinery.cel.values.errors import CostLimitError, EvalError
from apimachinery.cel.values.values import (
    INT_MAX,
    INT_MIN,
    NO_OVERLOAD,
    UINT_MAX,
    Duration,
    KeyedList,
    SetList,
    Timestamp,
    TypeValue,
    Uint,
    go_double,
    key_text,
    type_name,
)

MAX_ITEMS = 4_000_000
"""No call may build a longer list: more than any request can hold."""
MAX_TEXT = 64 * 1024 * 1024
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


def _divide(a: int, b: int) -> int:
    if b == 0:
        raise EvalError("division by zero")
    quotient = abs(a) // abs(b)
    return check_int(-quotient if (a < 0) != (b < 0) else quotient)


def _modulo(a: int, b: int) -> int:
    if b == 0:
        raise EvalError("modulus by zero")
    if a == INT_MIN and b == -1:
        raise EvalError(INT_OVERFLOW)
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def _divide_uint(a: int, b: int) -> Uint:
    if b == 0:
        raise EvalError("division by zero")
    return Uint(int(a) // int(b))


def _modulo_uint(a: int, b: int) -> Uint:
    if b == 0:
        raise EvalError("modulus by zero")
    return Uint(int(a) % int(b))


def _divide_double(a: float, b: float) -> float:
    if b:
        try:
            return a / b
        except OverflowError:
            return math.inf
    if a != a or a == 0 or b != b:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _multiply_double(a: float, b: float) -> float:
    return a * b


def add_lists(a: list[Any], b: list[Any]) -> list[Any]:
    """Concatenation; sets and keyed lists merge instead, keeping the order of the first."""
    if len(a) + len(b) > MAX_ITEMS:
        raise CostLimitError
    if isinstance(a, SetList):
        return SetList(a + [item for item in b if not v.contains(a, item)])
    if isinstance(a, KeyedList):
        place = {a.key(item): index for index, item in enumerate(a)}
        merged = list(a)
        for item in b:
            index = place.get(a.key(item))
            if index is None:
                merged.append(item)
            else:
                merged[index] = item
        return KeyedList(merged, a.keys)
    return list(a) + list(b)


def _joined(a: Any, b: Any) -> Any:
    if len(a) + len(b) > MAX_TEXT:
        raise CostLimitError
    return a + b


def _duration(nanos: int) -> Duration:
    if not INT_MIN <= nanos <= INT_MAX:
        raise EvalError(INT_OVERFLOW)
    return Duration(nanos)


def _shift(stamp: Timestamp, nanos: int) -> Timestamp:
    return Timestamp.of_instant(stamp.instant + nanos, stamp.zone)


def _between(a: Timestamp, b: Timestamp) -> Duration:
    return _duration(a.instant - b.instant)


def _in_list(item: Any, items: list[Any]) -> bool:
    return v.contains(items, item)


def _in_map(key: Any, mapping: dict[Any, Any]) -> bool:
    return v.lookup(mapping, key, v.MISSING) is not v.MISSING


def _is_number(value: Any) -> bool:
    return type(value) in (int, float, Uint)


def index(holder: Any, key: Any) -> Any:
    """``holder[key]`` for a list or a map."""
    if isinstance(holder, list):
        if type(key) is float and key.is_integer():
            key = int(key)
        elif type(key) is float:
            raise EvalError(f"unsupported index value: {go_double(key)}")
        if type(key) is not int and type(key) is not Uint:
            raise EvalError(f"unsupported index type '{type_name(key)}' in list")
        if 0 <= key < len(holder):
            return holder[key]
        raise EvalError(f"index out of bounds: {int(key)}")
    if type(holder) is dict:
        value = v.lookup(holder, key, v.MISSING)
        if value is not v.MISSING:
            return value
        raise EvalError(f"no such key: {key_text(key)}")
    raise EvalError(NO_OVERLOAD)


def _size(value: Any) -> int:
    return len(value)


def compile_regex(pattern: str) -> Any:
    """The RE2 program of ``pattern``; EvalError in Go's words if it is none."""
    try:
        return compile_pattern(pattern)
    except PatternError as error:
        raise EvalError(str(error)) from None


def compile_search(pattern: str) -> Callable[[str], bool]:
    """A test whether a text holds a match of ``pattern``; EvalError if it is no pattern."""
    if not isinstance(compile_regex(pattern), LargePattern):
        return match_test(pattern)

    def search(text: str) -> bool:
        try:
            return match_test(pattern)(text)
        except PatternError as error:
            raise EvalError(str(error)) from None

    return search


def matches(text: str, pattern: str) -> bool:
    """RE2 search, unanchored."""
    return compile_search(pattern)(text)


# Conversions


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


# Parts of times


def _truncated(unit: int) -> Callable[[Duration], int]:
    def part(span: Duration) -> int:
        whole = abs(span.nanos) // unit
        return -whole if span.nanos < 0 else whole

    return part


_CALENDAR: tuple[tuple[str, str, Callable[[datetime], int]], ...] = (
    ("getFullYear", "year", lambda d: d.year),
    ("getMonth", "month", lambda d: d.month - 1),
    ("getDayOfYear", "day_of_year", lambda d: d.timetuple().tm_yday - 1),
    ("getDayOfMonth", "day_of_month", lambda d: d.day - 1),
    ("getDate", "day_of_month_1_based", lambda d: d.day),
    ("getDayOfWeek", "day_of_week", lambda d: d.isoweekday() % 7),
    ("getHours", "hours", lambda d: d.hour),
    ("getMinutes", "minutes", lambda d: d.minute),
    ("getSeconds", "seconds", lambda d: d.second),
)


def _calendar(
    read: Callable[[datetime], int],
) -> tuple[Callable[[Timestamp], int], Callable[[Timestamp, str], int]]:
    return (lambda s: read(s.datetime())), (lambda s, z: read(s.datetime(v.zone_of(z))))


def _times(lib: Library) -> None:
    for name, part, read in _CALENDAR:
        plain, zoned = _calendar(read)
        lib.overload(name, f"timestamp_to_{part}", "timestamp.() int", plain)
        lib.overload(name, f"timestamp_to_{part}_with_tz", "timestamp.(string) int", zoned)
    lib.add(
        "getMilliseconds",
        ("timestamp_to_milliseconds", "timestamp.() int", lambda s: s.nanos // 1_000_000),
        ("timestamp_to_milliseconds_with_tz", "timestamp.(string) int", _zoned_milliseconds),
        ("duration_to_milliseconds", "duration.() int", _truncated(1_000_000)),
    )
    lib.overload("getHours", "duration_to_hours", "duration.() int", _truncated(3600 * 10**9))
    lib.overload("getMinutes", "duration_to_minutes", "duration.() int", _truncated(60 * 10**9))
    lib.overload("getSeconds", "duration_to_seconds", "duration.() int", _truncated(10**9))


def _zoned_milliseconds(stamp: Timestamp, zone: str) -> int:
    v.zone_of(zone)
    return stamp.nanos // 1_000_000


def _comparisons(lib: Library) -> None:
    for operator, word, impl in (
        ("_<_", "less", v.less),
        ("_<=_", "less_equals", v.less_equal),
        ("_>_", "greater", v.greater),
        ("_>=_", "greater_equals", v.greater_equal),
    ):
        for kind in ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration"):
            lib.overload(
                operator,
                f"{word}_{'int64' if kind == 'int' else 'uint64' if kind == 'uint' else kind}",
                f"({kind}, {kind}) bool",
                impl,
            )


def cross_type_comparisons() -> Library:
    """Order between int, uint and double."""
    lib = Library("cross-type comparisons", plain_error=True)
    sized = {"int": "int64", "uint": "uint64", "double": "double"}
    for operator, word, impl in (
        ("_<_", "less", v.less),
        ("_<=_", "less_equals", v.less_equal),
        ("_>_", "greater", v.greater),
        ("_>=_", "greater_equals", v.greater_equal),
    ):
        for a in sized:
            for b in sized:
                if a != b:
                    lib.overload(operator, f"{word}_{sized[a]}_{sized[b]}", f"({a}, {b}) bool", impl)
    return lib


def _arithmetic(lib: Library) -> None:
    # In cel-go's order: where the type of an argument is still open, the first overload that fits settles it.
    lib.add(
        "_+_",
        ("add_bytes", "(bytes, bytes) bytes", _joined),
        ("add_double", "(double, double) double", lambda a, b: a + b),
        ("add_duration_duration", "(duration, duration) duration", lambda a, b: _duration(a.nanos + b.nanos)),
        ("add_duration_timestamp", "(duration, timestamp) timestamp", lambda a, b: _shift(b, a.nanos)),
        ("add_timestamp_duration", "(timestamp, duration) timestamp", lambda a, b: _shift(a, b.nanos)),
        ("add_int64", "(int, int) int", lambda a, b: check_int(a + b)),
        ("add_list", "(list(A), list(A)) list(A)", add_lists),
        ("add_string", "(string, string) string", _joined),
        ("add_uint64", "(uint, uint) uint", lambda a, b: check_uint(int(a) + int(b))),
    )
    lib.add(
        "_-_",
        ("subtract_double", "(double, double) double", lambda a, b: a - b),
        (
            "subtract_duration_duration",
            "(duration, duration) duration",
            lambda a, b: _duration(a.nanos - b.nanos),
        ),
        ("subtract_int64", "(int, int) int", lambda a, b: check_int(a - b)),
        ("subtract_timestamp_duration", "(timestamp, duration) timestamp", lambda a, b: _shift(a, -b.nanos)),
        ("subtract_timestamp_timestamp", "(timestamp, timestamp) duration", _between),
        ("subtract_uint64", "(uint, uint) uint", lambda a, b: check_uint(int(a) - int(b))),
    )
    lib.add(
        "_*_",
        ("multiply_double", "(double, double) double", _multiply_double),
        ("multiply_int64", "(int, int) int", lambda a, b: check_int(a * b)),
        ("multiply_uint64", "(uint, uint) uint", lambda a, b: check_uint(int(a) * int(b))),
    )
    lib.add(
        "_/_",
        ("divide_double", "(double, double) double", _divide_double),
        ("divide_int64", "(int, int) int", _divide),
        ("divide_uint64", "(uint, uint) uint", _divide_uint),
    )
    lib.add(
        "_%_",
        ("modulo_int64", "(int, int) int", _modulo),
        ("modulo_uint64", "(uint, uint) uint", _modulo_uint),
    )
    lib.add(
        "-_",
        ("negate_double", "(double) double", lambda a: -a),
        ("negate_int64", "(int) int", lambda a: check_int(-a)),
    )


def _conversions(lib: Library) -> None:
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


def _logic(value: Any, *rest: Any) -> Any:
    raise AssertionError("compiled specially")


def _not(value: Any) -> bool:
    return not value


def standard() -> Library:
    """The standard library, without order between number types."""
    lib = Library("standard", plain_error=True)
    lib.add("_&&_", ("logical_and", "(bool, bool) bool", _logic))
    lib.add("_||_", ("logical_or", "(bool, bool) bool", _logic))
    lib.add("_?_:_", ("conditional", "(bool, A, A) A", _logic))
    lib.add("!_", ("logical_not", "(bool) bool", _not))
    lib.add("@not_strictly_false", ("not_strictly_false", "(bool) bool", _logic))
    lib.add("_==_", ("equals", "(A, A) bool", v.equal))
    lib.add("_!=_", ("not_equals", "(A, A) bool", lambda a, b: not v.equal(a, b)))
    _comparisons(lib)
    _arithmetic(lib)
    lib.add("@in", ("in_list", "(A, list(A)) bool", _in_list), ("in_map", "(A, map(A, B)) bool", _in_map))
    lib.add("_[_]", ("index_list", "(list(A), int) A", index), ("index_map", "(map(A, B), A) B", index))
    for kind in ("bytes", "list", "map", "string"):
        of = {"list": "list(A)", "map": "map(A, B)"}.get(kind, kind)
        lib.overload("size", f"size_{kind}", f"({of}) int", _size)
        lib.overload("size", f"{kind}_size", f"{of}.() int", _size)
    lib.add("contains", ("contains_string", "string.(string) bool", lambda a, b: b in a))
    lib.add("endsWith", ("ends_with_string", "string.(string) bool", lambda a, b: a.endswith(b)))
    lib.add("startsWith", ("starts_with_string", "string.(string) bool", lambda a, b: a.startswith(b)))
    lib.add(
        "matches",
        ("matches", "(string, string) bool", matches),
        ("matches_string", "string.(string) bool", matches),
    )
    _conversions(lib)
    _times(lib)
    return lib
