"""CEL's values as Python objects, and what holds for all of them: type, equality, order, size.

null, bool, int, double, string, bytes, list and map are ``None``, ``bool``, ``int``, ``float``, ``str``,
``bytes``, ``list`` and ``dict``: plain JSON needs no conversion. The others are classes of this file.
Beware: Python thinks ``True == 1``; CEL does not, so only ``equal`` compares values of unknown types.
"""

from __future__ import annotations

import operator
import re
from calendar import timegm
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from apimachinery.cel.values.errors import CostLimitError, EvalError
from apimachinery.cel.values.extended import KeyedList as KeyedList
from apimachinery.cel.values.extended import SetList as SetList
from apimachinery.cel.values.extended import Uint as Uint

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
UINT_MAX = 2**64 - 1
NO_OVERLOAD = "no such overload"


class TypeValue:
    """A type as a value; ``name`` is all it is."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeValue) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"TypeValue({self.name!r})"


class Optional:
    """A value that may be absent; compare with ``is ABSENT``."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __repr__(self) -> str:
        return "optional.none()" if self is ABSENT else f"optional.of({self.value!r})"


ABSENT = Optional(None)
"""``optional.none()``."""


class Opaque:
    """What values of abstract types derive from; ``type_name`` is the type's name."""

    __slots__ = ()
    type_name: ClassVar[str] = ""

    def equals(self, other: Any) -> bool:
        """Equality with a value of the same class."""
        return self is other


# Years 1 to 9999: the range of google.protobuf.Timestamp.
EARLIEST, LATEST = -62135596800, 253402300799
_RFC3339 = re.compile(
    # Go's time.Parse takes a comma before the fraction too (since 1.17).
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:(Z)|([+-])(\d\d):(\d\d))",
    re.ASCII,
)


class Timestamp:
    """An instant: seconds since 1970 and nanoseconds; ``zone`` (seconds east) matters for printing only."""

    __slots__ = ("nanos", "seconds", "zone")

    def __init__(self, seconds: int, nanos: int = 0, zone: int = 0):
        if not EARLIEST <= seconds <= LATEST:
            raise EvalError("timestamp overflow")
        self.seconds = seconds
        self.nanos = nanos
        self.zone = zone

    @classmethod
    def parse(cls, text: str) -> Timestamp | None:
        """Read RFC 3339; None if it is not."""
        found = _RFC3339.fullmatch(text)
        if not found:
            return None
        year, month, day, hour, minute, second = (int(g) for g in found.groups()[:6])
        fraction, _, sign, zone_hours, zone_minutes = found.groups()[6:]
        try:
            naive = datetime(year, month, day, hour, minute, second)
        except ValueError:
            return None
        zone = 0
        if sign:
            # As Go, which lets 24 hours and 60 minutes pass because some people write them.
            if int(zone_hours) > 24 or int(zone_minutes) > 60:
                return None
            zone = (int(zone_hours) * 60 + int(zone_minutes)) * 60
            zone = -zone if sign == "-" else zone
        nanos = int((fraction + "0" * 9)[:9]) if fraction else 0
        seconds = timegm(naive.timetuple()) - zone
        if not EARLIEST <= seconds <= LATEST:
            return None
        return cls(seconds, nanos, zone)

    @property
    def instant(self) -> int:
        """Nanoseconds since 1970."""
        return self.seconds * 1_000_000_000 + self.nanos

    @classmethod
    def of_instant(cls, instant: int, zone: int = 0) -> Timestamp:
        """The timestamp of that many nanoseconds since 1970."""
        seconds, nanos = divmod(instant, 1_000_000_000)
        return cls(seconds, nanos, zone)

    def datetime(self, zone: tzinfo | None = None) -> datetime:
        """The calendar's view, to the second, in UTC or ``zone``."""
        try:
            utc = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)
            return utc if zone is None else utc.astimezone(zone)
        except (OverflowError, ValueError):
            raise EvalError("timestamp overflow") from None

    def __str__(self) -> str:
        local = datetime(1970, 1, 1) + timedelta(seconds=self.seconds)
        try:
            local += timedelta(seconds=self.zone)
        except OverflowError:
            raise EvalError("timestamp overflow") from None
        text = local.isoformat()
        if self.nanos:
            text += f".{self.nanos:09d}".rstrip("0")
        if not self.zone:
            return text + "Z"
        hours, minutes = divmod(abs(self.zone) // 60, 60)
        return f"{text}{'-' if self.zone < 0 else '+'}{hours:02d}:{minutes:02d}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.instant == other.instant

    def __hash__(self) -> int:
        return hash(self.instant)

    def __lt__(self, other: Timestamp) -> bool:
        return self.instant < other.instant

    def __le__(self, other: Timestamp) -> bool:
        return self.instant <= other.instant

    def __repr__(self) -> str:
        return f"Timestamp({self})"


_UNITS = {
    "ns": 1,
    "us": 1_000,
    # Two characters that look alike, the micro sign and the Greek letter: Go takes both.
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_DURATION_PART = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)


class Duration:
    """A span of time in nanoseconds."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int):
        if not INT_MIN <= nanos <= INT_MAX:
            raise EvalError("integer overflow")
        self.nanos = nanos

    @classmethod
    def parse(cls, text: str) -> Duration | None:
        """Read Go's form, such as ``1h30m0.5s``; None if it is not."""
        rest = text[1:] if text[:1] in ("+", "-") else text
        if rest == "0":
            return cls(0)
        total, at = 0, 0
        while at < len(rest):
            found = _DURATION_PART.match(rest, at)
            if not found or not (found[1] or found[2]):
                return None
            unit = _UNITS[found[3]]
            total += int(found[1] or 0) * unit
            if found[2]:
                total += int(found[2]) * unit // 10 ** len(found[2])
            at = found.end()
        negative = text[:1] == "-"
        # One more below zero than above: Go reads the least int64 too.
        if not at or total > INT_MAX + negative:
            return None
        return cls(-total if negative else total)

    def seconds(self) -> float:
        """As seconds, with the fraction."""
        whole, rest = divmod(abs(self.nanos), 1_000_000_000)
        value = float(whole) + rest / 1e9
        return -value if self.nanos < 0 else value

    def __str__(self) -> str:
        return go_fixed(self.seconds()) + "s"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: Duration) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Duration) -> bool:
        return self.nanos <= other.nanos

    def __repr__(self) -> str:
        return f"Duration({self})"


