"""L2, second part: bounds, defaults and enums, what a value may be besides its type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubewright.diagnostics import Severity
from kubewright.ir.types import (
    Absent,
    Constraints,
    Duration,
    EmbeddedObject,
    ListOf,
    MapOf,
    MicroTime,
    Primitive,
    Scalar,
    Struct,
    Time,
    Type,
)
from kubewright.tools.lint.places import Place, struct_of
from kubewright.tools.lint.rule import CONVENTIONS, CRD, CRD_DOCS, LintedKind, place_rule


@place_rule(
    "L205 number-bounds",
    severity=Severity.NOTE,
    profiles=CRD,
    why="A number without bounds is accepted where it makes no sense, and bounds cannot be tightened later.",
    source=f"{CONVENTIONS}: Primitive types; Validation",
    hint="set minimum and maximum",
)
def number_bounds(place: Place, kind: LintedKind) -> Iterator[str]:
    """Numbers of a spec are bounded on both sides."""
    node, limits = place.target.type, place.value.constraints
    if place.in_spec and isinstance(node, Scalar) and node.primitive in (Primitive.INTEGER, Primitive.NUMBER):
        missing = [n for n, v in (("minimum", limits.minimum), ("maximum", limits.maximum)) if v is None]
        if missing and not limits.enum:
            yield f'"{place.shown}" has no {" and no ".join(missing)}'


@place_rule(
    "L218 required-with-default",
    why="A defaulted field is never absent when it is validated, so requiring it says nothing and misleads readers.",
    source=f"{CONVENTIONS}: Optional vs. required; Defaulting",
    hint="drop it from required, or drop the default",
)
def required_with_default(place: Place, kind: LintedKind) -> Iterator[str]:
    """A field is required or defaulted, not both."""
    if place.required and place.name and not isinstance(place.value.default, Absent):
        yield f'"{place.name}" is required and has a default'


@place_rule(
    "L219 anchored-pattern",
    severity=Severity.NOTE,
    profiles=CRD,
    why="A pattern that is not anchored accepts anything around what it describes.",
    source="JSON Schema: patterns are searched for, not matched whole",
    hint="begin with ^ and end with $",
)
def anchored_pattern(place: Place, kind: LintedKind) -> Iterator[str]:
    """Patterns are anchored on both sides."""
    pattern = place.value.constraints.pattern
    if pattern and not (
        pattern.lstrip("(").startswith(("^", "\\A")) and pattern.rstrip(")").endswith(("$", "\\z"))
    ):
        yield f'pattern "{pattern}" of "{place.shown}" is not anchored'


@place_rule(
    "L220 impossible-bounds",
    severity=Severity.ERROR,
    why="No value satisfies both bounds.",
    source="JSON Schema: validation keywords",
    hint="swap or correct the bounds",
)
def impossible_bounds(place: Place, kind: LintedKind) -> Iterator[str]:
    """Lower bounds are not above upper bounds."""
    limits = place.value.constraints
    pairs = [
        ("minimum", limits.minimum, "maximum", limits.maximum),
        ("minLength", limits.min_length, "maxLength", limits.max_length),
        ("minItems", limits.min_items, "maxItems", limits.max_items),
        ("minProperties", limits.min_properties, "maxProperties", limits.max_properties),
    ]
    for low_name, low, high_name, high in pairs:
        if low is not None and high is not None and low > high:
            yield f'{low_name} {low} of "{place.shown}" is above {high_name} {high}'


@place_rule(
    "L221 enum-default",
    severity=Severity.ERROR,
    why="Every object that leaves the field out is refused.",
    source="JSON Schema: enum; structural schema rules",
    hint="choose a default from the enum",
)
def enum_default(place: Place, kind: LintedKind) -> Iterator[str]:
    """A default is a member of its enum."""
    value, members = place.value.default, place.value.constraints.enum
    if members and not isinstance(value, Absent) and value not in members:
        yield f'default {value!r} of "{place.shown}" is not in its enum'


@place_rule(
    "L222 bounded-size",
    severity=Severity.NOTE,
    profiles=CRD,
    why="Sizes without a limit let one object fill etcd, and make CEL rules over them too expensive to accept.",
    source=f"{CRD_DOCS}: Resource use by validation functions",
    hint="set maxLength, maxItems or maxProperties",
)
def bounded_size(place: Place, kind: LintedKind) -> Iterator[str]:
    """Strings, lists and maps of a spec have a largest size."""
    if not place.in_spec:
        return
    node, limits, name = place.target.type, place.value.constraints, place.shown
    if isinstance(node, ListOf) and limits.max_items is None:
        yield f'list "{name}" has no maxItems'
    elif isinstance(node, MapOf) and limits.max_properties is None:
        yield f'map "{name}" has no maxProperties'
    elif isinstance(node, Scalar) and node.primitive is Primitive.STRING:
        if limits.max_length is None and not limits.enum and not node.format:
            yield f'string "{name}" has no maxLength'


@place_rule(
    "L227 default-in-bounds",
    severity=Severity.ERROR,
    why="Every object that leaves the field out is refused.",
    source="JSON Schema: validation keywords; structural schema rules",
    hint="choose a default within the bounds",
)
def default_in_bounds(place: Place, kind: LintedKind) -> Iterator[str]:
    """A default keeps the bounds of its field."""
    value, limits = place.value.default, place.value.constraints
    if isinstance(value, bool) or not isinstance(value, int | float | str | list | dict):
        return
    size: int | float = value if isinstance(value, int | float) else len(value)
    low, high = _bounds_of(value, limits)
    if low is not None and size < low:
        yield f'default {value!r} of "{place.shown}" is below its least, {low}'
    if high is not None and size > high:
        yield f'default {value!r} of "{place.shown}" is above its most, {high}'


def _bounds_of(value: object, limits: Constraints) -> tuple[float | int | None, float | int | None]:
    if isinstance(value, str):
        return limits.min_length, limits.max_length
    if isinstance(value, list):
        return limits.min_items, limits.max_items
    if isinstance(value, dict):
        return limits.min_properties, limits.max_properties
    return limits.minimum, limits.maximum


@place_rule(
    "L228 said-twice",
    why="What stands twice was meant to be something else the second time, or is noise that hides what was.",
    source="JSON Schema: enum (values are unique)",
    hint="take the second one out, or correct it",
)
def said_twice(place: Place, kind: LintedKind) -> Iterator[str]:
    """No enum value and no list map key is listed twice."""
    for what, listed in (
        ("enum value", place.value.constraints.enum),
        ("list map key", place.value.merge.list_map_keys),
    ):
        words = [f"{value!r}" for value in listed]
        for word in sorted({word for word in words if words.count(word) > 1}):
            yield f'{what} {word} of "{place.shown}" stands twice'


KEYWORDS: Final[dict[str, tuple[str, ...]]] = {
    "string": ("pattern", "min_length", "max_length"),
    "number": ("minimum", "maximum", "multiple_of"),
    "list": ("min_items", "max_items", "unique_items"),
    "object": ("min_properties", "max_properties"),
}
"""The form of a type → the constraints that say something about it."""


@place_rule(
    "L230 idle-keyword",
    why="A keyword of another type is passed over by every validator: the bound that it promises is not there.",
    source="JSON Schema: validation keywords by type",
    hint="take it out, or put it where it holds (often on the items)",
)
def idle_keyword(place: Place, kind: LintedKind) -> Iterator[str]:
    """Bounds stand on the type that they bound."""
    form, limits = _form(place.value.type), place.value.constraints
    if not form:
        return
    for keyword in (name for other, names in KEYWORDS.items() if other != form for name in names):
        if getattr(limits, keyword) not in (None, "", False):
            yield f'{camel(keyword)} says nothing about "{place.shown}", which is of the form {form}'


def _form(node: Type) -> str:
    """Which kind of keyword holds for a type; empty where several may, or where it is defined elsewhere."""
    if isinstance(node, Scalar):
        return {Primitive.STRING: "string", Primitive.BOOLEAN: "boolean"}.get(node.primitive, "number")
    if isinstance(node, Time | MicroTime | Duration):
        return "string"
    if isinstance(node, ListOf):
        return "list"
    return "object" if isinstance(node, Struct | MapOf | EmbeddedObject) else ""


def camel(name: str) -> str:
    """``min_length`` → ``minLength``."""
    return re.sub(r"_(.)", lambda found: found[1].upper(), name)


@place_rule(
    "L231 least-size",
    severity=Severity.NOTE,
    profiles=CRD,
    why="Whether empty means something is decided here or by the first client that sends it.",
    source=f"{CONVENTIONS}: Optional vs. required",
    hint="set minLength, minItems or minProperties, to 0 where empty is meant to be allowed",
    opt_in=True,
)
def least_size(place: Place, kind: LintedKind) -> Iterator[str]:
    """Strings, lists, maps and structs without required fields of a spec say whether they may be empty."""
    node, limits, name = place.target.type, place.value.constraints, place.shown
    if not place.in_spec:
        return
    if isinstance(node, Scalar) and node.primitive is Primitive.STRING:
        if limits.min_length is None and not limits.enum and not node.format and not limits.pattern:
            yield f'string "{name}" has no minLength'
    elif isinstance(node, ListOf):
        if limits.min_items is None:
            yield f'list "{name}" has no minItems'
    elif isinstance(node, MapOf):
        if limits.min_properties is None:
            yield f'map "{name}" has no minProperties'
    else:
        body = struct_of(place.target)
        told = limits.min_properties is not None or limits.one_of or limits.any_of or limits.rules
        if body is not None and body.fields and not told and not any(f.required for f in body.fields):
            yield f'struct "{name}" requires nothing and has no minProperties'
