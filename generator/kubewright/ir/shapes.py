"""Equal object schemas as one definition.

A CRD writes everything out: a type used in forty places is there forty times. ``fold`` finds inline objects that say
the same (fields, types, defaults, merge rules, bounds; prose, places and rules across fields aside), gives each shape
that is used more than once a definition of its own, named for what it is, and puts references in its place. What
is at one place alone (its merge rule, default, prose) stays there.

Shapes that are copies of types an installed package has (``known``) become references to those; such definitions are
in ``Api.external`` and not in ``Api.definitions``.

``shape_names`` chooses the names. What is used once stays inline and is called after its whole place, so that
no field that is added elsewhere takes its name away. Users who want it shorter name it (``names``): that makes a
definition of it, after which what is inside is called too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from kubewright.ir.api import Api, External
from kubewright.ir.shape_names import Edge, NamesError, Shape, name_shapes
from kubewright.ir.types import (
    ABSENT,
    NO_CONSTRAINTS,
    Definition,
    EmbeddedObject,
    Field,
    ListOf,
    MapOf,
    Ref,
    Struct,
    Type,
    Value,
)
from kubewright.ir.versions import version_priority
from kubewright.ir.words import singular

Key = tuple[object, ...]


class Known(Protocol):
    """The types of an installed package."""

    def find(self, struct: Struct, word: str, value: Value) -> External | None:
        """The type that ``struct``, which is ``value``'s and is under the field ``word``, is a copy of."""

    def external(self, name: str) -> External | None:
        """The type called ``name``."""


@dataclass(frozen=True, slots=True)
class _Inline:
    """Stands for a shape until it is known which of them are folded."""

    number: int


def fold(
    api: Api,
    known: Known | None = None,
    *,
    prose: bool = False,
    by_file: bool = False,
    names: Mapping[str, str] | None = None,
) -> Api:
    """``api`` with equal inline objects folded, and copies of types that ``known`` knows taken from there. With
    ``prose`` only those are equal that are described in the same words and have the same rules, with ``by_file`` only
    those of one file. ``names`` are those of objects by place (``Book.spec.shelf``; lists and maps are passed through),
    of every group and version that has it. Raises ``NamesError``."""
    return _Folder(api, known, prose, by_file, names or {}).fold()


