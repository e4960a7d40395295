"""Functions: their overloads as the checker sees them, and the Python that runs them.

A signature is written as text, ``string.(string) bool`` for a method and ``(list(A), A) bool`` for a function;
single capital letters are type variables. Impls take CEL values and return one, or raise EvalError. Where the
checker cannot pick one overload (dyn), ``Function.dispatch`` picks by the classes of the values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import EvalError
from apimachinery.cel.values.types import Type
from apimachinery.cel.values.values import (
    NO_OVERLOAD,
    Duration,
    KeyedList,
    Optional,
    SetList,
    Timestamp,
    TypeValue,
    Uint,
    type_name,
)

Impl = Callable[..., Any]

_SIMPLE = {
    "dyn": t.DYN,
    "null": t.NULL,
    "bool": t.BOOL,
    "int": t.INT,
    "uint": t.UINT,
    "double": t.DOUBLE,
    "string": t.STRING,
    "bytes": t.BYTES,
    "timestamp": t.TIMESTAMP,
    "duration": t.DURATION,
}
_CLASSES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "uint": (Uint,),
    "double": (float,),
    "string": (str,),
    "bytes": (bytes,),
    "timestamp": (Timestamp,),
    "duration": (Duration,),
    "list": (list, SetList, KeyedList),
    "map": (dict,),
    "type": (TypeValue,),
}


@dataclass(frozen=True, slots=True)
class Overload:
    """One form of a function. ``classes`` are the Python classes each argument must have, None for any."""

    id: str
    params: tuple[Type, ...]
    result: Type
    member: bool
    impl: Impl
    classes: tuple[tuple[type, ...] | None, ...] = ()


@dataclass(slots=True)
class Function:
    """All overloads of a name. ``plain_error``: a call that fits none fails without naming the types."""

    name: str
    overloads: list[Overload] = field(default_factory=list)
    plain_error: bool = False

    def dispatch(self, member: bool) -> Impl:
        """An impl that picks the overload by the values it is given."""
        table = [(o.classes, o.impl) for o in self.overloads if o.member == member]
        name, plain = self.name, self.plain_error

        def call(*args: Any) -> Any:
            count = len(args)
            for classes, impl in table:
                if len(classes) == count and all(
                    c is None or type(v) in c for v, c in zip(args, classes, strict=True)
                ):
                    return impl(*args)
            if plain:
                raise EvalError(NO_OVERLOAD)
            raise EvalError(f"{NO_OVERLOAD}: {name}({', '.join(map(type_name, args))})")

        return call


class Library:
    """A named set of functions, type names, variables of fixed value and macros."""

    def __init__(self, name: str, *, plain_error: bool = False):
        self.name = name
        self.functions: dict[str, Function] = {}
        self.types: dict[str, Type] = {}
        self.classes: dict[str, tuple[type, ...]] = dict(_CLASSES)
        self.plain_error = plain_error

    def declare_type(self, short: str, of: Type, *classes: type) -> None:
        """Let signatures of this library call ``of`` by ``short``."""
        self.types[short] = of
        self.classes[of.name] = classes

    def overload(self, function: str, id: str, signature: str, impl: Impl) -> None:
        """Add an overload; ``signature`` as described above."""
        found = self.functions.setdefault(function, Function(function, plain_error=self.plain_error))
        member, params, result = self._signature(signature)
        classes = tuple(self._classes_of(p) for p in params)
        found.overloads.append(Overload(id, params, result, member, impl, classes))

    def add(self, function: str, *forms: tuple[str, str, Impl]) -> None:
        """Add several overloads of one function: (id, signature, impl)."""
        for id, signature, impl in forms:
            self.overload(function, id, signature, impl)

    def _signature(self, text: str) -> tuple[bool, tuple[Type, ...], Type]:
        receiver, _, rest = text.partition(".(") if ".(" in text else ("", "", text[1:])
        depth, at = 1, 0
        while depth:
            depth += {"(": 1, ")": -1}.get(rest[at], 0)
            at += 1
        params = [self._type(part) for part in _split(rest[: at - 1])]
        if receiver:
            params.insert(0, self._type(receiver))
        return bool(receiver), tuple(params), self._type(rest[at:].strip())

    def _type(self, text: str) -> Type:
        text = text.strip()
        found = _SIMPLE.get(text) or self.types.get(text)
        if found is not None:
            return found
        name, _, inner = text.partition("(")
        if not inner:
            if re.fullmatch("[A-Z]", text):
                return t.param(text)
            if text == "type":
                return t.TYPE
            raise ValueError(f"unknown type {text!r} in a signature")
        params = tuple(self._type(p) for p in _split(inner[:-1]))
        if name in ("list", "map", "type"):
            return Type(name, name, params)
        if name == "optional":
            return t.optional_of(params[0])
        raise ValueError(f"unknown type {text!r} in a signature")

    def _classes_of(self, of: Type) -> tuple[type, ...] | None:
        if of.kind in ("dyn", "param"):
            return None
        if t.is_optional(of):
            return (Optional,)
        if of.kind in ("object", "opaque"):
            return self.classes[of.name]
        return self.classes[of.kind]


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    if text.strip():
        parts.append(text[start:])
    return parts


def merge(libraries: Iterable[Library]) -> dict[str, Function]:
    """All functions of ``libraries`` by name; of two overloads with one id the later replaces the earlier."""
    merged: dict[str, Function] = {}
    for library in libraries:
        for name, function in library.functions.items():
            mine = merged.get(name)
            if mine is None:
                merged[name] = Function(name, list(function.overloads), function.plain_error)
                continue
            new = {o.id for o in function.overloads}
            mine.overloads = [o for o in mine.overloads if o.id not in new] + function.overloads
            mine.plain_error = mine.plain_error and function.plain_error
    return merged
