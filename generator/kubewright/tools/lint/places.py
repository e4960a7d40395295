"""Every place of a kind, with its path and the places around it.

References are followed where the definition belongs to the group of the kind, or stands for equal objects that were
written out in several places, of whatever group; what is another API's (a Pod template in a custom resource, meta/v1
types) is a leaf: its authors are not the ones who read the findings. A definition is not entered inside itself, so
recursive types end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kubewright.ir.types import (
    Definition,
    EmbeddedObject,
    Field,
    Json,
    ListOf,
    MapOf,
    Primitive,
    Ref,
    Scalar,
    Struct,
    Value,
)

_OBJECT_META = frozenset(
    {"name", "generateName", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "uid"}
    | {"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields"}
    | {"resourceVersion", "selfLink"}
)


@dataclass(frozen=True, slots=True)
class Place:
    """One place: ``path`` as people write it, ``name`` the field's own (empty for items and map values)."""

    path: str
    name: str
    value: Value
    required: bool
    owner: Struct | None
    parent: Place | None
    target: Value
    """What is here once references are followed: ``value`` itself, or the definition it refers to."""

    @property
    def shown(self) -> str:
        """What to call it in a message."""
        return self.name or self.path or "the object"

    @property
    def primitive(self) -> Primitive | None:
        """The type of a scalar, None for anything else."""
        node = self.target.type
        return node.primitive if isinstance(node, Scalar) else None

    @property
    def in_status(self) -> bool:
        """Whether it lies in ``status``."""
        return self.path == "status" or self.path.startswith(("status.", "status["))

    @property
    def in_spec(self) -> bool:
        """Whether it lies in ``spec``."""
        return self.path == "spec" or self.path.startswith(("spec.", "spec["))

    @property
    def in_metadata(self) -> bool:
        """Whether it lies in ``metadata``, of the object or of a template in it: that belongs to Kubernetes."""
        if self.path == "metadata" or self.path.startswith("metadata."):
            return True
        around = self.parent
        if around is None or around.name != "metadata":
            return False
        body = struct_of(around.target)
        return body is not None and {field.wire_name for field in body.fields} <= _OBJECT_META

    @property
    def one_of(self) -> tuple[Json, ...]:
        """The alternatives that the place, or the definition it refers to, allows one of."""
        return self.value.constraints.one_of or self.target.constraints.one_of

    @property
    def doc(self) -> str:
        """The description: the field's, or that of the definition it refers to."""
        return self.value.doc or self.target.doc


def places_of(
    definition: Definition, definitions: Mapping[str, Definition], folded: frozenset[str] = frozenset()
) -> Iterator[Place]:
    """The definition itself (with an empty path) and all places below it, in document order. Top-level fields
    have no parent. ``folded`` names the definitions that stand for equal inline objects."""
    body = struct_of(definition.value)
    yield Place("", "", definition.value, False, None, None, definition.value)
    if body is not None:
        walk = _Walk(definition.group, definitions, folded)
        for field in body.fields:
            yield from walk.field(field, body, None, frozenset({definition.name}))


def struct_of(value: Value) -> Struct | None:
    """The struct that is at a value, embedded objects included."""
    kind = value.type
    return kind if isinstance(kind, Struct) else kind.body if isinstance(kind, EmbeddedObject) else None


@dataclass(frozen=True, slots=True)
class _Walk:
    """The places of one kind, which is of ``group``."""

    group: str
    definitions: Mapping[str, Definition]
    folded: frozenset[str]

    def field(
        self, field: Field, owner: Struct, parent: Place | None, seen: frozenset[str]
    ) -> Iterator[Place]:
        """A field of ``owner`` and all below it; ``seen`` are the definitions that it is inside of."""
        path = f"{parent.path}.{field.wire_name}" if parent is not None else field.wire_name
        place = Place(
            path, field.wire_name, field.value, field.required, owner, parent, self._target(field.value)
        )
        yield from self._below(place, seen)

    def _element(self, value: Value, sign: str, parent: Place, seen: frozenset[str]) -> Iterator[Place]:
        """The items of a list or the values of a map, and all below them."""
        place = Place(f"{parent.path}{sign}", "", value, False, None, parent, self._target(value))
        yield from self._below(place, seen)

    def _target(self, value: Value) -> Value:
        found = self.definitions.get(value.type.name) if isinstance(value.type, Ref) else None
        return value if found is None else found.value

    def _below(self, place: Place, seen: frozenset[str]) -> Iterator[Place]:
        yield place
        if isinstance(place.value.type, Ref):
            found = self.definitions.get(place.value.type.name)
            if found is None or found.name in seen:
                return
            if found.group != self.group and found.name not in self.folded:
                return
            seen |= {found.name}
        kind = place.target.type
        body = struct_of(place.target)
        if body is not None:
            for field in body.fields:
                yield from self.field(field, body, place, seen)
            if body.extra is not None:
                yield from self._element(body.extra, "{}", place, seen)
        elif isinstance(kind, ListOf):
            yield from self._element(kind.items, "[]", place, seen)
        elif isinstance(kind, MapOf):
            yield from self._element(kind.values, "{}", place, seen)
