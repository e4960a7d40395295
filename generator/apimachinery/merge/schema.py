"""The merge schema: how the values of an API merge, as data.

A type is one of six forms, and a generated ``merge_schema.py`` is a literal table of them by definition name:

    TYPES = {
        "io.k8s.api.core.v1.ServiceSpec": Struct({
            "ports": Field(ListOf(Ref("io.k8s.api.core.v1.ServicePort"), MAP, ("port", "protocol")),
                           patch=("merge",), merge_key="port"),
            "selector": MapOf(STRING, atomic=True),
            "type": STRING,
        }),
    }

Server-side apply reads the form (KEP-555: atomic, set and map lists, granular and atomic maps). Strategic
merge patch reads ``Field.patch`` and ``Field.merge_key``. A type alone stands for ``Field(type)``.
Typed code compiles a table once (``typed.compile_type``); nothing here is interpreted per request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

Json: TypeAlias = Any
JsonObject: TypeAlias = dict[str, Any]


class Kind(Enum):
    """The scalar kinds that matter to merging. ``ANY`` is any scalar (int-or-string, dates, quantities)."""

    STRING = "string"
    NUMBER = "numeric"
    BOOLEAN = "boolean"
    ANY = "untyped"


class ListType(Enum):
    """``x-kubernetes-list-type``."""

    ATOMIC = "atomic"
    SET = "set"
    MAP = "map"


class Absent(Enum):
    """The default of a field that has none."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
ATOMIC: Final = ListType.ATOMIC
SET: Final = ListType.SET
MAP: Final = ListType.MAP


@dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf."""

    kind: Kind


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list. ``keys`` are the fields of an item that identify it, for a map list only."""

    items: Type
    type: ListType = ListType.ATOMIC
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object without declared fields: a map from strings to ``values``."""

    values: Type
    atomic: bool = False


@dataclass(frozen=True, slots=True)
class Struct:
    """An object with declared fields. ``rest`` is the type of undeclared ones; without it they are
    refused."""

    fields: Mapping[str, Field | Type]
    atomic: bool = False
    rest: Type | None = None


@dataclass(frozen=True, slots=True)
class Ref:
    """A named type of the table. ``atomic`` overrides how the referrer merges it, where it says so."""

    name: str
    atomic: bool | None = None


@dataclass(frozen=True, slots=True)
class Either:
    """A place without one type: the value's own form chooses among the given ones."""

    scalar: Kind | None
    list: ListOf | None
    map: MapOf | Struct | None


Type: TypeAlias = Scalar | ListOf | MapOf | Struct | Ref | Either


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct, where more is to say than its type.

    ``default`` serves only for list keys that an item omits. ``patch`` and ``merge_key`` are the strategic merge
    patch markers: words of ``x-kubernetes-patch-strategy``, and ``x-kubernetes-patch-merge-key``.
    """

    type: Type
    default: Json = ABSENT
    patch: tuple[str, ...] = ()
    merge_key: str = ""


STRING: Final = Scalar(Kind.STRING)
NUMBER: Final = Scalar(Kind.NUMBER)
BOOLEAN: Final = Scalar(Kind.BOOLEAN)
ANY: Final = Scalar(Kind.ANY)

# The two types for places of which the schema says nothing, as kube-openapi's converter names them: inside
# "deduced" objects merge field by field, while lists, and all within them, are atomic.
_UNTYPED_NAME = "__untyped_atomic_"
_DEDUCED_NAME = "__untyped_deduced_"
UNTYPED: Final = Ref(_UNTYPED_NAME)
DEDUCED: Final = Ref(_DEDUCED_NAME)
COMMON_TYPES: Final[Mapping[str, Type]] = {
    _UNTYPED_NAME: Either(Kind.ANY, ListOf(UNTYPED), MapOf(UNTYPED, atomic=True)),
    _DEDUCED_NAME: Either(Kind.ANY, ListOf(UNTYPED), MapOf(DEDUCED)),
}


def field_of(entry: Field | Type) -> Field:
    """The field that an entry of ``Struct.fields`` stands for."""
    return entry if isinstance(entry, Field) else Field(entry)
