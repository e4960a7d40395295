"""Types of the layout as Go types, and how their values are copied."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubewright.emit.code.class_plans import Layout
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
from kubewright.ir.types import (
    Duration,
    IntOrString,
    MicroTime,
    Primitive,
    Quantity,
    RawJson,
    Scalar,
    Time,
)

IMPORTS = {
    "metav1": "k8s.io/apimachinery/pkg/apis/meta/v1",
    "metav1ac": "k8s.io/client-go/applyconfigurations/meta/v1",
    "intstr": "k8s.io/apimachinery/pkg/util/intstr",
    "resource": "k8s.io/apimachinery/pkg/api/resource",
    "runtime": "k8s.io/apimachinery/pkg/runtime",
    "schema": "k8s.io/apimachinery/pkg/runtime/schema",
    "json": "encoding/json",
    "utiljson": "k8s.io/apimachinery/pkg/util/json",
    "apiextensionsv1": "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1",
}
MACHINERY = "io.k8s.apimachinery."
_META = f"{MACHINERY}pkg.apis.meta.v1."
_OF_MACHINERY = {
    f"{MACHINERY}pkg.api.resource.Quantity": "resource.Quantity",
    f"{MACHINERY}pkg.util.intstr.IntOrString": "intstr.IntOrString",
    f"{MACHINERY}pkg.runtime.RawExtension": "runtime.RawExtension",
}
_NUMBER = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
QUANTITY = rf"^(\+|-)?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_NUMBER}))?$"
# Types whose values are copied by assignment; of the others the pointers below say how.
_FLAT = (
    "bool",
    "string",
    "int",
    "int32",
    "int64",
    "float32",
    "float64",
    "intstr.IntOrString",
    "metav1.Duration",
)
EMPTY = "EmptyObject"


@dataclass(slots=True)
class TypeTexts:
    """The types of one Go package of ``module``, as text."""

    module: str
    layout: Layout
    has_empty: bool = False
    aliases: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.aliases = package_aliases(self.layout)

    def text(self, expr: TypeExpr) -> str:
        """The Go type of a value that is present."""
        match expr:
            case PlainExpr():
                return _plain(expr)
            case BytesExpr():
                return "[]byte"
            case Literals(members):
                return "string" if isinstance(members[0], str) else "int"
            case ListOfExpr(items):
                return f"[]{self.text(items)}"
            case MapOfExpr(values):
                return f"map[string]{self.text(values)}"
            case OrNull(inner):
                return self.pointer(self.text(inner))
            case OneOf():
                return "runtime.RawExtension"
            case NamedExpr(module, name, definition):
                return self._named(module, name, definition)
            case ForeignExpr(_, name):
                return name

    def _named(self, module: str, name: str, definition: str) -> str:
        if definition in _OF_MACHINERY:
            return _OF_MACHINERY[definition]
        if definition.startswith(_META):
            return f"metav1.{definition.removeprefix(_META)}"
        if definition.startswith(MACHINERY):
            return "runtime.RawExtension"
        return f"{self.aliases[module]}.{name}" if module else name

    def pointer(self, text: str) -> str:
        """``text`` as something that can be absent."""
        return text if text.startswith(("[]", "map[", "*")) else f"*{text}"

    def empty(self) -> str:
        """The type of objects without fields."""
        self.has_empty = True
        return EMPTY


def package_aliases(layout: Layout) -> dict[str, str]:
    """What each package of the module is called where it is imported, as Go has it: ``appsv1`` of ``apps_v1``."""
    plain = [plan.name.replace("_", "") for plan in layout.modules]
    return {
        plan.name: name if plain.count(name) == 1 and name not in IMPORTS else plan.name
        for plan, name in zip(layout.modules, plain, strict=True)
    }


def _plain(expr: PlainExpr) -> str:
    node = expr.type
    if isinstance(node, Scalar):
        return _scalar(node)
    if isinstance(node, RawJson):
        return "runtime.RawExtension" if node.object_only else "apiextensionsv1.JSON"
    return {
        IntOrString: "intstr.IntOrString",
        Quantity: "resource.Quantity",
        Time: "metav1.Time",
        MicroTime: "metav1.MicroTime",
        Duration: "metav1.Duration",
    }[type(node)]


def _scalar(node: Scalar) -> str:
    if node.is_moment:
        return "metav1.Time"
    if node.primitive is Primitive.STRING:
        return "[]byte" if node.format == "byte" else "string"
    if node.primitive is Primitive.INTEGER:
        return node.format if node.format in ("int32", "int64") else "int"
    return "float64" if node.primitive is Primitive.NUMBER else "bool"


def is_flat(text: str, scalars: frozenset[str]) -> bool:
    """Whether a value is copied by assignment."""
    return text in _FLAT or text in scalars


def copied(text: str, source: str, target: str, scalars: frozenset[str], depth: int = 1) -> list[str]:
    """The statements that copy ``source``, a value of the type ``text``, to ``target``."""
    pad = "\t" * depth
    if is_flat(text, scalars):
        return [f"{pad}{target} = {source}"]
    if text.startswith("*"):
        inner = text[1:]
        head = [
            f"{pad}if {source} != nil {{",
            f"{pad}\tin, out := &{source}, &{target}",
            f"{pad}\t*out = new({inner})",
        ]
        if is_flat(inner, scalars):
            return [*head, f"{pad}\t**out = **in", f"{pad}}}"]
        return [*head, *copied(inner, "(**in)", "(**out)", scalars, depth + 1), f"{pad}}}"]
    if text.startswith("[]"):
        inner = text[2:]
        head = [
            f"{pad}if {source} != nil {{",
            f"{pad}\tin, out := &{source}, &{target}",
            f"{pad}\t*out = make({text}, len(*in))",
        ]
        if inner == "byte" or is_flat(inner, scalars):
            return [*head, f"{pad}\tcopy(*out, *in)", f"{pad}}}"]
        body = copied(inner, "(*in)[i]", "(*out)[i]", scalars, depth + 2)
        return [*head, f"{pad}\tfor i := range *in {{", *body, f"{pad}\t}}", f"{pad}}}"]
    if text.startswith("map[string]"):
        inner = text.removeprefix("map[string]")
        head = [
            f"{pad}if {source} != nil {{",
            f"{pad}\tin, out := &{source}, &{target}",
            f"{pad}\t*out = make({text}, len(*in))",
            f"{pad}\tfor key, val := range *in {{",
        ]
        if is_flat(inner, scalars):
            return [*head, f"{pad}\t\t(*out)[key] = val", f"{pad}\t}}", f"{pad}}}"]
        body = [f"{pad}\t\tvar copied {inner}", *copied(inner, "val", "copied", scalars, depth + 2)]
        return [*head, *body, f"{pad}\t\t(*out)[key] = copied", f"{pad}\t}}", f"{pad}}}"]
    if text == "resource.Quantity":
        return [f"{pad}{target} = {source}.DeepCopy()"]
    return [f"{pad}{source}.DeepCopyInto(&{target})"]
