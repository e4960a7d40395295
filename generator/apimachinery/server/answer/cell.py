"""What cells of tables are made of: a value at a path, and its text where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from apimachinery.meta.json import Json
from apimachinery.server.answer.json_path import print_value

Cell = Callable[[Json], Any]
NONE, UNSET, UNKNOWN = "<none>", "<unset>", "<unknown>"


def get(obj: Any, path: str) -> Any:
    """The value at a dotted path, None where there is none."""
    for key in path.split("."):
        obj = obj.get(key) if isinstance(obj, dict) else None
    return obj


def at(path: str, nothing: Any = "") -> Cell:
    """The cell that shows what is at a path."""

    def cell(obj: Json) -> Any:
        value = get(obj, path)
        return nothing if value is None or value == "" else value

    return cell


def text_at(path: str, nothing: str = "") -> Cell:
    """The same as text."""

    def cell(obj: Json) -> str:
        value = get(obj, path)
        return nothing if value is None or value == "" else print_value(value)

    return cell


def count_at(*paths: str) -> Cell:
    """How many entries are at the paths together."""
    return lambda obj: sum(len(get(obj, path) or ()) for path in paths)


def joined(values: Iterable[Any], separator: str = ",") -> str:
    """Texts in a row."""
    return separator.join(print_value(value) for value in values)