class _Folder:
    def __init__(
        self, api: Api, known: Known | None, prose: bool, by_file: bool, names: Mapping[str, str]
    ) -> None:
        self.api = api
        self.by_file = by_file
        self.names = names
        self.prose = prose
        self.known = known
        self.shapes: list[Shape] = []
        self.by_key: dict[Key, int] = {}
        self.external: dict[str, External] = {}

    def fold(self) -> Api:
        replaced = self._borrow() if self.known is not None else frozenset()
        own = [d for d in self.api.definitions if d.name not in replaced]
        ordered = sorted(own, key=_readiness)
        roots = {definition.name: self._root(definition) for definition in ordered}
        self._count(ordered, roots)
        for path, name in self.names.items():
            self._give(path, name, roots)
        folded = [shape for shape in self.shapes if self._is_folded(shape)]
        name_shapes(folded, self.shapes, self.api.definitions)
        made = [
            Definition(
                name=shape.definition,
                group=shape.edges[0].owner.group,
                version=shape.edges[0].owner.version,
                value=replace(
                    shape.value,
                    type=self._written(shape.struct),
                    default=ABSENT,
                    nullable=False,
                    constraints=NO_CONSTRAINTS,
                    extensions=(),
                ),
            )
            for shape in folded
        ]
        definitions = [replace(d, value=self._finished(roots[d.name])) for d in own]
        return replace(
            self.api,
            definitions=tuple(sorted([*definitions, *made], key=lambda d: (d.group, d.version, d.name))),
            folded=frozenset(d.name for d in made),
            external=tuple(sorted({*self.api.external, *self.external.values()}, key=lambda e: e.definition)),
        )

    def _borrow(self) -> frozenset[str]:
        """What the API only refers to is referred to where the installed package has it."""
        assert self.known is not None
        found = {name: self.known.external(name) for name in self.api.borrowed}
        self.external |= {name: external for name, external in found.items() if external is not None}
        return frozenset(self.external)

    # first pass: every inline object becomes the number of its shape

    def _root(self, definition: Definition) -> Value:
        node = definition.value.type
        if isinstance(node, Struct):
            return replace(definition.value, type=self._parts(node))
        if isinstance(node, EmbeddedObject):
            return replace(definition.value, type=EmbeddedObject(self._parts(node.body)))
        return self._value(definition.value, definition.name.rpartition(".")[2])

    def _parts(self, node: Struct) -> Struct:
        fields = tuple(replace(f, value=self._value(f.value, f.wire_name)) for f in node.fields)
        extra = None if node.extra is None else self._value(node.extra, "value")
        return Struct(fields, extra, node.preserve_unknown)

    def _value(self, value: Value, word: str, *, held: bool = False) -> Value:
        """``value`` with shapes in place of objects; ``held`` says that a list or a map holds it."""
        node = value.type
        if isinstance(node, ListOf):
            return replace(value, type=ListOf(self._value(node.items, singular(word), held=True)))
        if isinstance(node, MapOf):
            return replace(value, type=MapOf(self._value(node.values, singular(word), held=True)))
        if isinstance(node, EmbeddedObject):
            return replace(value, type=EmbeddedObject(self._parts(node.body)))
        if not isinstance(node, Struct) or not (node.fields or word == "metadata"):
            return value
        if self.known is not None and (found := self.known.find(node, word, value)) is not None:
            self.external[found.definition] = found
            return replace(value, type=Ref(found.definition))
        if not node.fields:
            return value
        struct = self._parts(node)
        # A field describes what is in it; of what a list holds, some languages can say so at its type alone.
        prose = value.doc if self.prose and held else ""
        key = (value.location.file if self.by_file else "", prose, *_key_of(struct, self.prose))
        number = self.by_key.setdefault(key, len(self.shapes))
        if number == len(self.shapes):
            self.shapes.append(Shape(number, struct, value))
        return replace(value, type=_Inline(number))  # type: ignore[arg-type]

    # second pass: where each shape is used, shapes around first

    def _count(self, ordered: list[Definition], roots: dict[str, Value]) -> None:
        entered: set[int] = set()
        pending: list[tuple[Definition, int | None, int, Value]] = [
            (d, None, 0, roots[d.name]) for d in ordered
        ]
        while pending:
            following: list[tuple[Definition, int | None, int, Value]] = []
            for owner, parent, depth, value in pending:
                for word, number in _inlines(value, ""):
                    shape = self.shapes[number]
                    shape.edges.append(Edge(owner, parent, word, depth))
                    if number not in entered:
                        entered.add(number)
                        inner = replace(value, type=shape.struct)
                        following.append((owner, number, depth + 1, inner))
            pending = following
        self._settle()

    def _settle(self) -> None:
        """Puts a part where the first of the shapes around it is.

        So references go from less ready definitions to readier ones only, and modules do not import each other. Parts
        have smaller numbers than what is around them.
        """
        for shape in reversed(self.shapes):
            shape.edges = [
                edge if edge.parent is None else replace(edge, owner=self.shapes[edge.parent].edges[0].owner)
                for edge in shape.edges
            ]
            shape.edges.sort(key=lambda edge: (_readiness(edge.owner), edge.depth))

    def _is_folded(self, shape: Shape) -> bool:
        return len(shape.edges) > 1 or bool(shape.given)

    # names

    def _give(self, path: str, name: str, roots: Mapping[str, Value]) -> None:
        """Gives the objects at ``path`` a name."""
        owner, *words = path.split(".")
        values = [value for each, value in roots.items() if each.rpartition(".")[2] == owner]
        if not values:
            raise NamesError(f"{path}: there is no {owner}")
        for word in words:
            fields = [
                field for value in values for field in self._fields_in(value) if field.wire_name == word
            ]
            values = [field.value for field in fields]
            if not values:
                raise NamesError(f"{path}: there is no field {word}, or it is of a type that has a name")
        numbers = {number for value in values for _, number in _inlines(value, "") if _is_inline(value)}
        if not numbers:
            raise NamesError(f"{path}: this is no object, or of a type that has a name")
        for number in numbers:
            shape = self.shapes[number]
            if shape.given not in ("", name):
                raise NamesError(f"{path}: this is the same type as another that is to be {shape.given}")
            shape.given = name

    def _fields_in(self, value: Value) -> Sequence[Field]:
        node: object = _without_containers(value).type
        if isinstance(node, _Inline):
            return self.shapes[node.number].struct.fields
        body = node.body if isinstance(node, EmbeddedObject) else node
        return body.fields if isinstance(body, Struct) else ()

    # third pass: references and what stays inline

    def _finished(self, value: Value) -> Value:
        return replace(value, type=self._written(value.type))

    def _written(self, node: Type) -> Type:
        if isinstance(node, _Inline):
            shape = self.shapes[node.number]
            return Ref(shape.definition) if shape.definition else self._written(shape.struct)
        if isinstance(node, ListOf):
            return ListOf(self._finished(node.items))
        if isinstance(node, MapOf):
            return MapOf(self._finished(node.values))
        if isinstance(node, EmbeddedObject):
            body = self._written(node.body)
            assert isinstance(body, Struct)
            return EmbeddedObject(body)
        if isinstance(node, Struct):
            fields = tuple(replace(f, value=self._finished(f.value)) for f in node.fields)
            extra = None if node.extra is None else self._finished(node.extra)
            return Struct(fields, extra, node.preserve_unknown)
        return node


