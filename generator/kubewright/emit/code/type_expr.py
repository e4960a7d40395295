"""The types of fields as the layout writes them, in no language: a language turns each into its own words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from kubewright.ir.types import (
    Duration,
    IntOrString,
    Json,
    MicroTime,
    Quantity,
    RawJson,
    Scalar,
    Time,
)

Leaf: TypeAlias = Scalar | IntOrString | Quantity | Time | MicroTime | Duration | RawJson


@dataclass(frozen=True, slots=True)
class PlainExpr:
    """A type without parts."""

    type: Leaf


@dataclass(frozen=True, slots=True)
class BytesExpr:
    """Bytes as they are: the content of a file in a form."""


@dataclass(frozen=True, slots=True)
class Literals:
    """One of these strings, or of these whole numbers."""

    members: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class ListOfExpr:
    """A list."""

    items: TypeExpr


@dataclass(frozen=True, slots=True)
class MapOfExpr:
    """A map from strings."""

    values: TypeExpr


@dataclass(frozen=True, slots=True)
class OrNull:
    """A value, or null."""

    inner: TypeExpr


@dataclass(frozen=True, slots=True)
class OneOf:
    """A union. Where its members are not told apart by their JSON types, they are ``tried`` in order."""

    members: tuple[TypeExpr, ...]
    tried: bool = True


@dataclass(frozen=True, slots=True)
class NamedExpr:
    """A class, an enum or another name of the package. ``module`` is empty for one of the module that is written;
    ``definition`` is that of the spec, empty for a part of one. Values of an open one may have undeclared fields."""

    module: str
    name: str
    definition: str = ""
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class ForeignExpr:
    """A class of another package; ``alias`` is what its module is called here."""

    alias: str
    name: str
    definition: str


TypeExpr: TypeAlias = (
    PlainExpr | BytesExpr | Literals | ListOfExpr | MapOfExpr | OrNull | OneOf | NamedExpr | ForeignExpr
)

ANY: Final = PlainExpr(RawJson())
"""Any JSON value: null is one, so it is never an ``OrNull``."""


def or_null(expr: TypeExpr) -> TypeExpr:
    """``expr`` or null."""
    return expr if expr == ANY else OrNull(expr)
