"""The JSONPath of printer columns: the dialect of kubectl, without output templates.

    .spec.replicas   .status.conditions[?(@.type=="Ready")].status   .items[0]   .m.a\\.b   .spec.l[*]   ..name

A path that names what is not there finds nothing. It fails where it asks a value for what such a value cannot have: an
index beyond the end of a list, the order of a number and a text. What is read as a path follows the parser of client-go
also where that is odd: ``['a.b']`` are two fields, what follows ``}`` is a text of its own, and nothing within brackets
may have spaces around it.

A path is followed only as far as somebody takes what it leads to, and each value that is looked at is paid for from a
``SearchBudget``: ``..a`` in many columns goes through all of an object for each. kube-apiserver has no such bound.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from apimachinery.meta.printing import INT64_MAX, INT64_MIN, as_go, go_float, go_json

MAX_STEPS = 64
MAX_FOUND = 10_000
CHARACTERS_A_VALUE = 16
"""A text is paid for as one value for so many characters."""


class PathError(ValueError):
    """A path that cannot be read."""


class PathFailed(ValueError):
    """A path cannot be followed on a value."""


class PathTooCostly(Exception):
    """The budget is spent."""


class SearchBudget:
    """How many values may still be looked at."""

    __slots__ = ("left",)

    def __init__(self, values: int = MAX_FOUND) -> None:
        self.left = values

    def spend(self, values: int) -> None:
        """Takes so many. Raises PathTooCostly."""
        self.left -= values
        if self.left < 0:
            raise PathTooCostly

    def spend_on(self, value: Any) -> None:
        """Takes what it costs to print a value. Raises PathTooCostly before it is printed."""
        rest = [value]
        while rest:
            value = rest.pop()
            self.spend(1 + len(value) // CHARACTERS_A_VALUE if isinstance(value, str) else 1)
            if isinstance(value, dict):
                self.spend(len(value))
                rest.extend(value.values())
            elif isinstance(value, list):
                self.spend(len(value))
                rest.extend(value)


Run = Callable[[Iterable[Any], SearchBudget], Iterator[Any]]


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step of a path; ``many`` may lead from one value to several, ``fails`` may raise PathFailed."""

    run: Run
    many: bool = False
    fails: bool = False


@dataclass(frozen=True, slots=True)
class JsonPath:
    """Steps from the root, each from the values found so far to the next."""

    steps: tuple[PathStep, ...]

    def each(self, value: Any, budget: SearchBudget) -> Iterator[Any]:
        """The values that the path leads to, in order, as they are asked for. Raises PathFailed, PathTooCostly."""
        return _follow(self.steps, (value,), budget)

    def first(self, value: Any, budget: SearchBudget) -> tuple[Any, ...]:
        """The first value that the path leads to, none where it leads nowhere or fails. Raises PathTooCostly."""
        try:
            found = self.each(value, budget)
            first = tuple(itertools.islice(found, 1))
            if self._fails_late():
                for _ in found:
                    pass
        except PathFailed:
            return ()
        return first

    def find(self, value: Any) -> list[Any]:
        """All values that the path leads to, none where it fails. Raises PathTooCostly."""
        try:
            return list(self.each(value, SearchBudget()))
        except PathFailed:
            return []

    def _fails_late(self) -> bool:
        """Whether a path may fail after it has found something: where a value that failed is not the first."""
        many = False
        for step in self.steps:
            many = many or step.many
            if step.fails and many:
                return True
        return False


def searches(text: str) -> bool:
    """Whether a path may go through many values to find one."""
    return _SEARCHES.search(text) is not None


def parse_path(text: str) -> JsonPath:
    """Read a path, with or without braces or the point it begins with. Raises PathError."""
    text = text.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    if text and text[0] not in ".[$@":
        text = "." + text
    return JsonPath(tuple(_read(text)))


_SEARCHES = re.compile(r"\.\.|\*|\?|:|,")
_ENDS = " \t\r\n.,[]$@{}"  # a name, unless it is escaped
_NAME = re.compile(r"(?:\\.|[^\\ \t\r\n.,\[\]$@{}])*\\?", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[\d.]*", re.ASCII)
_SLICE = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?", re.ASCII)
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+)")
_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _read(text: str) -> list[PathStep]:
    """The steps of a path without braces. Raises PathError."""
    text += "}"
    steps, place = _read_action(text, 0)
    while (opened := text.find("{", place)) >= 0:  # results of their own, which nobody shows
        _, place = _read_action(text, opened + 1)
    return steps


def _read_action(text: str, place: int) -> tuple[list[PathStep], int]:
    """The steps up to the next closing brace, and where they end."""
    steps: list[PathStep] = []
    while not text.startswith("}", place):
        if len(steps) > MAX_STEPS:
            raise PathError("the path is too long")
        if text.startswith("[?(", place):
            place = _filter(text, place + 3, steps)
        elif text.startswith("..", place):
            place = _recursion(text, place + 2, steps)
        else:
            place = _simple(text, place, steps)
    return steps, place + 1