def zone_of(name: str) -> tzinfo:
    """The time zone of that name, or of an offset such as ``-08:00``; EvalError if there is none."""
    before, colon, after = name.partition(":")
    if colon:
        try:
            hours, minutes = int(before), int(after)
        except ValueError as error:
            raise EvalError(f"strconv.Atoi: parsing {before!r}: invalid syntax") from error
        total = hours * 60 - minutes if name.startswith("-") else hours * 60 + minutes
        try:
            return timezone(timedelta(minutes=total))
        except ValueError as error:
            raise EvalError(f"unknown time zone {name}") from error
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except Exception as error:  # ZoneInfo raises what its file system does for hostile names
        raise EvalError(f"unknown time zone {name}") from error


def go_fixed(value: float) -> str:
    """Go's ``%f`` with the fewest digits that tell the value: no exponent."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    text = repr(value)
    if "e" in text:
        from decimal import Decimal

        text = format(Decimal(text), "f")
    return text[:-2] if text.endswith(".0") else text


def go_double(value: float) -> str:
    """Go's ``%g`` with the fewest digits that tell the value."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    from decimal import Decimal

    if value == 0:
        return "-0" if str(value)[0] == "-" else "0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + exponent
    power = point - 1
    lead = "-" if sign else ""
    # strconv decides by a precision of 6 where it may choose the digits itself (fmt's %v by 21).
    if power < -4 or power >= 6:
        mantissa = text[0] + ("." + text[1:] if len(text) > 1 else "")
        return f"{lead}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"
    if point <= 0:
        return f"{lead}0.{'0' * -point}{text}"
    if len(text) <= point:
        return lead + text + "0" * (point - len(text))
    return f"{lead}{text[:point]}.{text[point:]}"


TYPE_NAMES: dict[type, str] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    SetList: "list",
    KeyedList: "list",
    dict: "map",
    TypeValue: "type",
    Optional: "optional_type",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
}


def type_name(value: Any) -> str:
    """The name of the type of ``value``, as ``type(value)`` prints."""
    name = TYPE_NAMES.get(type(value))
    if name is not None:
        return name
    return value.type_name if isinstance(value, Opaque) else type(value).__name__


_PLAIN = frozenset((str, bytes, type(None), Timestamp, Duration, TypeValue))
_NUMBERS = frozenset((int, Uint, float))


MAX_STEPS = 4_000_000
"""Values may share parts, and then hold far more than memory does; walks over them end here."""


def equal(a: Any, b: Any) -> bool:
    """CEL's equality of any two values: numbers by value across types, all else only within a type."""
    kind, other = type(a), type(b)
    if kind in _NUMBERS:
        return other in _NUMBERS and (a == b if kind is other else _compared(a, b, operator.eq))
    if kind in _PLAIN:
        return kind is other and bool(a == b)
    if kind is bool:
        return a is b
    return _holders_equal(a, b, [MAX_STEPS])


