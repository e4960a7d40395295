"""A value with everything it refers to in the place of the reference: structural schemas have no references.

A type inside itself cannot be written out. The inner one becomes an object whose fields are all preserved, which is
what people write by hand there (controller-gen does not end on such types). Two limits keep a small description
from unfolding into an endless schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

from kubewright.diagnostics import Diagnostics
from kubewright.emit.code.schemas import SchemaWriter
from kubewright.ir.merge import DEFAULT_MERGE
from kubewright.ir.types import (
    ABSENT,
    NO_CONSTRAINTS,
    Constraints,
    Definition,
    EmbeddedObject,
    Field,
    IntOrString,
    Json,
    ListOf,
    MapOf,
    Ref,
    Struct,
    Type,
    Value,
)

MAX_VALUES = 100_000
MAX_DEPTH = 140
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
INT_OR_STRING: tuple[Json, ...] = ({"type": "integer"}, {"type": "string"})
"""What is next to ``x-kubernetes-int-or-string`` for readers that do not know the marker."""


class UndefinableError(Exception):
    """No CustomResourceDefinition can be made of a kind; the text says why."""


class Inliner:
    """Writes references out, for one kind; recursion is told to ``diagnostics`` once a type."""

    def __init__(self, kind: str, table: Mapping[str, Definition], diagnostics: Diagnostics) -> None:
        self.kind = kind
        self.table = table
        self.diagnostics = diagnostics
        self.count = 0

    def inline(self, value: Value, inside: tuple[str, ...] = (), depth: int = 0) -> Value:
        """``value`` without references. Raises ``UndefinableError``."""
        self.count += 1
        if self.count > MAX_VALUES:
            raise UndefinableError(f"its schema has more than {MAX_VALUES:,} places")
        if depth > MAX_DEPTH:
            raise UndefinableError(f"its schema nests deeper than {MAX_DEPTH} levels")
        while isinstance(value.type, Ref):
            name = value.type.name
            if name in inside:
                short = name.rpartition(".")[2]
                self.diagnostics.warning(
                    "K701",
                    f"{self.kind}: {short} holds itself; the inner one takes any fields",
                    self.table[name].value.location,
                    "a CustomResourceDefinition cannot say more; check such values in a webhook or with CEL",
                )
                return replace(value, type=Struct((), preserve_unknown=True))
            inside = (*inside, name)
            value = overlay(value, self.table[name].value)
            if name == OBJECT_META:
                value = _with_null_timestamp(value)
        return replace(value, type=self._type(value.type, inside, depth + 1))

    def _type(self, node: Type, inside: tuple[str, ...], depth: int) -> Type:
        if isinstance(node, ListOf):
            return ListOf(self.inline(node.items, inside, depth))
        if isinstance(node, MapOf):
            return MapOf(self.inline(node.values, inside, depth))
        if isinstance(node, EmbeddedObject):
            return EmbeddedObject(self._struct(_with_plain_metadata(node.body), inside, depth))
        return self._struct(node, inside, depth) if isinstance(node, Struct) else node

    def _struct(self, node: Struct, inside: tuple[str, ...], depth: int) -> Struct:
        return Struct(
            tuple(replace(field, value=self.inline(field.value, inside, depth)) for field in node.fields),
            None if node.extra is None else self.inline(node.extra, inside, depth),
            node.preserve_unknown,
        )


def _with_plain_metadata(body: Struct) -> Struct:
    """The server knows the metadata of an embedded object, and says so itself."""
    return replace(body, fields=tuple(_plain(field) for field in body.fields))


def _plain(field: Field) -> Field:
    if field.wire_name != "metadata" or field.value.type != Ref(OBJECT_META):
        return field
    return replace(field, value=replace(field.value, type=Struct(())))


def _with_null_timestamp(value: Value) -> Value:
    """Templates written by Go programs hold ``creationTimestamp: null``, which a custom resource may only where
    its schema says so."""
    if not isinstance(value.type, Struct):
        return value
    members = tuple(
        replace(field, value=replace(field.value, nullable=True))
        if field.wire_name == "creationTimestamp"
        else field
        for field in value.type.fields
    )
    return replace(value, type=replace(value.type, fields=members))


def overlay(own: Value, target: Value) -> Value:
    """What is referred to, under everything that the place of the reference says next to it."""
    constraints = _both(own.constraints, target.constraints)
    if isinstance(target.type, IntOrString) and not constraints.any_of:
        constraints = replace(constraints, any_of=INT_OR_STRING)
    return replace(
        target,
        location=own.location,
        nullable=own.nullable or target.nullable,
        default=target.default if own.default is ABSENT else own.default,
        doc=own.doc or target.doc,
        merge=target.merge if own.merge == DEFAULT_MERGE else own.merge,
        constraints=constraints,
        extensions=tuple(sorted((dict(target.extensions) | dict(own.extensions)).items())),
    )


def _both(own: Constraints, target: Constraints) -> Constraints:
    """Both validations: side by side where they speak of different things, else under ``allOf``."""
    if NO_CONSTRAINTS in (own, target):
        return target if own == NO_CONSTRAINTS else own
    joined: dict[str, Json] = {}
    clashing: dict[str, Json] = {}
    for field in fields(Constraints):
        ours, theirs = getattr(own, field.name), getattr(target, field.name)
        nothing = getattr(NO_CONSTRAINTS, field.name)
        if ours in (nothing, theirs):
            continue
        if theirs == nothing:
            joined[field.name] = ours
        elif field.name in ("all_of", "rules"):
            joined[field.name] = theirs + ours
        else:
            clashing[field.name] = ours
    if clashing:
        for bound in ("minimum", "maximum"):
            if bound in clashing:
                clashing[f"exclusive_{bound}"] = getattr(own, f"exclusive_{bound}")
                joined.pop(f"exclusive_{bound}", None)
        entry = SchemaWriter(ref_prefix="").constraints(Constraints(**clashing))
        joined["all_of"] = (*joined.get("all_of", target.all_of), entry)
    return replace(target, **joined)
