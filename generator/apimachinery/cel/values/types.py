"""CEL's types: what an expression may be, before it is run.

A type is (kind, name, parameters). Equal types are equal values; the simple ones are the constants below.
``object`` types are named records whose fields a ``TypeProvider`` knows; ``opaque`` types are abstract ones
with parameters, such as ``optional_type(int)``; ``param`` is a variable of a generic signature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Type:
    """A type. ``str(t)`` is how messages show it."""

    kind: str
    name: str
    params: tuple[Type, ...] = ()

    def __str__(self) -> str:
        if self.kind in ("list", "map", "opaque", "type") and self.params:
            return f"{self.name}({', '.join(map(str, self.params))})"
        if self.kind == "wrapper":
            return f"wrapper({self.params[0]})"
        return self.name

    @property
    def runtime_name(self) -> str:
        """The name that values of the type have, without parameters."""
        return _RUNTIME_NAMES.get(self.kind, self.name)


_RUNTIME_NAMES = {
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
    "null": "null_type",
}
DYN = Type("dyn", "dyn")
ERROR = Type("error", "!error!")
NULL = Type("null", "null")
BOOL = Type("bool", "bool")
INT = Type("int", "int")
UINT = Type("uint", "uint")
DOUBLE = Type("double", "double")
STRING = Type("string", "string")
BYTES = Type("bytes", "bytes")
# Shown in messages by these names; as values they print google.protobuf.Timestamp and .Duration.
TIMESTAMP = Type("timestamp", "timestamp")
DURATION = Type("duration", "duration")
TYPE = Type("type", "type")

OPTIONAL_NAME = "optional_type"


def list_of(element: Type) -> Type:
    """``list(element)``."""
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """``map(key, value)``."""
    return Type("map", "map", (key, value))


def type_of(of: Type) -> Type:
    """The type of the type ``of``."""
    return Type("type", "type", (of,))


def optional_of(of: Type) -> Type:
    """``optional_type(of)``."""
    return Type("opaque", OPTIONAL_NAME, (of,))


def wrapper_of(of: Type) -> Type:
    """A nullable primitive, as protobuf's wrapper messages are."""
    return Type("wrapper", of.name, (of,))


def opaque(name: str, *params: Type) -> Type:
    """An abstract type of that name."""
    return Type("opaque", name, params)


def object_type(name: str) -> Type:
    """A record type of that name."""
    return Type("object", name)


def param(name: str) -> Type:
    """A type variable."""
    return Type("param", name)


def is_optional(t: Type) -> bool:
    """Whether ``t`` is ``optional_type(…)``."""
    return t.kind == "opaque" and t.name == OPTIONAL_NAME


def is_dyn(t: Type) -> bool:
    """Whether nothing is known of ``t``; an error counts, so that one mistake is reported once."""
    return t.kind in ("dyn", "error")


Substitution = dict[Type, Type]


def substitute(mapping: Substitution, t: Type, params_to_dyn: bool = False) -> Type:
    """Replace the variables in ``t``; those without a meaning stay, or become dyn."""
    while t.kind == "param":
        bound = mapping.get(t)
        if bound is None:
            return DYN if params_to_dyn else t
        t = bound
    if t.params:
        changed = tuple(substitute(mapping, p, params_to_dyn) for p in t.params)
        if changed != t.params:
            return Type(t.kind, t.name, changed)
    return t


def rename_params(t: Type, fresh: Callable[[str], Type]) -> Type:
    """Replace each variable of a signature by a fresh one."""
    if t.kind == "param":
        return fresh(t.name)
    if t.params:
        return Type(t.kind, t.name, tuple(rename_params(p, fresh) for p in t.params))
    return t


def _occurs(mapping: Substitution, variable: Type, t: Type) -> bool:
    t = substitute(mapping, t)
    return t == variable or any(_occurs(mapping, variable, p) for p in t.params)


def assignable(mapping: Substitution, a: Type, b: Type) -> bool:
    """Whether ``a`` and ``b`` agree; binds variables in ``mapping`` as it goes.

    On False ``mapping`` may hold half of the bindings: callers work on a copy.
    """
    if b.kind == "param":
        valid, known = _valid_substitution(mapping, a, b)
        if valid:
            return True
        if known:
            return False
    if a.kind == "param":
        return _valid_substitution(mapping, b, a)[0]
    if is_dyn(a) or is_dyn(b):
        return True
    if a.kind == "null" or b.kind == "null":
        return _takes_null(b if a.kind == "null" else a)
    if a.kind == "wrapper" or b.kind == "wrapper":
        plain = a.params[0] if a.kind == "wrapper" else a
        return plain == (b.params[0] if b.kind == "wrapper" else b)
    if a.kind == "type":
        return b.kind == "type"
    if a.kind != b.kind or a.name != b.name or len(a.params) != len(b.params):
        return False
    return all(assignable(mapping, x, y) for x, y in zip(a.params, b.params, strict=True))


def _takes_null(t: Type) -> bool:
    return t.kind in ("null", "object", "opaque", "timestamp", "duration", "wrapper")


def _valid_substitution(mapping: Substitution, a: Type, variable: Type) -> tuple[bool, bool]:
    """Whether ``a`` may stand for ``variable``, and whether the variable had a meaning already."""
    if a == variable:
        return True, True
    bound = mapping.get(variable)
    if bound is not None:
        if a == bound:
            return True, True
        if assignable(mapping, a, bound):
            wider = most_general(a, bound)
            if not _occurs(mapping, variable, wider):
                mapping[variable] = wider
            return True, True
        return False, True
    if _occurs(mapping, variable, a):
        return False, False
    mapping[variable] = a
    return True, False


def most_general(a: Type, b: Type) -> Type:
    """The less specific of two types that agree; null is never it where the other side takes null."""
    if b.kind == "null":
        return a
    return a if _at_most_as_specific(a, b) else b


def _at_most_as_specific(a: Type, b: Type) -> bool:
    if is_dyn(a) or a.kind == "param":
        return True
    if is_dyn(b) or b.kind == "param":
        return False
    if a.kind == "wrapper" and b.kind != "wrapper":
        return True
    if a.kind != b.kind or a.name != b.name or len(a.params) != len(b.params):
        return False
    if a.kind in ("list", "map", "opaque"):
        return all(_at_most_as_specific(x, y) for x, y in zip(a.params, b.params, strict=True))
    return a == b or a.kind == "type"