def _step(a: Any, b: Any, left: list[int]) -> bool:
    left[0] -= 1
    if left[0] < 0:
        raise CostLimitError
    kind = type(a)
    if kind in _NUMBERS or kind in _PLAIN or kind is bool:
        return equal(a, b)
    return _holders_equal(a, b, left)


def _holders_equal(a: Any, b: Any, left: list[int]) -> bool:
    kind, other = type(a), type(b)
    if isinstance(a, list):
        return isinstance(b, list) and _lists_equal(a, b, left)
    if kind is dict:
        return other is dict and _maps_equal(a, b, left)
    if kind is Optional:
        if other is not Optional:
            return False
        if a is ABSENT or b is ABSENT:
            return a is b
        return _step(a.value, b.value, left)
    if isinstance(a, Opaque):
        return kind is other and a.equals(b)
    return False


def _lists_equal(a: list[Any], b: list[Any], left: list[int]) -> bool:
    if len(a) != len(b):
        return False
    if isinstance(a, SetList) or isinstance(b, SetList):
        return all(any(_step(x, y, left) for y in b) for x in a) and all(
            any(_step(x, y, left) for y in a) for x in b
        )
    if isinstance(a, KeyedList):
        mine = {a.key(item): item for item in a}
        theirs = {a.key(item): item for item in b}
        return mine.keys() == theirs.keys() and all(_step(item, theirs[k], left) for k, item in mine.items())
    return all(_step(x, y, left) for x, y in zip(a, b, strict=True))


def _maps_equal(a: dict[Any, Any], b: dict[Any, Any], left: list[int]) -> bool:
    if len(a) != len(b):
        return False
    for key, value in a.items():
        other = lookup(b, key, MISSING)
        if other is MISSING or not _step(value, other, left):
            return False
    return True


def contains(items: Iterable[Any], value: Any) -> bool:
    """Whether an item equals ``value``."""
    if type(value) is str:
        return value in items  # str equals only str
    return any(equal(item, value) for item in items)


MISSING: Any = object()


def lookup(mapping: dict[Any, Any], key: Any, default: Any) -> Any:
    """The value at ``key``, where 1, 1u and 1.0 are one key and true is another."""
    kind = type(key)
    if kind is str:
        return mapping.get(key, default)
    if kind is not bool and kind not in _NUMBERS:
        return default
    value = mapping.get(key, MISSING)
    if value is MISSING:
        return default
    if kind is bool or key == 0 or key == 1:
        # Python holds True and 1 for one key, so look which of them it found.
        for held, found in mapping.items():
            if held == key and (type(held) is bool) == (kind is bool):
                return found
        return default
    return value


def _compared(a: Any, b: Any, compare: Callable[[Any, Any], bool]) -> bool:
    """Compare two numbers of different types: with a double, as doubles."""
    if type(a) is float:
        return compare(a, float(b))
    return compare(float(a), b) if type(b) is float else compare(a, b)


def _order(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def ordered(a: Any, b: Any) -> bool:
        kind, other = type(a), type(b)
        if kind is other and kind in _ORDERED:
            return compare(a, b)
        if kind in _NUMBERS and other in _NUMBERS:
            return _compared(a, b, compare)
        raise EvalError(NO_OVERLOAD)

    return ordered


_ORDERED = frozenset((int, Uint, float, str, bytes, bool, Timestamp, Duration))
less = _order(lambda a, b: bool(a < b))
less_equal = _order(lambda a, b: bool(a <= b))
greater = _order(lambda a, b: bool(b < a))
greater_equal = _order(lambda a, b: bool(b <= a))


def size_of(value: Any) -> int:
    """``size(value)`` for what has one, else 1: the measure that costs are counted in."""
    kind = type(value)
    if kind is str or kind is list or kind is dict or kind is bytes or isinstance(value, list):
        return len(value)
    measure = getattr(value, "cost_size", None)
    return measure() if measure else 1


def key_text(key: Any) -> str:
    """A map key as messages show it."""
    if type(key) is bool:
        return "true" if key else "false"
    if type(key) is float:
        return go_double(key)
    return str(int(key)) if isinstance(key, int) else str(key)


def insert(found: dict[Any, Any], key: Any, value: Any) -> None:
    """Add an entry to a map being built; the key must be new and of a type that keys may have."""
    if type(key) is float or not isinstance(key, (bool, int, str)):
        raise EvalError(f"unsupported key type: {type_name(key)}")
    if lookup(found, key, MISSING) is not MISSING:
        raise EvalError(f"insert failed: key {key_text(key)} already exists")
    found[key] = value
