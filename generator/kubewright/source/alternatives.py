"""Members of unions: lists of types as alternatives, and names for the objects that are written out among them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from kubewright.ir.types import (
    ABSENT,
    Definition,
    EmbeddedObject,
    Json,
    ListOf,
    MapOf,
    Ref,
    Struct,
    Type,
    Value,
)
from kubewright.ir.words import singular

_TYPES = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}
_OF_THE_PLACE = frozenset(
    {"description", "title", "default", "example", "examples", "readOnly", "writeOnly", "deprecated"}
)

_LONGEST_TITLE = 40  # longer ones are sentences


def by_type(schema: Json) -> Json | None:
    """A schema of several types (OpenAPI 3.1) as alternatives of one each; ``None`` for any other."""
    words = schema.get("type")
    if not isinstance(words, list) or len([word for word in words if word != "null"]) < 2:
        return None
    if not all(isinstance(word, str) and word in _TYPES for word in words):
        return None
    if "oneOf" in schema or "anyOf" in schema:
        return {key: item for key, item in schema.items() if key != "type"}
    around = {key: item for key, item in schema.items() if key in _OF_THE_PLACE or key.startswith("x-")}
    bounds = {key: item for key, item in schema.items() if key not in around and key != "type"}
    return {**around, "anyOf": [_of_type(bounds, word) for word in words]}


def _of_type(bounds: Json, word: str) -> Json:
    part = {**bounds, "type": word}
    if word == "array":
        part.setdefault("items", {})
    members = part.get("enum")
    if isinstance(members, list):
        part["enum"] = [
            each
            for each in members
            if isinstance(each, _TYPES[word]) and (word == "boolean" or not isinstance(each, bool))
        ]
        if not part["enum"]:
            del part["enum"]
    return part


def name_alternatives(definitions: Iterable[Definition]) -> tuple[Definition, ...]:
    """``definitions`` with every object that is written out as a member of a union as a definition of its own."""
    given = tuple(definitions)
    naming = _Naming({definition.name for definition in given})
    named = [replace(each, value=naming.value(each.value, each.name)) for each in given]
    return (*named, *naming.made)


class _Naming:
    def __init__(self, taken: set[str]) -> None:
        self.made: list[Definition] = []
        self._taken = taken

    def value(self, value: Value, name: str) -> Value:
        """``value``, which is called ``name``, with the objects among alternatives named."""
        members = tuple(
            self._named(member, name, number) for number, member in enumerate(value.alternatives, 1)
        )
        return replace(value, type=self._type(value.type, name), alternatives=members)

    def _type(self, node: Type, name: str) -> Type:
        if isinstance(node, ListOf):
            return ListOf(self.value(node.items, singular(name)))
        if isinstance(node, MapOf):
            return MapOf(self.value(node.values, singular(name)))
        if isinstance(node, EmbeddedObject):
            return EmbeddedObject(self._struct(node.body, name))
        return self._struct(node, name) if isinstance(node, Struct) else node

    def _struct(self, node: Struct, name: str) -> Struct:
        fields = (
            replace(field, value=self.value(field.value, name + _word(field.wire_name)))
            for field in node.fields
        )
        extra = None if node.extra is None else self.value(node.extra, f"{name}Value")
        return replace(node, fields=tuple(fields), extra=extra)

    def _named(self, member: Value, name: str, number: int) -> Value:
        node = member.type
        if isinstance(node, ListOf):
            return replace(member, type=ListOf(self._named(node.items, singular(name), number)))
        if isinstance(node, MapOf):
            return replace(member, type=MapOf(self._named(node.values, singular(name), number)))
        if not isinstance(node, Struct) or not node.fields:
            return self.value(member, f"{name}{number}")
        free = next(each for each in _names(member, node, name, number) if each not in self._taken)
        self._taken.add(free)
        plain = replace(member, nullable=False, default=ABSENT)
        at = len(self.made)
        self.made.append(Definition(name=free, group="", version="", value=plain))
        self.made[at] = replace(self.made[at], value=self.value(plain, free))
        return Value(type=Ref(free), location=member.location, nullable=member.nullable)


def _names(member: Value, node: Struct, owner: str, number: int) -> Iterator[str]:
    """What a written-out member may be called, best first: its title, the one value of its first enum, its place."""
    title = dict(member.extensions).get("title")
    if isinstance(title, str) and len(_word(title)) <= _LONGEST_TITLE:
        yield _word(title)
        yield owner + _word(title)
    words = [field.value.constraints.enum for field in node.fields if len(field.value.constraints.enum) == 1]
    if words and isinstance(words[0][0], str):
        yield owner + _word(words[0][0])
    while True:
        yield f"{owner}Member{number}"
        number += 1


def _word(text: str) -> str:
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", text) if part]
    return "".join(part[0].upper() + part[1:] for part in parts) or "Value"
