"""Apply configurations: each struct with every field a pointer, and a method for each field that sets it.

What is applied says only what its sender wants to own: nothing is there unless it was set. Names and shapes are those
of client-go's ``applyconfigurations``.
"""

from __future__ import annotations

from kubewright.emit.code.layout import MAX_NAME, ClassPlan, Layout, ModulePlan
from kubewright.emit.code.type_expr import ListOfExpr, MapOfExpr, NamedExpr, OrNull, TypeExpr
from kubewright.emit.go.imports import file_of
from kubewright.emit.go.structs import Structs
from kubewright.emit.go.text import string, tag
from kubewright.ir.versions import join_api_version

_SUFFIXES = ("ApplyConfiguration", "Apply", "AC")


def configuration_name(name: str) -> str:
    """The configuration of a class: called as client-go calls it, or shorter where that would be too long."""
    suffix = next((suffix for suffix in _SUFFIXES if len(name + suffix) <= MAX_NAME), _SUFFIXES[-1])
    return name[: MAX_NAME - len(suffix)] + suffix


def apply_file(structs: Structs) -> str:
    """``applyconfiguration/types.go`` of a package."""
    return file_of("applyconfiguration", Configurations(structs).blocks(), structs.package)


class Configurations:
    """Writes the apply configurations of one package."""

    def __init__(self, structs: Structs) -> None:
        self._structs = structs
        self._plan: ModulePlan = structs.plan
        self._layout: Layout = structs.package.layout
        self._classes = {
            (plan.name, entry.name)
            for plan in self._layout.modules
            for entry in plan.classes
            if not entry.is_list
        }
        self._own = structs.package

    def blocks(self) -> list[str]:
        """The text of each configuration."""
        return [self._configuration(entry) for entry in self._structs.own if not entry.is_list]

    def _configuration(self, entry: ClassPlan) -> str:
        name = configuration_name(entry.name)
        lines = [f"// {name} is {entry.name} as somebody applies it.", f"type {name} struct {{"]
        body: list[str] = []
        setters: list[str] = []
        if entry.kind:
            body.append('\tmetav1ac.TypeMetaApplyConfiguration `json:",inline"`')
            setters.append(self._constructor(entry, name))
        for field in entry.fields:
            if entry.kind and field.wire_name in ("apiVersion", "kind"):
                continue
            if entry.kind and field.wire_name == "metadata":
                body.append('\t*metav1ac.ObjectMetaApplyConfiguration `json:"metadata,omitempty"`')
                continue
            text = self._text(self._structs.adjusted(field.type, field.value))
            stored = text if text.startswith(("[]", "map[")) else f"*{text.removeprefix('*')}"
            options = ",omitzero" if stored.startswith(("[]", "map[")) else ",omitempty"
            body.append(f"\t{field.attribute} {stored} {tag(field.wire_name, options)}")
            setters.append(_setter(name, field.attribute, stored))
        return "\n\n".join(["\n".join([*lines, "\n\n".join(body), "}"]).replace("{\n\n}", "{\n}"), *setters])

    def _constructor(self, entry: ClassPlan, name: str) -> str:
        assert entry.kind is not None
        group, version, kind = entry.kind
        resource = self._structs.resources.get(entry.definition.name)
        namespaced = resource is None or resource.namespaced
        arguments = "name, namespace string" if namespaced else "name string"
        place = "\tb.ObjectMetaApplyConfiguration.Namespace = &namespace\n" if namespaced else ""
        return (
            f"// {entry.name} declares what is applied to one object.\n"
            f"func {entry.name}({arguments}) *{name} {{\n\tb := &{name}{{}}\n"
            f"\tapiVersion, kind := {string(join_api_version(group, version))}, {string(kind)}\n"
            "\tb.APIVersion, b.Kind = &apiVersion, &kind\n"
            "\tb.ObjectMetaApplyConfiguration = &metav1ac.ObjectMetaApplyConfiguration{Name: &name}\n"
            f"{place}\treturn b\n}}"
        )

    def _text(self, expr: TypeExpr) -> str:
        """A type in which classes of this API are configurations."""
        if isinstance(expr, ListOfExpr):
            return f"[]{self._text(expr.items)}"
        if isinstance(expr, MapOfExpr):
            return f"map[string]{self._text(expr.values)}"
        if isinstance(expr, OrNull):
            return self._own.pointer(self._text(expr.inner))
        text = self._own.text(expr)
        if not isinstance(expr, NamedExpr) or text.startswith(
            ("metav1.", "runtime.", "resource.", "intstr.")
        ):
            return text
        home = expr.module or self._plan.name
        if (home, expr.name) in self._classes:
            name = configuration_name(expr.name)
            return name if home == self._plan.name else f"{home}_ac.{name}"
        return text if expr.module else f"{self._plan.name}.{text}"


def _setter(name: str, attribute: str, stored: str) -> str:
    head = f"// With{attribute} sets {attribute}.\nfunc (b *{name}) With{attribute}"
    if stored.startswith("[]") and stored != "[]byte":
        argument, value = f"values ...{stored[2:]}", f"append(b.{attribute}, values...)"
    elif stored.startswith(("map[", "[]")) or (stored.startswith("*") and stored.endswith(_SUFFIXES)):
        argument, value = f"value {stored}", "value"
    else:
        argument, value = f"value {stored[1:]}", "&value"
    return f"{head}({argument}) *{name} {{\n\tb.{attribute} = {value}\n\treturn b\n}}"
