"""The JSONPath of printer columns: the dialect of kubectl, without output templates.

    .spec.replicas   .status.conditions[?(@.type=="Ready")].status   .items[0]   .m['a.b']   .spec.l[*]   ..name

A path that names what is not there finds nothing. Filters compare a path below ``@`` with a literal, or ask
whether it is there.

A path is followed only as far as somebody takes what it leads to, and each value that is looked at is paid for from a
``SearchBudget``: ``..a`` in many columns goes through all of an object for each. kube-apiserver has no such bound.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from apimachinery.meta.printing import go_float, go_json

MAX_STEPS = 64
MAX_FOUND = 10_000
CHARACTERS_A_VALUE = 16
"""A text is paid for as one value for so many characters."""


class PathError(ValueError):
    """A path that cannot be read."""


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


Step = Callable[[Iterable[Any], SearchBudget], Iterator[Any]]


@dataclass(frozen=True, slots=True)
class JsonPath:
    """Steps from the root, each from the values found so far to the next."""

    steps: tuple[Step, ...]

    def each(self, value: Any, budget: SearchBudget) -> Iterator[Any]:
        """The values that the path leads to, in order, as they are asked for. Raises PathTooCostly."""
        found: Iterable[Any] = (value,)
        for step in self.steps:
            found = step(found, budget)
        return iter(found)

    def find(self, value: Any) -> list[Any]:
        """All values that the path leads to. Raises PathTooCostly."""
        return list(self.each(value, SearchBudget()))


_NAME = re.compile(r"(?:\\.|[^.\[\]\\\s{}()'\"?@=<>!&|])+")
_FILTER = re.compile(
    r"\?\(\s*@(?P<left>[^=<>!()]*)(?:(?P<operator>==|!=|<=|>=|<|>)\s*(?P<right>'[^']*'|\"[^\"]*\"|[^\s()]+)\s*)?\)\Z"
)
_SEARCHES = re.compile(r"\.\.|\*|\?|:")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def searches(text: str) -> bool:
    """Whether a path may go through many values to find one."""
    return _SEARCHES.search(text) is not None


def parse_path(text: str) -> JsonPath:
    """Read a path, with or without braces. Raises PathError."""
    text = text.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    text = text.removeprefix("$")
    if text and text[0] not in ".[":
        text = "." + text
    steps: list[Step] = []
    place = 0
    while place < len(text):
        if len(steps) > MAX_STEPS:
            raise PathError("the path is too long")
        if text.startswith("..", place):
            place += 2
            steps.append(_descend)
            if place < len(text) and text[place] != "[":
                place = _named(text, place, steps)
        elif text[place] == ".":
            place += 1
            if place < len(text) and text[place] != "[":
                place = _named(text, place, steps)
        elif text[place] == "[":
            place = _bracket(text, place, steps)
        else:
            raise PathError(f"unexpected {text[place]!r} in {text!r}")
    return JsonPath(tuple(steps))


def _named(text: str, place: int, steps: list[Step]) -> int:
    match = _NAME.match(text, place)
    if match is None:
        raise PathError(f"a name is missing in {text!r}")
    name = re.sub(r"\\(.)", r"\1", match.group())
    steps.append(_each if name == "*" else _key(name))
    return match.end()


def _bracket(text: str, place: int, steps: list[Step]) -> int:
    end = _closing(text, place)
    inner = text[place + 1 : end].strip()
    if inner == "*":
        steps.append(_each)
    elif inner.startswith("?"):
        steps.append(_filter(inner))
    elif inner[:1] in ("'", '"') and inner[-1:] == inner[:1] and len(inner) > 1:
        steps.append(_key(inner[1:-1]))
    elif re.fullmatch(r"-?\d{1,9}", inner):
        steps.append(_index(int(inner)))
    elif match := re.fullmatch(r"(-?\d{1,9})?:(-?\d{1,9})?(?::(\d{1,9}))?", inner):
        low, high, stride = (int(part) if part else None for part in match.groups())
        steps.append(_slice(slice(low, high, stride or None)))
    else:
        raise PathError(f"{inner!r} cannot be read")
    return end + 1


def _closing(text: str, place: int) -> int:
    quote = ""
    depth = 0
    for index in range(place, len(text)):
        char = text[index]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
            if not depth:
                return index
    raise PathError(f"unterminated [ in {text!r}")


def _key(name: str) -> Step:
    def step(values: Iterable[Any], budget: SearchBudget) -> Iterator[Any]:
        for value in values:
            budget.spend(1)
            if isinstance(value, dict) and name in value:
                yield value[name]

    return step


def _index(index: int) -> Step:
    def step(values: Iterable[Any], budget: SearchBudget) -> Iterator[Any]:
        for value in values:
            budget.spend(1)
            if isinstance(value, list) and -len(value) <= index < len(value):
                yield value[index]

    return step


def _slice(part: slice) -> Step:
    def step(values: Iterable[Any], budget: SearchBudget) -> Iterator[Any]:
        for value in values:
            budget.spend(1)
            if isinstance(value, list):
                for place in range(*part.indices(len(value))):
                    budget.spend(1)
                    yield value[place]

    return step


def _each(values: Iterable[Any], budget: SearchBudget) -> Iterator[Any]:
    for value in values:
        budget.spend(1)
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            budget.spend(1)
            yield item


def _descend(values: Iterable[Any], budget: SearchBudget) -> Iterator[Any]:
    for value in values:
        rest = [value]
        while rest:
            below = rest.pop()
            yield below
            if isinstance(below, dict | list):
                budget.spend(1 + len(below))
                rest.extend(reversed(list(below.values()) if isinstance(below, dict) else below))
            else:
                budget.spend(1)


def _filter(text: str) -> Step:
    match = _FILTER.match(text)
    if match is None:
        raise PathError(f"the filter {text!r} cannot be read")
    left = parse_path(match["left"])
    if match["operator"] is None:
        return _chosen(lambda item, budget: any(True for _ in left.each(item, budget)))
    compare, right = _COMPARE[match["operator"]], _literal(match["right"])

    def holds(item: Any, budget: SearchBudget) -> bool:
        for found in left.each(item, budget):
            if isinstance(found, dict | list):
                return False
            try:
                return compare(found, right)
            except TypeError:
                return False
        return False

    return _chosen(holds)


def _chosen(holds: Callable[[Any, SearchBudget], bool]) -> Step:
    def step(values: Iterable[Any], budget: SearchBudget) -> Iterator[Any]:
        return (item for item in _each(values, budget) if holds(item, budget))

    return step


def _literal(text: str) -> Any:
    if text[0] in "'\"":
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise PathError(f"{text!r} is no literal")


def print_value(value: Any) -> str:
    """A value as a string column shows it: text as it is, objects and lists as JSON."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return go_float(value)
        case dict() | list():
            return go_json(value)
    return str(value)
