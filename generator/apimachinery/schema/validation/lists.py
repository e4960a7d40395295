"""Sets and keyed lists: no item, or no item's keys, may occur twice.

Rules of apiextensions' listtype validation: of equal items the second is named, later ones not; an item of
a keyed list shows its keys alone; a null item has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from apimachinery.meta.field_errors import FieldError, duplicate, invalid_value
from apimachinery.schema.node import SchemaNode
from apimachinery.schema.validation.ratcheting import frozen


def list_faults(node: SchemaNode, value: Any, field: str = "") -> Iterator[FieldError]:
    """The duplicates in every set and keyed list of ``value``; siblings by name."""
    if isinstance(value, list):
        if node.list_type == "set":
            for index in _repeated(value):
                yield duplicate(f"{field}[{index}]", value[index])
        elif node.list_type == "map":
            yield from _keyed_faults(node, value, field)
        if node.items is not None:
            for index, item in enumerate(value):
                yield from list_faults(node.items, item, f"{field}[{index}]")
    elif isinstance(value, dict):
        for name in sorted(value):
            if (child := node.properties.get(name)) is not None:
                yield from list_faults(child, value[name], f"{field}.{name}" if field else name)
            elif isinstance(node.additional, SchemaNode):
                yield from list_faults(node.additional, value[name], f"{field}[{name}]")


def distinct_check(node: SchemaNode) -> Callable[[list[Any]], bool] | None:
    """The fast pass for one list: a closure that says whether its items are distinct, None where they need not be.

    It may err on the side of no.
    """
    if node.list_type not in ("set", "map"):
        return None
    key_names = node.list_map_keys if node.list_type == "map" else ()
    only_key = key_names[0] if len(key_names) == 1 else None

    def distinct(value: list[Any]) -> bool:
        if len(value) < 2:
            return not key_names or not value or type(value[0]) is dict
        try:
            if only_key is not None:
                found = {item[only_key] for item in value}
            elif key_names:
                found = {tuple([item.get(name) for name in key_names]) for item in value}
            else:
                found = set(value)
        except (TypeError, KeyError, AttributeError):
            return False
        return len(found) == len(value)

    return distinct


def _repeated(items: list[Any]) -> list[int]:
    counts: dict[Any, int] = {}
    found = []
    for index, item in enumerate(items):
        key = frozen(item)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] == 2:
            found.append(index)
    return found


def _keyed_faults(node: SchemaNode, value: list[Any], field: str) -> Iterator[FieldError]:
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            yield invalid_value(f"{field}[{index}]", item, "must be an object for an array of list-type map")
            return
    keys = [
        {name: item[name] for name in node.list_map_keys if name in item} if item else {} for item in value
    ]
    for index in _repeated(keys):
        yield duplicate(f"{field}[{index}]", keys[index])
