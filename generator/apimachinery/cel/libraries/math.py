"""The math extension: greatest, least, rounding, signs, bits. Not in Kubernetes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from apimachinery.cel.libraries.declarations import Library
from apimachinery.cel.syntax.ast import CallNode, ListExpr, Literal, Node
from apimachinery.cel.syntax.macros import Expander, MacroError, MacroKey
from apimachinery.cel.values import values as v
from apimachinery.cel.values.errors import EvalError
from apimachinery.cel.values.values import UINT_MAX, Uint


def _pick(better: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def pick(*args: Any) -> Any:
        items = args[0] if len(args) == 1 and isinstance(args[0], list) else args
        if not items:
            raise EvalError("math.@min(list) argument must not be empty")
        best = items[0]
        for item in items:
            if type(item) not in (int, float, Uint):
                raise EvalError("no such overload")
            if better(item, best):
                best = item
        return best

    return pick


def _round(value: float) -> float:
    if not math.isfinite(value):
        return value
    return math.copysign(math.floor(abs(value) + 0.5), value) if abs(value) < 2**52 else value


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    def apply(value: float) -> float:
        return math.copysign(float(function(value)), value) if math.isfinite(value) else value

    return apply


def _sign(value: Any) -> Any:
    if isinstance(value, float) and value != value:
        return value
    sign = (value > 0) - (value < 0)
    return type(value)(sign)


def _root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _abs(value: int) -> int:
    if value == v.INT_MIN:
        raise EvalError("integer overflow")
    return abs(value)


def _signed(value: int) -> int:
    value &= UINT_MAX
    return value - 2**64 if value >= 2**63 else value


def _shift(left: bool, wrap: Callable[[int], int]) -> Callable[[int, int], int]:
    def shift(value: int, by: int) -> int:
        if by < 0:
            raise EvalError(f"math.bitShift{'Left' if left else 'Right'}() negative offset: {by}")
        if by > 63:
            return wrap(0)
        bits = int(value) & UINT_MAX
        return wrap(bits << by if left else bits >> by)

    return shift


def _uint(value: int) -> Uint:
    return Uint(value & UINT_MAX)


_GREATEST, _LEAST = "math.@max", "math.@min"


def math_library() -> Library:
    """The library, version 1 (2 has sqrt)."""
    lib = Library("math")
    for name, better in ((_GREATEST, v.greater), (_LEAST, v.less)):
        pick = _pick(better)
        kinds = ("int", "uint", "double")
        for a in kinds:
            lib.overload(name, f"{name}_{a}", f"({a}) {a}", pick)
            lib.overload(name, f"{name}_list_{a}", f"(list({a})) {a}", pick)
            for b in kinds:
                lib.overload(name, f"{name}_{a}_{b}", f"({a}, {b}) {a if a == b else 'dyn'}", pick)
        lib.overload(name, f"{name}_list_dyn", "(list(dyn)) dyn", pick)
    for function, impl in (("ceil", math.ceil), ("floor", math.floor), ("trunc", math.trunc)):
        lib.overload(f"math.{function}", f"math_{function}_double", "(double) double", _whole(impl))
    lib.overload("math.round", "math_round_double", "(double) double", _round)
    lib.overload("math.isNaN", "math_isNaN_double", "(double) bool", math.isnan)
    lib.overload("math.isInf", "math_isInf_double", "(double) bool", math.isinf)
    lib.overload("math.isFinite", "math_isFinite_double", "(double) bool", math.isfinite)
    for kind in ("int", "uint", "double"):
        lib.overload("math.sign", f"math_sign_{kind}", f"({kind}) {kind}", _sign)
        lib.overload(
            "math.abs",
            f"math_abs_{kind}",
            f"({kind}) {kind}",
            _abs if kind == "int" else abs if kind == "double" else lambda x: x,
        )
        lib.overload("math.sqrt", f"math_sqrt_{kind}", f"({kind}) double", _root)
    for kind, wrap in (("int", _signed), ("uint", _uint)):
        lib.overload(
            "math.bitAnd", f"math_bitAnd_{kind}_{kind}", f"({kind}, {kind}) {kind}", _bits("and", wrap)
        )
        lib.overload("math.bitOr", f"math_bitOr_{kind}_{kind}", f"({kind}, {kind}) {kind}", _bits("or", wrap))
        lib.overload(
            "math.bitXor", f"math_bitXor_{kind}_{kind}", f"({kind}, {kind}) {kind}", _bits("xor", wrap)
        )
        lib.overload("math.bitNot", f"math_bitNot_{kind}", f"({kind}) {kind}", _bit_not(wrap))
        lib.overload(
            "math.bitShiftLeft", f"math_bitShiftLeft_{kind}_int", f"({kind}, int) {kind}", _shift(True, wrap)
        )
        lib.overload(
            "math.bitShiftRight",
            f"math_bitShiftRight_{kind}_int",
            f"({kind}, int) {kind}",
            _shift(False, wrap),
        )
    return lib


def _bits(how: str, wrap: Callable[[int], int]) -> Callable[[int, int], int]:
    def apply(a: int, b: int) -> int:
        a, b = int(a), int(b)
        return wrap(a & b if how == "and" else a | b if how == "or" else a ^ b)

    return apply


def _bit_not(wrap: Callable[[int], int]) -> Callable[[int], int]:
    return lambda value: wrap(~int(value))


def _extreme(function: str, shown: str) -> Expander:
    def expand(at: int, target: Node | None, args: list[Node]) -> Node | None:
        from apimachinery.cel.syntax.ast import Ident

        if not isinstance(target, Ident) or target.ident != "math":
            return None
        for arg in args:
            wrong = isinstance(arg, Literal) and (
                isinstance(arg.value, bool) or not isinstance(arg.value, (int, float))
            )
            wrong = wrong or (isinstance(arg, ListExpr) and len(args) > 1)
            if wrong and len(args) > 1:
                raise MacroError(arg.offset, f"math.{shown}() simple literal arguments must be numeric")
            if wrong:
                raise MacroError(arg.offset, f"math.{shown}() invalid single argument value")
        if len(args) <= 2:
            return CallNode(at, function, args)
        return CallNode(at, function, [ListExpr(at, args)])

    return expand


MATH_MACROS: dict[MacroKey, Expander] = {
    (shown, count, True): _extreme(function, shown)
    for shown, function in (("greatest", _GREATEST), ("least", _LEAST))
    for count in range(1, 33)
}