def _simple(text: str, place: int, steps: list[PathStep]) -> int:
    char = text[place : place + 1]
    if char in ("", "\r", "\n"):
        raise PathError(f"unclosed action in {text!r}")
    if char in " @$":
        return place + 1
    if char == "[":
        return _array(text, place + 1, steps)
    if char in "\"'":
        return _quoted(text, place, steps)
    if char == ".":
        return _field(text, place + 1, steps)
    if char in "+-" or char.isdecimal():
        return _number(text, place, steps)
    if _is_alphanumeric(char):
        return _identifier(text, place, steps)
    raise PathError(f"unexpected {char!r} in {text[:-1]!r}")


def _is_alphanumeric(char: str) -> bool:
    return char == "_" or char.isalpha() or char.isdecimal()


def _field(text: str, place: int, steps: list[PathStep]) -> int:
    match = _NAME.match(text, place)
    assert match is not None  # it takes nothing as well
    name = match[0].replace("\\", "")
    steps.append(PathStep(_each, many=True) if match[0] == "*" else PathStep(_key(name)))
    return match.end()


def _recursion(text: str, place: int, steps: list[PathStep]) -> int:
    if steps and steps[-1].run is _descend:
        raise PathError(f"several .. in a row in {text[:-1]!r}")
    steps.append(PathStep(_descend, many=True))
    return _field(text, place, steps) if _is_alphanumeric(text[place : place + 1]) else place


def _identifier(text: str, place: int, steps: list[PathStep]) -> int:
    end = place
    while text[end] not in _ENDS:
        end += 1
    name = text[place:end]
    if name in ("true", "false"):
        steps.append(PathStep(_constant(name == "true")))
    elif name != "range":
        steps.append(PathStep(_fail(f"unrecognized identifier {name}"), fails=True))
    return end


def _number(text: str, place: int, steps: list[PathStep]) -> int:
    match = _NUMBER.match(text, place)
    assert match is not None
    for read in (_int, _double):
        try:
            steps.append(PathStep(_constant(read(match[0]))))
        except ValueError:
            continue
        return match.end()
    raise PathError(f"cannot parse number {match[0]}")


def _int(text: str) -> int:
    """As Go's strconv.Atoi reads it. Raises ValueError, also for what is no int64."""
    number = int(text)
    if not INT64_MIN <= number <= INT64_MAX:
        raise ValueError(text)
    return number


def _double(text: str) -> float:
    number = float(text)
    if math.isinf(number):  # as Go's strconv.ParseFloat has it
        raise ValueError(text)
    return number


def _quoted(text: str, place: int, steps: list[PathStep]) -> int:
    quote, end = text[place], place + 1
    while text[end : end + 1] != quote or text[end - 1] == "\\":
        if text[end : end + 1] in ("", "\n"):
            raise PathError(f"unterminated quoted string in {text[:-1]!r}")
        end += 1

    def unescaped(found: re.Match[str]) -> str:
        if found[1] not in _ESCAPES:
            raise PathError(f"invalid syntax in {text[place : end + 1]}")
        return _ESCAPES[found[1]]

    value = re.sub(r"\\(.?)", unescaped, text[place + 1 : end], flags=re.DOTALL)
    steps.append(PathStep(_literal(value)))
    return end + 1


def _array(text: str, place: int, steps: list[PathStep]) -> int:
    end = text.find("]", place)
    inner = text[place:end]
    if end < 0 or "\n" in inner:
        raise PathError(f"unterminated array in {text[:-1]!r}")
    if inner == "*":
        inner = ":"
    if "," in inner:
        steps.append(_union([_read(f"[{each.strip(' ')}]") for each in inner.split(",")]))
    elif len(inner) > 1 and inner[0] == inner[-1] == "'" and "'" not in inner[1:-1]:
        steps.extend(_read("." + inner[1:-1]))
    elif match := _SLICE.fullmatch(inner):
        steps.append(_slice(match))
    else:
        raise PathError(f"invalid array index {inner}")
    return end + 1


def _filter(text: str, place: int, steps: list[PathStep]) -> int:
    end, quote, closed = place, "", False
    while text[end : end + 1] != ")" or bool(quote) != closed:
        char = text[end : end + 1]
        if char in ("", "\n"):
            raise PathError(f"unterminated filter in {text[:-1]!r}")
        if char in "\"'":
            if not quote:
                quote = char
            elif char == quote and text[end - 1] != "\\":
                closed = True
        end += 1
    if text[end + 1 : end + 2] != "]":
        raise PathError("unclosed array expect ]")
    inner = text[place:end]
    match = _COMPARISON.fullmatch(inner)
    if match is None:
        steps.append(_chosen(_exists(_read(inner))))
    else:
        steps.append(_chosen(_comparison(_read(match[1]), match[2], _read(match[3]))))
    return end + 2


def _follow(steps: Sequence[PathStep], values: Iterable[Any], budget: SearchBudget) -> Iterator[Any]:
    for step in steps:
        values = step.run(values, budget)
    return iter(values)


