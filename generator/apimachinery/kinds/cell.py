"""What cells of tables are made of: a value at a path, and its text where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from apimachinery.meta.json import Json
from apimachinery.meta.json_path import print_value

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


def pointer_at(path: str, nothing: str) -> Cell:
    """The text at a path that is a pointer in Go: an empty one is there."""

    def cell(obj: Json) -> Any:
        value = get(obj, path)
        return nothing if value is None else value

    return cell


def text_at(path: str, nothing: str = "") -> Cell:
    """The same as text."""

    def cell(obj: Json) -> str:
        value = get(obj, path)
        return nothing if value is None or value == "" else print_value(value)

    return cell


def name_of_class(*annotations: str) -> Cell:
    """The name of a class, and whether it is the default one, which an annotation says."""

    def cell(obj: Json) -> str:
        said = obj["metadata"].get("annotations") or {}
        chosen = any(said.get(each) == "true" for each in annotations)
        return f"{obj['metadata'].get('name', '')}{' (default)' if chosen else ''}"

    return cell


def count_at(*paths: str) -> Cell:
    """How many entries are at the paths together."""
    return lambda obj: sum(len(get(obj, path) or ()) for path in paths)


def joined(values: Iterable[Any], separator: str = ",") -> str:
    """Texts in a row."""
    return separator.join(print_value(value) for value in values)


def labels_text(labels: Any) -> str:
    """A map as a selector's text."""
    if not labels:
        return NONE
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


_OPERATORS = {"In": "in", "NotIn": "notin"}


def selector_text(selector: Any) -> str:
    """A label selector object as a selector's text."""
    if not selector:
        return NONE
    parts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for term in selector.get("matchExpressions") or ():
        key, operator = term.get("key", ""), term.get("operator")
        values = ",".join(sorted(term.get("values") or ()))
        shown = {"Exists": key, "DoesNotExist": f"!{key}"}.get(operator)
        parts.append((key, shown or f"{key} {_OPERATORS.get(operator, operator)} ({values})"))
    return ",".join(text for _, text in sorted(parts)) or NONE


def go_selector(selector: Json) -> str:
    """A label selector object as Go's generated ``String`` shows it."""
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    terms = "".join(
        f"LabelSelectorRequirement{{Key:{term.get('key', '')},Operator:{term.get('operator', '')},"
        f"Values:[{' '.join(term.get('values') or ())}],}},"
        for term in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{terms}}},}}"
    )


def of(path: str, show: Callable[[Any], Any]) -> Cell:
    """What ``show`` makes of the value at a path."""
    return lambda obj: show(get(obj, path))


def few(found: list[str]) -> str:
    """The first three, and how many more there are."""
    if not found:
        return NONE
    return ",".join(found[:3]) + (f" + {len(found) - 3} more..." if len(found) > 3 else "")


def flag_at(path: str) -> Cell:
    """Whether something is at a path."""
    return lambda obj: bool(get(obj, path))
