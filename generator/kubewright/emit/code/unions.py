"""Which alternatives of a spec are tagged unions: ``oneOf`` or ``anyOf`` of objects, told apart by a discriminator.

A decoder reads such a union by the value of one field. So every member has that field, and one value of it: the one
that it allows there, or else the one that the mapping gives it, or else its name. A type that two unions would tag
differently is in none, and the place holds any value, as without a discriminator.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubewright.ir.types import Definition, RawJson, Struct, Value
from kubewright.ir.walk import values


class Unions:
    """The unions of an API; ``tags`` gives the field and value of each member, by its definition."""

    def __init__(self, table: Mapping[str, Definition]) -> None:
        self._table = table
        self.tags: dict[str, tuple[str, str]] = {}
        wanted: dict[str, set[tuple[str, str]]] = {}
        for definition in table.values():
            for value in values(definition.value):
                for name, tag in self._read(value).items():
                    wanted.setdefault(name, set()).add(tag)
        for name, tags in wanted.items():
            if len(tags) == 1:
                self.tags[name] = next(iter(tags))

    def members(self, value: Value) -> list[str]:
        """The definitions that ``value`` is one of; empty where it is no tagged union."""
        found = self._read(value)
        return list(found) if found and all(self.tags.get(name) == tag for name, tag in found.items()) else []

    def _read(self, value: Value) -> dict[str, tuple[str, str]]:
        alternatives = value.constraints.one_of or value.constraints.any_of
        if not alternatives or not isinstance(value.type, RawJson):
            return {}
        discriminator = dict(value.extensions).get("discriminator")
        field = discriminator.get("propertyName") if isinstance(discriminator, dict) else discriminator
        if not isinstance(field, str):
            return {}
        names = [str(part.get("$ref")) for part in alternatives if isinstance(part, dict) and len(part) == 1]
        if len(names) != len(alternatives) or len(names) < 2 or not all(map(self._is_member(field), names)):
            return {}
        mapping = discriminator.get("mapping", {}) if isinstance(discriminator, dict) else {}
        said: dict[str, list[str]] = {}
        for word, target in mapping.items():
            said.setdefault(str(target).rpartition("/")[2], []).append(str(word))
        found = {name: self._words(name, field, said.get(name, [])) for name in names}
        tags = {name: (field, words[0]) for name, words in found.items() if len(words) == 1}
        return tags if len({tag for _, tag in tags.values()}) == len(names) else {}

    def _words(self, name: str, field: str, said: list[str]) -> list[str]:
        """By which values of the field a member is known: what it allows there and the mapping says; without either,
        its name."""
        node = self._table[name].value.type
        members = node.fields if isinstance(node, Struct) else ()
        allowed = next(member.value.constraints.enum for member in members if member.wire_name == field)
        words = [str(each) for each in allowed if isinstance(each, str)]
        return [word for word in said or words if not words or word in words] or said or words or [name]

    def _is_member(self, field: str) -> _Member:
        return _Member(self._table, field)


class _Member:
    """Says whether a name is that of an object with a certain field."""

    def __init__(self, table: Mapping[str, Definition], field: str) -> None:
        self._table = table
        self._field = field

    def __call__(self, name: str) -> bool:
        definition = self._table.get(name)
        node = definition.value.type if definition is not None else None
        return isinstance(node, Struct) and any(member.wire_name == self._field for member in node.fields)