def _constant(value: Any) -> Run:
    return lambda values, budget: (value for _ in values)


def _literal(value: str) -> Run:
    return lambda values, budget: iter((value,))


def _fail(why: str) -> Run:
    def run(values: Iterable[Any], budget: SearchBudget) -> Iterator[Any]:
        raise PathFailed(why)

    return run


def _key(name: str) -> Run:
    def run(values: Iterable[Any], budget: SearchBudget) -> Iterator[Any]:
        for value in values:
            budget.spend(1)
            if isinstance(value, dict) and name in value:
                yield value[name]

    return run


def _slice(match: re.Match[str]) -> PathStep:
    """``[start:end:step]``, of which an index alone is the slice of one."""
    given = [match[1], *((part or "")[1:] for part in (match[2], match[3]))]
    try:
        start, stop, stride = (_int(part) if part else None for part in given)
    except ValueError:
        raise PathError(f"array index {match[0]} is not a number") from None
    alone = not match[2]

    def run(values: Iterable[Any], budget: SearchBudget) -> Iterator[Any]:
        for value in values:
            budget.spend(1)
            if value is None:
                continue
            if not isinstance(value, list):
                raise PathFailed("not array or slice")
            first, end = _bounds(len(value), start or 0, (start or 0) + 1 if alone else stop, alone)
            if first == end:
                return
            if stride is not None and stride <= 0:
                raise PathFailed("step must be > 0")
            for place in range(first, end, stride or 1):
                budget.spend(1)
                yield value[place]

    return PathStep(run, many=not alone, fails=True)


def _bounds(length: int, first: int, end: int | None, alone: bool) -> tuple[int, int]:
    """Where a slice begins and ends, counted from the start. Raises PathFailed."""
    if first < 0:
        first += length
    if end is None:
        end = length
    if end < 0 or (end == 0 and alone):
        end += length
    if first != end and not (0 <= first < length and 0 <= end <= length and first <= end):
        raise PathFailed("array index out of bounds")
    return first, end


def _union(parts: list[list[PathStep]]) -> PathStep:
    def run(values: Iterable[Any], budget: SearchBudget) -> Iterator[Any]:
        given = list(values)
        for part in parts:
            yield from _follow(part, given, budget)

    return PathStep(run, many=True, fails=True)


def _each(values: Iterable[Any], budget: SearchBudget) -> Iterator[Any]:
    for value in values:
        budget.spend(1)
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            budget.spend(1)
            yield item


def _descend(values: Iterable[Any], budget: SearchBudget) -> Iterator[Any]:
    """A value that has something in it, and all such below it; a text has its bytes."""
    for value in values:
        rest = [value]
        while rest:
            below = rest.pop()
            if isinstance(below, dict | list):
                budget.spend(1 + len(below))
                rest.extend(reversed(list(below.values()) if isinstance(below, dict) else below))
            else:
                budget.spend(1)
            if below and isinstance(below, dict | list | str):
                yield below


Holds = Callable[[Any, SearchBudget], bool]


def _exists(steps: list[PathStep]) -> Holds:
    def holds(item: Any, budget: SearchBudget) -> bool:
        try:
            return any(True for _ in _follow(steps, (item,), budget))
        except PathFailed:
            return True

    return holds


def _comparison(left: list[PathStep], sign: str, right: list[PathStep]) -> Holds:
    compare = _COMPARE.get(sign)

    def holds(item: Any, budget: SearchBudget) -> bool:
        sides = []
        for steps in (left, right):
            found = list(_follow(steps, (item,), budget))
            if not found:
                return False
            if len(found) > 1:
                raise PathFailed("can only compare one element at a time")
            sides.append(as_go(found[0]))
        if compare is None:
            raise PathFailed(f"unrecognized filter operator {sign}")
        one, other = sides
        # Values of one simple type: 1 and 1.5 are of two, and no boolean is less than another.
        if type(one) is not type(other) or not isinstance(one, bool | int | float | str):
            raise PathFailed("incompatible types for comparison")
        if isinstance(one, bool) and sign not in ("==", "!="):
            raise PathFailed("invalid type for comparison")
        return compare(one, other)

    return holds


def _chosen(holds: Holds) -> PathStep:
    def run(values: Iterable[Any], budget: SearchBudget) -> Iterator[Any]:
        for value in values:
            budget.spend(1)
            if not isinstance(value, list):
                raise PathFailed("not array or slice and cannot be filtered")
            for item in value:
                budget.spend(1)
                if holds(item, budget):
                    yield item

    return PathStep(run, many=True, fails=True)


def print_value(value: Any) -> str:
    """A value as a string column shows it: text as it is, objects and lists as JSON."""
    match value:
        case None:
            return "<no value>"
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return go_float(value)
        case dict() | list():
            return go_json(value)
        case int():
            value = as_go(value)
            return go_float(value) if isinstance(value, float) else str(value)
    return str(value)
