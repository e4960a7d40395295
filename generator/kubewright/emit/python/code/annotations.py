"""Types as Python annotations."""

from __future__ import annotations

from kubewright.emit.code.render import literal
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
from kubewright.ir.types import IntOrString, Primitive, Quantity, RawJson, Scalar, Time

# A number keeps its text: as floats 3 would be written 3.0, and integers past 2**53 would lose digits.
_SCALARS = {
    Primitive.STRING: "str",
    Primitive.INTEGER: "int",
    Primitive.NUMBER: "int | float",
    Primitive.BOOLEAN: "bool",
}


def annotation(expr: TypeExpr) -> str:
    """``expr`` as text."""
    match expr:
        case PlainExpr():
            return _plain(expr)
        case BytesExpr():
            return "bytes"
        case Literals(members):
            return f"Literal[{', '.join(literal(member) for member in members)}]"
        case ListOfExpr(items):
            return f"list[{annotation(items)}]"
        case MapOfExpr(values):
            return f"dict[str, {annotation(values)}]"
        case OrNull(inner):
            return f"{annotation(inner)} | None"
        case OneOf(members, tried):
            text = " | ".join(dict.fromkeys(map(annotation, members)))
            return f"Untagged[{text}]" if tried else text
        case NamedExpr(module, name):
            text = f"{module}.{name}" if module else name
            return f"Open[{text}]" if expr.is_open else text
        case ForeignExpr(alias, name):
            return f"{alias}.{name}"


def _plain(expr: PlainExpr) -> str:
    node = expr.type
    if isinstance(node, Scalar):
        return "datetime" if node.is_moment else _SCALARS[node.primitive]
    if isinstance(node, RawJson):
        return "dict[str, Any]" if node.object_only else "Any"
    words = {IntOrString: "int | str", Quantity: "str | int | float", Time: "datetime"}
    return words.get(type(node), "str")
