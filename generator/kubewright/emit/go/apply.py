"""Apply configurations: each struct with every field a pointer, and a method for each field that sets it.

What is applied says only what its sender wants to own: nothing is there unless it was set. Names and shapes are those
of client-go's ``applyconfigurations``.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubewright.emit.code.class_plans import ClassPlan, ModulePlan
from kubewright.emit.code.layout import MAX_NAME
from kubewright.emit.code.type_expr import ListOfExpr, MapOfExpr, NamedExpr, OrNull, TypeExpr
from kubewright.emit.go import openness
from kubewright.emit.go.imports import file_of
from kubewright.emit.go.structs import Structs
from kubewright.emit.go.text import string, tag
from kubewright.ir.versions import join_api_version

_HEAD = ("apiVersion", "kind", "metadata")
_SUFFIXES = ("ApplyConfiguration", "Apply", "AC")


def configuration_names(names: Sequence[str]) -> dict[str, str]:
    """The configuration of each class: called as client-go calls it, or shorter where that would be too long."""
    chosen: dict[str, str] = {}
    taken = set(names)
    for name in names:
        suffix = next((suffix for suffix in _SUFFIXES if len(name + suffix) <= MAX_NAME), _SUFFIXES[-1])
        stem, count = name[: MAX_NAME - len(suffix)], 2
        while stem + suffix in taken:
            stem, count = f"{name[: MAX_NAME - len(suffix) - len(str(count))]}{count}", count + 1
        taken.add(stem + suffix)
        chosen[name] = stem + suffix
    return chosen


def apply_file(structs: Structs) -> str:
    """``applyconfiguration/types.go`` of a package."""
    return file_of("applyconfiguration", Configurations(structs).blocks(), structs.package)


class Configurations:
    """Writes the apply configurations of one package."""

    def __init__(self, structs: Structs) -> None:
        self._structs = structs
        self._plan: ModulePlan = structs.plan
        self._names = {
            plan.name: configuration_names([entry.name for entry in plan.classes if not entry.is_list])
            for plan in structs.package.layout.modules
        }
        self._own = structs.package
        self._open_members: dict[str, tuple[str, list[str]]] = {}

    def blocks(self) -> list[str]:
        """The text of each configuration."""
        blocks = [self._configuration(entry) for entry in self._structs.own if not entry.is_list]
        return [*blocks, *openness.methods(self._open_members)]

    def _configuration(self, entry: ClassPlan) -> str:
        name = self._names[self._plan.name][entry.name]
        is_object = entry.kind is not None and any(f.wire_name == "metadata" for f in entry.fields)
        lines = [
            f"// {name} is a declarative configuration of {entry.name} for use with apply.",
            f"type {name} struct {{",
        ]
        body: list[str] = []
        methods = [self._constructor(entry, name, is_object)]
        if entry.kind:
            body.append('\tmetav1ac.TypeMetaApplyConfiguration `json:",inline"`')
        if is_object:
            body.append('\t*metav1ac.ObjectMetaApplyConfiguration `json:"metadata,omitempty"`')
            own = [f" With{field.attribute}(" for field in entry.fields]
            given = [text for text in _OBJECT.split("\n\n") if not any(word in text for word in own)]
            methods.append("\n\n".join(given).replace("NAME", name))
        for field in entry.fields:
            if entry.kind and field.wire_name in _HEAD:
                continue
            text = self._text(self._structs.adjusted(field.type, field.value))
            is_held = text.startswith(("[]", "map["))
            stored = text if is_held else f"*{text.removeprefix('*')}"
            options = ",omitzero" if is_held else ",omitempty"
            body.append(f"\t{field.attribute} {stored} {tag(field.wire_name, options)}")
            methods.append(_setter(name, field.attribute, stored))
        if entry.is_open:
            member = openness.member_name([field.attribute for field in entry.fields])
            body.append(f'\t{member} {openness.KEPT} `json:"-"`')
            methods.append(_setter(name, member, openness.KEPT))
            self._open_members[name] = (member, [field.wire_name for field in entry.fields])
        return "\n\n".join(["\n".join([*lines, "\n\n".join(body), "}"]).replace("{\n\n}", "{\n}"), *methods])

    def _constructor(self, entry: ClassPlan, name: str, is_object: bool) -> str:
        doc = f"// {entry.name} makes a declarative configuration of {entry.name}.\n"
        if entry.kind is None:
            return f"{doc}func {entry.name}() *{name} {{\n\treturn &{name}{{}}\n}}"
        group, version, kind = entry.kind
        resource = self._structs.resources.get(entry.definition.name)
        namespaced = is_object and (resource is None or resource.namespaced)
        arguments = "name, namespace string" if namespaced else "name string" if is_object else ""
        place = ", Namespace: &namespace" if namespaced else ""
        meta = (
            "\tb.ObjectMetaApplyConfiguration = "
            f"&metav1ac.ObjectMetaApplyConfiguration{{Name: &name{place}}}\n"
        )
        return (
            f"{doc}func {entry.name}({arguments}) *{name} {{\n\tb := &{name}{{}}\n"
            f"\tapiVersion, kind := {string(join_api_version(group, version))}, {string(kind)}\n"
            f"\tb.APIVersion, b.Kind = &apiVersion, &kind\n{meta if is_object else ''}\treturn b\n}}"
        )

    def _text(self, expr: TypeExpr) -> str:
        """A type in which classes of this API are configurations."""
        if isinstance(expr, ListOfExpr):
            return f"[]{self._text(expr.items)}"
        if isinstance(expr, MapOfExpr):
            return f"map[string]{self._text(expr.values)}"
        if isinstance(expr, OrNull):
            return self._own.pointer(self._text(expr.inner))
        if isinstance(expr, NamedExpr) and not expr.module and expr.name in self._structs.held:
            held = self._structs.held[expr.name]
            return self._text(self._structs.adjusted(held.type, held.value))
        text = self._own.text(expr)
        if not isinstance(expr, NamedExpr) or text.startswith(
            ("metav1.", "runtime.", "resource.", "intstr.")
        ):
            return text
        home = expr.module or self._plan.name
        if (name := self._names[home].get(expr.name)) is not None:
            return name if home == self._plan.name else f"{self._own.aliases[home]}ac.{name}"
        return text if expr.module else f"{self._own.aliases[home]}.{text}"


def _setter(name: str, attribute: str, stored: str) -> str:
    is_part = stored.endswith(_SUFFIXES)
    does = f"\tb.{attribute} = value\n"
    if stored.startswith("[]") and stored != "[]byte":
        says, argument = "adds to", f"values ...{'*' if is_part else ''}{stored[2:]}"
        does = f"\tb.{attribute} = append(b.{attribute}, values...)\n"
        if is_part:
            does = (
                "\tfor _, value := range values {\n"
                f"\t\tif value != nil {{\n\t\t\tb.{attribute} = append(b.{attribute}, *value)\n\t\t}}\n\t}}\n"
            )
    elif stored.startswith(("map[", "[]")) or is_part:
        says, argument = "sets", f"value {stored}"
    else:
        says, argument, does = "sets", f"value {stored[1:]}", f"\tb.{attribute} = &value\n"
    return (
        f"// With{attribute} {says} {attribute}, and gives b back.\n"
        f"func (b *{name}) With{attribute}({argument}) *{name} {{\n{does}\treturn b\n}}"
    )


# What client-go and controller-runtime ask of the configuration of an object.
_OBJECT = """// IsApplyConfiguration marks NAME as a configuration of a whole object.
func (b NAME) IsApplyConfiguration() {}

