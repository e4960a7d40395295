"""The types of one Go package: structs, enums, names for what is not an object."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kubewright.emit.code.layout import ClassPlan, EnumPlan, FieldPlan, Layout, ModulePlan
from kubewright.emit.code.names import class_name
from kubewright.emit.code.type_expr import (
    ListOfExpr,
    MapOfExpr,
    NamedExpr,
    OrNull,
    PlainExpr,
    TypeExpr,
)
from kubewright.emit.go.markers import inexpressible, of_field, of_kind, of_type
from kubewright.emit.go.text import comment, string, tag
from kubewright.emit.go.types import MACHINERY, QUANTITY, TypeTexts
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
    """Writes the types of a package. After ``types``, ``members`` gives the fields of each struct, as name and type."""

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
        self.enums = frozenset(enum.name for enum in plan.enums)
        self.members: dict[str, list[tuple[str, str]]] = {}

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
        if self.package.has_empty:
            blocks.append("type EmptyObject struct{}")
            self.members["EmptyObject"] = []
        taken = {entry.name for entry in self.own} | self.enums
        blocks += [self._enum(enum, taken) for enum in self.plan.enums]
        return blocks

    def _enum(self, enum: EnumPlan, taken: set[str]) -> str:
        base = "string" if enum.root == "StrEnum" else "int"
        values = [value for _, value in enum.members]
        shown = ";".join(string(value) if base == "string" else str(value) for value in values)
        lines = [f"// +kubebuilder:validation:Enum={shown}"]
        lines += [f"type {enum.name} {base}", "", "// What it can be.", "const ("]
        named = [(self._constant(enum, word, value, taken), value) for word, value in enum.members]
        width = max(len(name) for name, _ in named)
        for name, value in named:
            shown = string(value) if base == "string" else str(value)
            lines.append(f"\t{name.ljust(width)} {enum.name} = {shown}")
        return "\n".join([*lines, ")"])

    def _constant(self, enum: EnumPlan, word: str, value: Json, taken: set[str]) -> str:
        readable = re.search(r"\w", str(value), re.ASCII) is not None
        stem = class_name(str(value) if readable else word.title(), ())
        plain = name = enum.name + (stem.removeprefix("Type") if enum.root == "IntEnum" else stem)
        count = 2
        while name in taken:
            name, count = f"{plain}{count}", count + 1
        taken.add(name)
        return name

    def _struct(self, entry: ClassPlan) -> str:
        members: list[tuple[str, str]] = []
        uses = self._uses_of(entry.name)
        doc = entry.doc if entry.kind else uses.doc
        lines = comment(doc) if self.documented else []
        if self.documented and entry.doc and not lines:
            lines = ["// ---", *comment(entry.doc)]  # for readers of Go: a description ends there
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
        self.members[entry.name] = members
        return "\n".join([*lines, *body[1:], "}"])

    def _field(self, entry: ClassPlan, field: FieldPlan, members: list[tuple[str, str]]) -> list[str]:
        if entry.kind and field.wire_name == "metadata":
            meta = "ListMeta" if entry.is_list else "ObjectMeta"
            members.append((meta, f"metav1.{meta}"))
            lines = ["", "\t// +required"] if field.listed and not entry.is_list else [""]
            return [*lines, f'\tmetav1.{meta} `json:"metadata,omitempty"`']
        lines = [""] + (comment(field.value.doc, "\t") if self.documented else [])
        inner = _inner(field.type)
        typed = isinstance(inner, NamedExpr) and inner.name in self.enums
        at_type = (
            not typed
            and isinstance(inner, NamedExpr)
            and self._uses_of(inner.name, inner.module).constraints != NO_CONSTRAINTS
        )
        markers = of_field(field.value, required=field.listed, enum_is_typed=typed, at_type=at_type)
        lines += [f"\t// {marker}" for marker in markers]
        if lacking := inexpressible(field.value):
            lines.append(f"\t// No marker says: {', '.join(lacking)}.")
        text = self._type(field)
        must_be_sent = field.required and not field.nullable
        options = ""
        if not must_be_sent:
            options = ",omitzero" if text.startswith(("[]", "map[")) else ",omitempty"
            text = self.package.pointer(text)
        if field.required and field.nullable:
            options, text = "", self.package.pointer(text)
        members.append((field.attribute, text))
        return [*lines, f"\t{field.attribute} {text} {tag(field.wire_name, options)}"]

    def _type(self, field: FieldPlan) -> str:
        return self.package.text(self.adjusted(field.type, field.value))

    def adjusted(self, expr: TypeExpr, value: Value) -> TypeExpr:
        """``expr`` where Go has a type of its own: quantities, and objects without fields."""
        node = value.type
        if isinstance(expr, ListOfExpr) and isinstance(node, ListOf):
            return ListOfExpr(self.adjusted(expr.items, node.items))
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
