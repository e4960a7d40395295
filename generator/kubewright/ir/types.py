"""The types of the IR: what is at a place of an API object, and under which rules.

Data only: frozen, slotted, language-neutral. No node holds a Python identifier, a template name or an
import: ``emit/names.py`` and ``emit/layout.py`` compute those. A ``Value`` is what is at one place
(a field, a list's items, a map's values, a definition): its type, and next to the type everything the
spec says about that place. ``required``, ``nullable`` and ``default`` are three separate facts.
JSON inside nodes (defaults, enum members, extensions) is plain Python JSON and is never mutated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, TypeAlias

from kubewright.ir.merge import DEFAULT_MERGE, Merge
from kubewright.location import Location

Json: TypeAlias = Any


class Absent(Enum):
    """The value of ``default`` where a spec gives none (``None`` is a default too)."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


class Primitive(Enum):
    """The scalar types of JSON Schema."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A JSON scalar; ``format`` as the spec words it (``int32``, ``byte``, ``date-time``, …), or empty."""

    primitive: Primitive
    format: str = ""

    @property
    def is_moment(self) -> bool:
        """Whether this is a string that holds date and time by RFC 3339."""
        return self.format == "date-time" and self.primitive is Primitive.STRING


@dataclass(frozen=True, slots=True)
class IntOrString:
    """An integer or a string (``x-kubernetes-int-or-string``, or format ``int-or-string``)."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A resource quantity: a string such as ``100m`` or a number (resource.Quantity)."""


@dataclass(frozen=True, slots=True)
class Time:
    """RFC 3339 in seconds (meta/v1 Time)."""


@dataclass(frozen=True, slots=True)
class MicroTime:
    """RFC 3339 in microseconds (meta/v1 MicroTime)."""


@dataclass(frozen=True, slots=True)
class Duration:
    """A Go duration string such as ``1h30m`` (meta/v1 Duration)."""


@dataclass(frozen=True, slots=True)
class RawJson:
    """Any JSON value: no type in the schema, or an object whose unknown fields are all preserved."""

    object_only: bool = False


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to a ``Definition`` by its name; linked names always resolve."""

    name: str


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list; its merge rule stands on the ``Value`` that holds it."""

    items: Value


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map from strings to ``values`` (``additionalProperties`` without ``properties``)."""

    values: Value


@dataclass(frozen=True, slots=True)
class Struct:
    """An object with declared fields. ``extra`` is the schema of undeclared ones where the spec has
    ``additionalProperties`` next to ``properties``; ``preserve_unknown`` is the marker of that name."""

    fields: tuple[Field, ...]
    extra: Value | None = None
    preserve_unknown: bool = False


@dataclass(frozen=True, slots=True)
class EmbeddedObject:
    """A whole Kubernetes object inside another (``x-kubernetes-embedded-resource``): it has apiVersion,
    kind and metadata, and ``body`` for what the spec declares next to them."""

    body: Struct


Type: TypeAlias = (
    Scalar
    | IntOrString
    | Quantity
    | Time
    | MicroTime
    | Duration
    | RawJson
    | Ref
    | ListOf
    | MapOf
    | Struct
    | EmbeddedObject
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One CEL rule (``x-kubernetes-validations``), fields as in the CRD API."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """Value validations next to the type. ``None`` or empty means: not said. ``all_of``, ``any_of``,
    ``one_of`` and ``negated`` hold JSON schemas as the spec wrote them (in structural schemas they carry
    validations only, never types), with references left as links by definition name."""

    enum: tuple[Json, ...] = ()
    pattern: str = ""
    minimum: float | int | None = None
    maximum: float | int | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    multiple_of: float | int | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    unique_items: bool = False
    min_properties: int | None = None
    max_properties: int | None = None
    all_of: tuple[Json, ...] = ()
    any_of: tuple[Json, ...] = ()
    one_of: tuple[Json, ...] = ()
    negated: Json | None = None
    rules: tuple[Rule, ...] = ()


NO_CONSTRAINTS: Final = Constraints()


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What is at one place. ``extensions`` keeps every ``x-*`` key this IR has no node for, sorted
    by key: nothing a spec says is dropped. ``alternatives`` are the types that ``constraints.one_of`` or ``any_of``
    name where the type is any JSON: those of a union.
    Two values are equal where they say the same, in whatever words and place."""

    type: Type
    location: Location = field(compare=False)
    nullable: bool = False
    default: Json | Absent = ABSENT
    doc: str = field(default="", compare=False)
    merge: Merge = DEFAULT_MERGE
    constraints: Constraints = NO_CONSTRAINTS
    extensions: tuple[tuple[str, Json], ...] = ()
    alternatives: tuple[Value, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A named place in a struct. ``wire_name`` is the JSON key, untouched."""

    wire_name: str
    required: bool
    value: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A named type. ``name`` is the spec's own (``io.k8s.api.apps.v1.Deployment``); ``group`` and
    ``version`` say in which module it is emitted (empty in fragments whose documents do not say); ``kinds``
    are the GVKs it is registered for, as (group, version, kind), empty for parts."""

    name: str
    group: str
    version: str
    value: Value
    kinds: tuple[tuple[str, str, str], ...] = field(default=())
