"""``<group>/<version>/``: a Go package with the types of a group-version, their deep copies and their registration, and
below it ``applyconfiguration`` with what appliers send. They build on k8s.io/apimachinery and client-go; controller-gen
makes of them the CustomResourceDefinitions that they came from, as far as it has markers.

Fields that no type declares are kept where a schema keeps them (``openness``), else Go drops them. Lists and maps that
are empty stay in JSON (``omitzero``, Go 1.24). Alternatives have no markers; comments name them.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubewright.diagnostics import Diagnostics
from kubewright.emit.code.class_plans import ClassPlan, ModulePlan
from kubewright.emit.code.layout import lay_out
from kubewright.emit.code.names import Naming
from kubewright.emit.go import openness, text
from kubewright.emit.go.apply import apply_file
from kubewright.emit.go.imports import file_of, folder_of
from kubewright.emit.go.structs import Structs
from kubewright.emit.go.types import EMPTY, copied
from kubewright.emit.go.uses import uses_of
from kubewright.emit.interface import Form, Forms, Made, Options
from kubewright.ir.api import Api, File
from kubewright.ir.types import EmbeddedObject, Struct
from kubewright.ir.walk import values

NAMING = Naming(
    frozenset({EMPTY, "GroupVersion", "SchemeBuilder", "AddToScheme", "Resource", "Kind"}),
    text.field_names,
    item_types=True,
)


class Go:
    """The Go emitter."""

    name = "go"
    parts = ("types", "deepcopy", "register", "applyconfiguration")
    forms = frozenset({Form.EXACT})

    def check(self, api: Api, options: Options, diagnostics: Diagnostics) -> None:
        """Refuses names that encoding/json reads as no key."""
        for definition in api.definitions:
            for value in values(definition.value):
                body = value.type.body if isinstance(value.type, EmbeddedObject) else value.type
                for member in body.fields if isinstance(body, Struct) else ():
                    if not text.is_tag(member.wire_name):
                        diagnostics.error(
                            "K302",
                            f"encoding/json takes no field called {member.wire_name!r}",
                            member.value.location,
                            "rename it, or leave Go out",
                        )

    def emit(self, forms: Forms, options: Options) -> Iterator[Made]:
        """The packages of every group-version that has types of its own."""
        api = forms[Form.EXACT]
        layout = lay_out(api, enums=True, naming=NAMING)
        top = text.header(options.origins)
        wanted = options.only or self.parts
        module = options.settings.get("module") or options.package
        uses = uses_of(layout)
        for plan in layout.modules:
            here = (plan.group, plan.version)
            resources = {r.definition: r for r in api.resources if (r.group, r.version) == here}
            structs = Structs(module, layout, plan, resources, uses, options.documentation)
            types = structs.types()
            if not types:
                continue
            for part, path, content in self._files(plan, structs, types):
                if part in wanted:
                    yield Made(part, File(f"{folder_of(plan)}/{path}", top + content))

    def _files(self, plan: ModulePlan, structs: Structs, types: list[str]) -> Iterator[tuple[str, str, str]]:
        """Part, path and content of the files of a package."""
        name, package = plan.version or "models", structs.package
        yield "types", "doc.go", _doc(plan, name)
        yield "types", "types.go", file_of(name, types, package)
        yield "deepcopy", "zz_generated.deepcopy.go", file_of(name, _deep_copies(structs), package)
        if structs.kinds:
            yield "register", "register.go", file_of(name, [_register(plan, structs.kinds)], package)
        if opened := openness.methods(structs.open_members):
            yield "types", "zz_generated.json.go", file_of(name, opened, package)
        yield "applyconfiguration", "applyconfiguration/types.go", apply_file(structs)


def _doc(plan: ModulePlan, package: str) -> str:
    return (
        f"// Package {package} has the types of {text.one_line(plan.title)}.\n"
        "// +kubebuilder:object:generate=true\n"
        f"// +groupName={text.one_line(plan.group)}\n"
        f"package {package}\n"
    )


def _register(plan: ModulePlan, kinds: list[ClassPlan]) -> str:
    names = "".join(f"\t\t&{kind.name}{{}},\n" for kind in kinds)
    return f"""// GroupVersion is that of the types in this package.
var GroupVersion = schema.GroupVersion{{Group: {text.string(plan.group)}, Version: {text.string(plan.version)}}}

var (
	// SchemeBuilder collects what AddToScheme does.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds the types of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {{
	scheme.AddKnownTypes(GroupVersion,
{names}	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}}"""


def _deep_copies(structs: Structs) -> list[str]:
    blocks = []
    for name, members in structs.members.items():
        body: list[str] = []
        for member, kind in members:
            if kind == f"metav1.{member}":  # embedded
                body.append(f"\tin.{member}.DeepCopyInto(&out.{member})")
            else:
                lines = copied(kind, f"in.{member}", f"out.{member}", structs.scalars)
                body += [line for line in lines if line != f"\tout.{member} = in.{member}"]
        blocks.append(_DEEP_COPY.format(name=name, body="".join(line + "\n" for line in body)))
        if name in structs.kind_names:
            blocks.append(_DEEP_COPY_OBJECT.format(name=name))
    for name, held in structs.held_texts.items():
        lines = copied(held, "in", "out", structs.scalars)
        lines[1] = "\t\tin := &in"
        blocks.append(_DEEP_COPY_HELD.format(name=name, body="".join(line + "\n" for line in lines)))
    return blocks


_DEEP_COPY = """// DeepCopyInto copies the receiver into out.
func (in *{name}) DeepCopyInto(out *{name}) {{
	*out = *in
{body}}}

// DeepCopy copies the receiver.
func (in *{name}) DeepCopy() *{name} {{
	if in == nil {{
		return nil
	}}
	out := new({name})
	in.DeepCopyInto(out)
	return out
}}"""
_DEEP_COPY_HELD = """// DeepCopyInto copies the receiver into out.
func (in {name}) DeepCopyInto(out *{name}) {{
	*out = nil
{body}}}

// DeepCopy copies the receiver.
func (in {name}) DeepCopy() {name} {{
	var out {name}
	in.DeepCopyInto(&out)
	return out
}}"""
_DEEP_COPY_OBJECT = """// DeepCopyObject copies the receiver as an object.
func (in *{name}) DeepCopyObject() runtime.Object {{
	if c := in.DeepCopy(); c != nil {{
		return c
	}}
	return nil
}}"""
