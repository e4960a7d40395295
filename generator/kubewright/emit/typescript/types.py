"""The types of one group-version as interfaces, from the layout that all languages share.

A field that need not be sent may be absent, one that may be null says so. ``apiVersion`` and ``kind`` of a kind are
literals, so a union of kinds is told apart by them, and the metadata of a kind is always there. Objects that keep
unknown fields have an index signature; enums are unions of literals; JSON has no times, so they are strings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from kubewright.emit.code.class_plans import ClassPlan, FieldPlan, ModulePlan
from kubewright.emit.code.names import Naming
from kubewright.emit.code.type_expr import (
    BytesExpr,
    ForeignExpr,
    ListOfExpr,
    Literals,
    MapOfExpr,
    NamedExpr,
    OneOf,
    OrNull,
    PlainExpr,
    TypeExpr,
)
from kubewright.emit.typescript.text import comment, default_tag, literal, property_name
from kubewright.ir.types import ABSENT, IntOrString, Primitive, Quantity, RawJson, Scalar
from kubewright.ir.versions import join_api_version

_SCALARS = {
    Primitive.STRING: "string",
    Primitive.INTEGER: "number",
    Primitive.NUMBER: "number",
    Primitive.BOOLEAN: "boolean",
}
UNION = "AnyKind"


def _members(wire_names: Iterable[str], modules: Collection[str]) -> dict[str, str]:
    return {name: name for name in wire_names}


NAMING = Naming(frozenset({UNION}), _members)


@dataclass(frozen=True, slots=True)
class TypeWriter:
    """Writes modules of types."""

    documented: bool

    def module(self, plan: ModulePlan) -> str:
        """All types of a module."""
        blocks = [self._interface(entry) for entry in plan.classes]
        for alias in plan.aliases:
            doc = comment(alias.definition.value.doc) if self.documented else []
            blocks.append("\n".join([*doc, f"export type {alias.name} = {type_text(alias.type)};"]))
        kinds = [entry.name for entry in plan.classes if entry.kind and not entry.is_list]
        if kinds:
            title = f"/** Any kind of {_plain(plan.api_version)}: `kind` tells which. */"
            blocks.append(f"{title}\nexport type {UNION} = {' | '.join(kinds)};")
        return "\n\n".join(blocks)

    def _interface(self, plan: ClassPlan) -> str:
        doc = comment(plan.doc) if self.documented else []
        lines = [*doc, f"export interface {plan.name} {{"]
        for field in plan.fields:
            lines += self._field(plan, field)
        if plan.is_open:
            lines.append("  [key: string]: unknown;")
        return "\n".join([*lines, "}"])

    def _field(self, plan: ClassPlan, field: FieldPlan) -> Iterator[str]:
        if self.documented and not (
            plan.kind and field.wire_name in ("apiVersion", "kind")
        ):  # the type says it
            tags = [] if field.default is ABSENT else [default_tag(field.default)]
            yield from comment(field.value.doc, "  ", tags)
        text, required = type_text(field.type), field.required
        if plan.kind and field.wire_name in ("apiVersion", "kind"):
            group, version, kind = plan.kind
            text = literal(join_api_version(group, version) if field.wire_name == "apiVersion" else kind)
            required = True
        elif plan.kind and not plan.is_list and field.wire_name == "metadata":
            required = True
        elif plan.tag and not plan.tag.loose and field.wire_name == plan.tag.field:
            text, required = " | ".join(map(literal, plan.tag.words)), True
        if field.nullable and text != "unknown":
            text += " | null"
        yield f"  {property_name(field.wire_name)}{'' if required else '?'}: {text};"


def type_text(expr: TypeExpr) -> str:
    """A type as text."""
    match expr:
        case PlainExpr():
            return _plain_type(expr)
        case BytesExpr():
            return "Uint8Array"
        case Literals(members):
            return " | ".join(literal(member) for member in members)
        case ListOfExpr(items):
            inner = type_text(items)
            return f"({inner})[]" if " " in inner else f"{inner}[]"
        case MapOfExpr(values):
            return f"{{ [key: string]: {type_text(values)} }}"
        case OrNull(inner):
            return f"{type_text(inner)} | null"
        case OneOf(members):
            return " | ".join(map(type_text, members))
        case NamedExpr(module, name):
            return f"{module}.{name}" if module else name
        case ForeignExpr(alias, name):
            return f"{alias}.{name}"


def _plain_type(expr: PlainExpr) -> str:
    node = expr.type
    if isinstance(node, Scalar):
        return _SCALARS[node.primitive]
    if isinstance(node, RawJson):
        return "{ [key: string]: unknown }" if node.object_only else "unknown"
    return {IntOrString: "number | string", Quantity: "string | number"}.get(type(node), "string")


def _plain(api_version: str) -> str:
    return "".join(character for character in api_version if character.isalnum() or character in "./-")
