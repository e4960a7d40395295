"""Objects of built-in kinds with their fields in the order in which Go writes them.

Theory. encoding/json writes fields as the struct has them, which is nearly always the order of their numbers in
protobuf; a table says where it is another. Only messages that show a whole object depend on it, so nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_TYPE_META = ("kind", "apiVersion")


class GoOrder:
    """The order of a package's definitions, of its ``protobuf.py`` (``numbers``) and ``go_types.py`` (``order``)."""

    def __init__(
        self, definitions: Mapping[str, Any], numbers: Mapping[str, Any], order: Mapping[str, Sequence[str]]
    ) -> None:
        self._definitions = definitions
        self._numbers = numbers
        self._order = order

    def ordered(self, definition: str, value: Any) -> Any:
        """A copy of a value of that definition; what the definition does not know comes last, as it was."""
        fields = (self._definitions.get(definition) or {}).get("properties")
        if not isinstance(value, dict) or not fields or definition not in self._numbers:
            return value
        order = self._order.get(definition) or list(_in_line(self._numbers[definition]))
        # The embedded TypeMeta has no number; other structs may have fields of these names.
        first = [name for name in _TYPE_META if name not in order]
        keys = dict.fromkeys(name for name in (*first, *order, *value) if name in value)
        return {key: self._value(fields.get(key), value[key]) for key in keys}

    def _value(self, schema: Any, value: Any) -> Any:
        if not isinstance(schema, dict):
            return value
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self.ordered(reference.rpartition("/")[2], value)
        if isinstance(value, list):
            return [self._value(schema.get("items"), item) for item in value]
        inner = schema.get("additionalProperties")
        if isinstance(value, dict) and inner is not None:
            return {key: self._value(inner, value[key]) for key in sorted(value)}
        return value


def _in_line(numbers: Mapping[str, Any]) -> Iterator[str]:
    """The fields in the order of their numbers; those of an embedded message are where it is."""
    for name, number in sorted(numbers.items(), key=lambda item: _number(item[1])):
        if isinstance(number, tuple):
            yield from _in_line(number[1])
        else:
            yield name


def _number(entry: Any) -> int:
    return int(entry[0] if isinstance(entry, tuple) else entry)
