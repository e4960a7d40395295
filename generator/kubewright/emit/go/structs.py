"""The types of one Go package: structs, enums, names for what is not an object."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kubewright.emit.code.class_plans import ClassPlan, EnumPlan, FieldPlan, ItemPlan, Layout, ModulePlan
from kubewright.emit.code.layout import MAX_NAME, numbered, opened
from kubewright.emit.code.names import class_name
from kubewright.emit.code.presence import PRESERVE
from kubewright.emit.code.type_expr import (
    ListOfExpr,
    MapOfExpr,
    NamedExpr,
    OrNull,
    PlainExpr,
    TypeExpr,
)
from kubewright.emit.go import openness
from kubewright.emit.go.markers import AtTypes, inexpressible, of_field, of_item, of_kind, of_type
from kubewright.emit.go.text import comment, string, summary, tag
from kubewright.emit.go.types import EMPTY, MACHINERY, QUANTITY, TypeTexts
from kubewright.emit.go.uses import ClassUses
from kubewright.ir.api import Resource
from kubewright.ir.types import (
    NO_CONSTRAINTS,
    IntOrString,
    Json,
    ListOf,
    MapOf,
    Quantity,
    RawJson,
    Struct,
    Value,
)

_HEAD = ("apiVersion", "kind")


class Structs:
    """Writes the types of a package. After ``types``, ``members`` gives the fields of each struct, as name and type,
    and ``held_texts`` the Go type that each named list or map is made of."""

    def __init__(
        self,
        module: str,
        layout: Layout,
        plan: ModulePlan,
        resources: Mapping[str, Resource],
        uses: Mapping[tuple[str, str], ClassUses],
        documented: bool,
    ) -> None:
        self.package = TypeTexts(module, layout)
        self.plan = plan
        self.own = [c for c in plan.classes if not c.definition.name.startswith(MACHINERY)]
        self.resources = resources
        self._uses = uses
        self.documented = documented
        self.kinds = [entry for entry in self.own if entry.kind]
        self.kind_names = {entry.name for entry in self.kinds}
        self._enums = frozenset(enum.name for enum in plan.enums)
        self.scalars = self._enums | {
            item.name for item in plan.items if not isinstance(item.type, ListOfExpr | MapOfExpr)
        }
        self.held = {item.name: item for item in plan.items if item.name not in self.scalars}
        self.held_texts: dict[str, str] = {}
        self.members: dict[str, list[tuple[str, str]]] = {}
        self.open_members: dict[str, tuple[str, list[str]]] = {}

    def _uses_of(self, name: str, module: str = "") -> ClassUses:
        return self._uses.get((module or self.plan.name, name)) or ClassUses()

    def types(self) -> list[str]:
        """All of them, as text."""
        blocks = [self._struct(entry) for entry in self.own]
        blocks += [
            f"type {alias.name} = {self.package.text(alias.type)}"
            for alias in self.plan.aliases
            if not alias.definition.name.startswith(MACHINERY)
        ]
        items = [self._item(item) for item in self.plan.items]
        if self.package.has_empty:
            blocks.append(f"// ---\n// {EMPTY} is an object without fields.\ntype {EMPTY} struct{{}}")
            self.members[EMPTY] = []
        blocks += items
        taken = {entry.name for entry in self.own} | self.scalars | self.held.keys()
        blocks += [self._enum(enum, taken) for enum in self.plan.enums]
        return blocks

    def _enum(self, enum: EnumPlan, taken: set[str]) -> str:
        base = "string" if enum.root == "StrEnum" else "int"
        values = [value for _, value in enum.members]
        shown = ";".join(string(value) if base == "string" else str(value) for value in values)
        uses = self._uses_of(enum.name)
        lines = self._doc(uses, uses.field_doc)
        lines += [f"// +kubebuilder:validation:Enum={shown}"]
        lines += [f"type {enum.name} {base}", "", f"// Values of {enum.name}.", "const ("]
        named = [(self._constant(enum, word, value, taken), value) for word, value in enum.members]
        width = max(len(name) for name, _ in named)
        for name, value in named:
            shown = string(value) if base == "string" else str(value)
            lines.append(f"\t{name.ljust(width)} {enum.name} = {shown}")
        return "\n".join([*lines, ")"])

    def _constant(self, enum: EnumPlan, word: str, value: Json, taken: set[str]) -> str:
        readable = re.search(r"\w", str(value), re.ASCII) is not None
        stem = class_name(str(value) if readable else word.title(), ())
        plain = enum.name + (stem.removeprefix("Type") if enum.root == "IntEnum" else stem)
        name, count = plain[:MAX_NAME], 2
        while name in taken:
            name, count = numbered(plain, count), count + 1
        taken.add(name)
        return name

    def _item(self, plan: ItemPlan) -> str:
        lines = comment(plan.value.doc) if self.documented else []
        lines += [f"// {marker}" for marker in of_item(plan.value, self._said_of(plan.type))]
        base = self.package.text(self.adjusted(plan.type, plan.value))
        if plan.name in self.held:
            self.held_texts[plan.name] = base
        return "\n".join([*lines, f"type {plan.name} {base}"])

    def _doc(self, uses: ClassUses, doc: str, *, is_kind: bool = False) -> list[str]:
        """The comment of a type. Where a use has no prose of its own it is that of items, if they have any: a
        description is made of it. What is for readers of Go alone then stands behind a line that ends descriptions."""
        if not self.documented:
            return []
        if is_kind or uses.doc:
            return comment(doc if is_kind else uses.doc)
        lines = summary(doc)
        return lines if uses.are_described or not lines else ["// ---", *lines]

    def _struct(self, entry: ClassPlan) -> str:
        members: list[tuple[str, str]] = []
        uses = self._uses_of(entry.name)
        lines = self._doc(uses, entry.doc, is_kind=entry.kind is not None)
        said = entry.definition.value.constraints if entry.kind else uses.constraints
        lines += [f"// {marker}" for marker in of_type(said)]
        if uses.is_atomic:
            lines.append("// +structType=atomic")
        if entry.is_open:
            lines.append("// +kubebuilder:pruning:PreserveUnknownFields")
        resource = None if entry.path else self.resources.get(entry.definition.name)
        if resource is not None:
            lines += [f"// {marker}" for marker in of_kind(resource, _has_status(resource))]
        elif entry.is_list:
            lines.append("// +kubebuilder:object:root=true")
        lines.append(f"type {entry.name} struct {{")
        body: list[str] = []
        if entry.kind:
            body = ["", '\tmetav1.TypeMeta `json:",inline"`']
        for field in entry.fields:
            if not (entry.kind and field.wire_name in _HEAD):
                body += self._field(entry, field, members)
        if entry.is_open:
            name = openness.member_name([name for name, _ in members])
            members.append((name, openness.KEPT))
            body += [
                "",
                f"\t// {name} has the fields that are not declared.",
                f'\t{name} {openness.KEPT} `json:"-"`',
            ]
            self.open_members[entry.name] = (name, [field.wire_name for field in entry.fields])
        self.members[entry.name] = members
        return "\n".join([*lines, *body[1:], "}"])

    def _field(self, entry: ClassPlan, field: FieldPlan, members: list[tuple[str, str]]) -> list[str]:
        if entry.kind and field.wire_name == "metadata":
            meta = "ListMeta" if entry.is_list else "ObjectMeta"
            members.append((meta, f"metav1.{meta}"))
            lines = ["", "\t// +required"] if field.listed and not entry.is_list else [""]
            return [*lines, f'\tmetav1.{meta} `json:"metadata,omitempty"`']
        lines = [""] + (comment(field.value.doc, "\t") if self.documented else [])
        said = self._said_of(field.type)
        lines += [f"\t// {marker}" for marker in of_field(field.value, required=field.listed, said=said)]
        if lacking := inexpressible(field.value, at_type=said.enum or said.constraints):
            lines += ["\t// ---", f"\t// No marker says: {', '.join(lacking)}."]
        text = self._type(field)
        must_be_sent = field.required and not field.nullable
        options = ""
        if not must_be_sent:
            # omitempty would drop an empty list or map, which is something else than none; omitzero drops nil alone.
            options = ",omitzero" if text.startswith(("[]", "map[")) else ",omitempty"
            text = self.package.pointer(text)
        if field.required and field.nullable:
            options, text = "", self.package.pointer(text)
        members.append((field.attribute, text))
        return [*lines, f"\t{field.attribute} {text} {tag(field.wire_name, options)}"]

    def _said_of(self, expr: TypeExpr) -> AtTypes:
        """What the types inside ``expr`` say by themselves."""
        inner = _inner(expr)
        if not isinstance(inner, NamedExpr):
            return AtTypes()
        is_own = not inner.module
        if is_own and inner.name in self._enums:
            return AtTypes(enum=True)
        is_said = (is_own and (inner.name in self.scalars or inner.name in self.held)) or (
            self._uses_of(inner.name, inner.module).constraints != NO_CONSTRAINTS
        )
        items = expr.items if isinstance(expr, ListOfExpr) else None
        return AtTypes(constraints=is_said, items=is_said and items in (inner, OrNull(inner)))

    def _type(self, field: FieldPlan) -> str:
        return self.package.text(self.adjusted(field.type, field.value))

    def adjusted(self, expr: TypeExpr, value: Value) -> TypeExpr:
        """``expr`` where Go has a type of its own: quantities, and objects without fields."""
        node = value.type
        if isinstance(expr, ListOfExpr) and isinstance(node, ListOf):
            items = opened(node.items) if (PRESERVE, True) in value.extensions else node.items
            return ListOfExpr(self.adjusted(expr.items, items))
        if isinstance(expr, MapOfExpr) and isinstance(node, MapOf):
            return MapOfExpr(self.adjusted(expr.values, node.values))
        if isinstance(expr, OrNull):
            return OrNull(self.adjusted(expr.inner, value))
        if isinstance(node, IntOrString) and value.constraints.pattern == QUANTITY:
            return PlainExpr(Quantity())
        if (
            expr == PlainExpr(RawJson(object_only=True))
            and isinstance(node, Struct)
            and not node.preserve_unknown
        ):
            return NamedExpr("", self.package.empty())
        return expr


def _has_status(resource: Resource) -> bool:
    return any(sub.name == "status" for sub in resource.subresources)


def _inner(expr: TypeExpr) -> TypeExpr:
    while isinstance(expr, ListOfExpr | MapOfExpr | OrNull):
        expr = (
            expr.items
            if isinstance(expr, ListOfExpr)
            else expr.values
            if isinstance(expr, MapOfExpr)
            else expr.inner
        )
    return expr
