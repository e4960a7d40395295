"""The functions and operators of the CEL specification."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

from apimachinery.cel.libraries.declarations import Library
from apimachinery.cel.libraries.integers import (
    INT_OVERFLOW,
    check_int,
    check_uint,
    divide,
    divide_uint,
    modulo,
    modulo_uint,
)
from apimachinery.cel.libraries.type_conversions import conversions
from apimachinery.cel.patterns import LargePattern, PatternError, compile_pattern, match_test
from apimachinery.cel.values import values as v
from apimachinery.cel.values.errors import CostLimitError, EvalError
from apimachinery.cel.values.values import (
    INT_MAX,
    INT_MIN,
    NO_OVERLOAD,
    Duration,
    KeyedList,
    SetList,
    Timestamp,
    Uint,
    go_double,
    key_text,
    type_name,
)

MAX_ITEMS = 4_000_000
"""No call may build a longer list: more than any request can hold."""
MAX_TEXT = 64 * 1024 * 1024


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
        ("divide_int64", "(int, int) int", divide),
        ("divide_uint64", "(uint, uint) uint", divide_uint),
    )
    lib.add(
        "_%_",
        ("modulo_int64", "(int, int) int", modulo),
        ("modulo_uint64", "(uint, uint) uint", modulo_uint),
    )
    lib.add(
        "-_",
        ("negate_double", "(double) double", lambda a: -a),
        ("negate_int64", "(int) int", lambda a: check_int(-a)),
    )


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
    conversions(lib)
    _times(lib)
    return lib