def _readiness(definition: Definition) -> tuple[object, ...]:
    """Definitions of the stable and newest versions first: there a shape of several versions is defined."""
    return (definition.group, _falling(version_priority(definition.version)), definition.name)


def _falling(priority: tuple[int, ...] | tuple[object, ...]) -> tuple[object, ...]:
    return tuple(-part if isinstance(part, int) else part for part in priority)


def _without_containers(value: Value) -> Value:
    while isinstance(value.type, ListOf | MapOf):
        value = value.type.items if isinstance(value.type, ListOf) else value.type.values
    return value


def _is_inline(value: Value) -> bool:
    node: object = _without_containers(value).type
    return isinstance(node, _Inline)


def _inlines(value: Value, word: str) -> Iterator[tuple[str, int]]:
    """The shapes directly inside ``value``, with the word each is under."""
    node: object = value.type
    if isinstance(node, _Inline):
        yield word, node.number
    elif isinstance(node, ListOf):
        yield from _inlines(node.items, singular(word))
    elif isinstance(node, MapOf):
        yield from _inlines(node.values, singular(word))
    elif isinstance(node, EmbeddedObject | Struct):
        body = node.body if isinstance(node, EmbeddedObject) else node
        for member in body.fields:
            yield from _inlines(member.value, member.wire_name)
        if body.extra is not None:
            yield from _inlines(body.extra, "value")


def _key_of(struct: Struct, prose: bool) -> Key:
    fields = tuple(sorted((f.wire_name, f.required, _value_key(f.value, prose)) for f in struct.fields))
    extra = None if struct.extra is None else _value_key(struct.extra, prose)
    return ("struct", fields, extra, struct.preserve_unknown)


def _value_key(value: Value, prose: bool) -> str:
    """A text that is the same for values that say the same."""
    node: object = value.type
    said: list[object] = []
    if isinstance(node, _Inline):
        said.append(node.number)
    elif isinstance(node, ListOf):
        said.append(["list", _value_key(node.items, prose)])
    elif isinstance(node, MapOf):
        said.append(["map", _value_key(node.values, prose)])
    elif isinstance(node, EmbeddedObject):
        said.append(["embedded", repr(_key_of(node.body, prose))])
    elif isinstance(node, Struct):
        said.append(["struct", repr(_key_of(node, prose))])
    else:
        said.append(repr(node))
    if prose and value.doc:
        said.append(["prose", value.doc])
    if value.nullable:
        said.append("nullable")
    if value.default is not ABSENT:
        said.append(["default", value.default])
    if value.merge.list_type_declared or value.merge.map_type_declared or value.merge.patch_strategy:
        said.append(repr(value.merge))
    if value.constraints is not NO_CONSTRAINTS:
        plain = value.constraints
        if not prose:
            plain = replace(plain, rules=(), all_of=(), any_of=(), one_of=(), negated=None)
        if plain != NO_CONSTRAINTS:
            said.append(repr(plain))
    preserved = [key for key, given in value.extensions if given is True]
    if preserved:
        said.append(preserved)
    return json.dumps(said, sort_keys=True, default=str)
