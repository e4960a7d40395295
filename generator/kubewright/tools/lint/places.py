"""Every place of a kind, with its path and the places around it.

References are followed where the definition belongs to the linted API; what is another API's (a Pod template in a
custom resource, meta/v1 types) is a leaf: its authors are not the ones who read the findings. Each definition is
entered once per kind, so recursive types end.
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


def places_of(definition: Definition, definitions: Mapping[str, Definition]) -> Iterator[Place]:
    """The definition itself (with an empty path) and all places below it, in document order. Top-level fields
    have no parent."""
    body = struct_of(definition.value)
    yield Place("", "", definition.value, False, None, None, definition.value)
    if body is not None:
        for field in body.fields:
            yield from _field(field, body, None, definition, definitions, frozenset({definition.name}))


def struct_of(value: Value) -> Struct | None:
    """The struct that is at a value, embedded objects included."""
    kind = value.type
    return kind if isinstance(kind, Struct) else kind.body if isinstance(kind, EmbeddedObject) else None


def _field(
    field: Field,
    owner: Struct,
    parent: Place | None,
    home: Definition,
    definitions: Mapping[str, Definition],
    seen: frozenset[str],
) -> Iterator[Place]:
    path = f"{parent.path}.{field.wire_name}" if parent is not None else field.wire_name
    yield from _value(
        path, field.wire_name, field.value, field.required, owner, parent, home, definitions, seen
    )


def _value(
    path: str,
    name: str,
    value: Value,
    required: bool,
    owner: Struct | None,
    parent: Place | None,
    home: Definition,
    definitions: Mapping[str, Definition],
    seen: frozenset[str],
) -> Iterator[Place]:
    target, inside = value, seen
    if isinstance(value.type, Ref):
        found = definitions.get(value.type.name)
        if found is not None:
            target = found.value
            ours = found.group == home.group and found.name not in seen
            inside = seen | {found.name} if ours else frozenset()
    place = Place(path, name, value, required, owner, parent, target)
    yield place
    if isinstance(value.type, Ref) and not inside:
        return
    kind = target.type
    body = struct_of(target)
    if body is not None:
        for field in body.fields:
            yield from _field(field, body, place, home, definitions, inside)
        if body.extra is not None:
            yield from _value(f"{path}{{}}", "", body.extra, False, None, place, home, definitions, inside)
    elif isinstance(kind, ListOf):
        yield from _value(f"{path}[]", "", kind.items, False, None, place, home, definitions, inside)
    elif isinstance(kind, MapOf):
        yield from _value(f"{path}{{}}", "", kind.values, False, None, place, home, definitions, inside)
