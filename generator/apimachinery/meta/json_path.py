"""The JSONPath of printer columns: the dialect of kubectl, without output templates.

    .spec.replicas   .status.conditions[?(@.type=="Ready")].status   .items[0]   .m['a.b']   .spec.l[*]   ..name

A path that names what is not there finds nothing. Filters compare a path below ``@`` with a literal, or ask
whether it is there.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from apimachinery.meta.printing import go_float, go_json

Step = Callable[[list[Any]], list[Any]]
MAX_STEPS = 64
MAX_FOUND = 10_000


class PathError(ValueError):
    """A path that cannot be read."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """Steps from the root, each from the values found so far to the next."""

    steps: tuple[Step, ...]

    def find(self, value: Any) -> list[Any]:
        """All values the path leads to, in order."""
        found = [value]
        for step in self.steps:
            found = step(found)[:MAX_FOUND]
        return found


_NAME = re.compile(r"(?:\\.|[^.\[\]\\\s{}()'\"?@=<>!&|])+")
_FILTER = re.compile(
    r"\?\(\s*@(?P<left>[^=<>!()]*?)\s*(?:(?P<operator>==|!=|<=|>=|<|>)\s*(?P<right>'[^']*'|\"[^\"]*\"|[^\s()]+)\s*)?\)\Z"
)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


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
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _index(index: int) -> Step:
    return lambda values: [
        value[index] for value in values if isinstance(value, list) and -len(value) <= index < len(value)
    ]


def _slice(part: slice) -> Step:
    return lambda values: [item for value in values if isinstance(value, list) for item in value[part]]


def _each(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, list):
            found.extend(value)
        elif isinstance(value, dict):
            found.extend(value.values())
    return found


def _descend(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    rest = list(reversed(values))
    while rest and len(found) < MAX_FOUND:
        value = rest.pop()
        found.append(value)
        if isinstance(value, dict):
            rest.extend(reversed(list(value.values())))
        elif isinstance(value, list):
            rest.extend(reversed(value))
    return found


def _filter(text: str) -> Step:
    match = _FILTER.match(text)
    if match is None:
        raise PathError(f"the filter {text!r} cannot be read")
    left = parse_path(match["left"])
    if match["operator"] is None:
        return lambda values: [item for item in _each(values) if left.find(item)]
    compare, right = _COMPARE[match["operator"]], _literal(match["right"])

    def holds(item: Any) -> bool:
        found = left.find(item)
        if not found or isinstance(found[0], (dict, list)):
            return False
        try:
            return compare(found[0], right)
        except TypeError:
            return False

    return lambda values: [item for item in _each(values) if holds(item)]


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
