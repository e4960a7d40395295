"""The order in which kube-apiserver writes the fields of built-in kinds: that of their Go structs.

It is that of the numbers in the protobuf form, except for fields that were later declared among older ones
(``moved`` in ``specs/kubernetes/go_types.yaml``). Keys of maps are sorted. Only messages that show a whole object need
it: JSON has no order.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from apimachinery.meta.json import Json


class StructOrder:
    """Puts objects in order. ``numbers`` are those of the protobuf form, ``moved`` the fields that are elsewhere and
    the field that each follows (empty: it comes first), both by definition."""

    def __init__(
        self,
        definitions: Mapping[str, Any],
        numbers: Mapping[str, Any],
        moved: Mapping[str, Mapping[str, str]],
    ) -> None:
        self._definitions = definitions
        self._numbers = numbers
        self._moved = moved
        self._names = cache(self._names_of)

    def ordered(self, value: Any, definition: str) -> Any:
        """A value of a definition, its fields in order; what it shares with the given one is not changed."""
        if not isinstance(value, dict) or definition not in self._numbers:
            return value
        properties = self._definitions[definition].get("properties") or {}
        found: Json = {}
        # Who says what the object is comes first; the numbers leave that to the envelope.
        first = ("kind", "apiVersion") if "metadata" in value else ()
        for name in (*first, *self._names(definition), *sorted(value)):
            if name in value and name not in found:
                found[name] = self._below(value[name], properties.get(name) or {})
        return found

    def _below(self, value: Any, schema: Mapping[str, Any]) -> Any:
        if isinstance(value, list):
            items = schema.get("items")
            return [self._below(item, items) for item in value] if isinstance(items, Mapping) else value
        if not isinstance(value, dict):
            return value
        if reference := _reference(schema):
            return self.ordered(value, reference)
        below = schema.get("additionalProperties")
        if isinstance(below, Mapping):
            return {key: self._below(value[key], below) for key in sorted(value)}
        return value

    def _names_of(self, definition: str) -> tuple[str, ...]:
        numbered: list[tuple[int, int, str]] = []
        for name, entry in self._numbers[definition].items():
            if isinstance(entry, tuple):  # an embedded struct: JSON shows its fields as the outer one's
                place, inner = entry
                numbered += [
                    (place, number, each) for each, number in inner.items() if isinstance(number, int)
                ]
            else:
                numbered.append((entry, 0, name))
        names = [name for _, _, name in sorted(numbered)]
        for name, before in self._moved.get(definition, {}).items():
            if name in names and (not before or before in names):
                names.remove(name)
                names.insert(names.index(before) + 1 if before else 0, name)
        return tuple(names)


def _reference(schema: Mapping[str, Any]) -> str:
    for each in (schema, *(schema.get("allOf") or ())):
        if reference := each.get("$ref"):
            return str(reference).rpartition("/")[2]
    return ""
