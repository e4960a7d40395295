"""Unions of a spec: which words their members are known by, and which need trying.

By a discriminator a member has certain values of a field: those that it allows there, or else those that the mapping
gives it, or else its name. Where it is one, it need not be given by hand. A type that two unions would know by
different values keeps the field as it is. So does one that is also used by itself and whose schema allows other values
there: only the union looks at them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kubewright.ir.types import (
    Definition,
    IntOrString,
    ListOf,
    Primitive,
    Quantity,
    RawJson,
    Ref,
    Scalar,
    Struct,
    Value,
)
from kubewright.ir.walk import values


class Tag(NamedTuple):
    """A field, and its values by which a member of a union is known; elsewhere a ``loose`` one may have others."""

    field: str
    words: tuple[str, ...]
    loose: bool = False


_JSON_TYPES = {
    Primitive.STRING: ("string",),
    Primitive.INTEGER: ("integer",),
    Primitive.NUMBER: ("integer", "number"),
    Primitive.BOOLEAN: ("boolean",),
}


class Unions:
    """The unions of an API; ``tags`` gives the field and values of each member, by its definition. ``used`` are the
    values that are named outside definitions."""

    def __init__(self, table: Mapping[str, Definition], used: Iterable[Value] = ()) -> None:
        self._table = table
        named = (*(definition.value for definition in table.values()), *used)
        alone = {value.type.name for each in named for value in values(each) if isinstance(value.type, Ref)}
        self.tags: dict[str, Tag] = {}
        wanted: dict[str, set[Tag]] = {}
        for definition in table.values():
            for value in values(definition.value):
                for inner in _with_alternatives(value):
                    for name, tag in self._read(inner).items():
                        wanted.setdefault(name, set()).add(tag)
        for name, tags in wanted.items():
            if len(tags) == 1:
                tag = next(iter(tags))
                is_loose = name in alone and not self._allowed(name, tag.field)
                self.tags[name] = tag._replace(loose=is_loose)

    def is_open(self, value: Value) -> bool:
        """Whether ``value`` may be anything: it has no type and no alternatives, or one of them may."""
        pending, seen = [value], set[str]()
        while pending:
            value = pending.pop()
            node = value.type
            if isinstance(node, Ref):
                target = self._table.get(node.name)
                if target is None:
                    return True
                if node.name not in seen:
                    seen.add(node.name)
                    pending.append(target.value)
            elif isinstance(node, RawJson):
                if not value.alternatives and not node.object_only:
                    return True
                pending += value.alternatives
        return False

    def is_nullable(self, value: Value) -> bool:
        """Whether ``value``, the definition that it refers to or one of its alternatives may be null."""
        pending, seen = [value], set[str]()
        while pending:
            value = pending.pop()
            if value.nullable:
                return True
            pending += value.alternatives
            if isinstance(value.type, Ref) and value.type.name in self._table and value.type.name not in seen:
                seen.add(value.type.name)
                pending.append(self._table[value.type.name].value)
        return False

    def overlap(self, value: Value) -> bool:
        """Whether some JSON may be that of two alternatives of ``value``."""
        known: list[str] = []
        plain_text = False
        for member in value.alternatives:
            found = self._json_types(member)
            is_text = isinstance(member.type, Scalar) and found == ("string",) and not member.type.format
            if not found or ({*found} & {*known} and not (is_text and plain_text and {*found} == {"string"})):
                return True
            plain_text = plain_text or is_text
            known += found
        return False

    def _json_types(self, value: Value) -> tuple[str, ...]:
        """The JSON types of a value; none for a union, which holds several by itself."""
        node, seen = value.type, set[str]()
        while isinstance(node, Ref) and node.name in self._table and node.name not in seen:
            seen.add(node.name)
            value = self._table[node.name].value
            node = value.type
        if isinstance(node, Ref) or value.alternatives:
            return ()
        if isinstance(node, Scalar):
            return _JSON_TYPES[node.primitive]
        if isinstance(node, IntOrString | Quantity):
            return ("integer", "string") if isinstance(node, IntOrString) else ("integer", "number", "string")
        return ("array",) if isinstance(node, ListOf) else ("object",)

    def _read(self, value: Value) -> dict[str, Tag]:
        """The tags of the members of one union that have the field of its discriminator."""
        discriminator = dict(value.extensions).get("discriminator")
        field = discriminator.get("propertyName") if isinstance(discriminator, dict) else discriminator
        if not isinstance(field, str):
            return {}
        referred = [each.type.name for each in value.alternatives if isinstance(each.type, Ref)]
        names = [name for name in referred if self._has(name, field)]
        mapping = discriminator.get("mapping", {}) if isinstance(discriminator, dict) else {}
        said: dict[str, list[str]] = {}
        for word, target in mapping.items():
            said.setdefault(str(target).rpartition("/")[2], []).append(str(word))
        found = {name: self._words(name, field, said.get(name, [])) for name in dict.fromkeys(names)}
        words = [word for each in found.values() for word in each]
        return {name: Tag(field, tuple(each)) for name, each in found.items()} if _differ(words) else {}

    def _words(self, name: str, field: str, said: list[str]) -> list[str]:
        """By which values of the field a member is known: what it allows there and the mapping says; without either,
        its name."""
        words = self._allowed(name, field)
        return [word for word in said or words if not words or word in words] or said or words or [name]

    def _allowed(self, name: str, field: str) -> list[str]:
        """The values of a field that the schema of a member allows; none where it allows any."""
        node = self._table[name].value.type
        members = node.fields if isinstance(node, Struct) else ()
        allowed = next(member.value.constraints.enum for member in members if member.wire_name == field)
        return [str(each) for each in allowed if isinstance(each, str)]

    def _has(self, name: str, field: str) -> bool:
        """Whether a name is that of an object with that field."""
        definition = self._table.get(name)
        node = definition.value.type if definition is not None else None
        return isinstance(node, Struct) and any(member.wire_name == field for member in node.fields)


def _differ(words: list[str]) -> bool:
    return len(set(words)) == len(words)


def _with_alternatives(value: Value) -> Iterator[Value]:
    """``value`` and the values among its alternatives."""
    yield value
    for member in value.alternatives:
        for inner in values(member):
            yield from _with_alternatives(inner)