// GetKind gives the kind.
func (b *NAME) GetKind() *string {
	return b.Kind
}

// GetAPIVersion gives the group and version.
func (b *NAME) GetAPIVersion() *string {
	return b.APIVersion
}

// GetName gives the name of the object.
func (b *NAME) GetName() *string {
	return b.metadata().Name
}

// GetNamespace gives the namespace of the object.
func (b *NAME) GetNamespace() *string {
	return b.metadata().Namespace
}

// WithLabels adds labels, and gives b back.
func (b *NAME) WithLabels(entries map[string]string) *NAME {
	b.metadata().WithLabels(entries)
	return b
}

// WithAnnotations adds annotations, and gives b back.
func (b *NAME) WithAnnotations(entries map[string]string) *NAME {
	b.metadata().WithAnnotations(entries)
	return b
}

// WithFinalizers adds finalizers, and gives b back.
func (b *NAME) WithFinalizers(values ...string) *NAME {
	b.metadata().WithFinalizers(values...)
	return b
}

// WithOwnerReferences adds owners, and gives b back.
func (b *NAME) WithOwnerReferences(values ...*metav1ac.OwnerReferenceApplyConfiguration) *NAME {
	b.metadata().WithOwnerReferences(values...)
	return b
}

func (b *NAME) metadata() *metav1ac.ObjectMetaApplyConfiguration {
	if b.ObjectMetaApplyConfiguration == nil {
		b.ObjectMetaApplyConfiguration = &metav1ac.ObjectMetaApplyConfiguration{}
	}
	return b.ObjectMetaApplyConfiguration
}"""
